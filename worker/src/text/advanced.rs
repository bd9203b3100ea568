//! The steps of the preprocess mode `advanced`: imports, literals, identifiers.

use super::class::{continues_identifier, is_decimal, is_space, is_word, starts_identifier};
use super::keywords::is_keyword;
use regex::Regex;
use std::collections::HashMap;
use std::sync::LazyLock;

/// `\s` of Python inside a character class of ours.
const SPACE: &str = r"\s\x1c-\x1f";
/// `\w` of Python inside a character class of ours.
const WORD: &str = r"\p{L}\p{N}_";

/// Translates an expression written with Python's classes: `%s`, `%w`, `%S` stand for `\s`, `\w`, `\S`; inside a class
/// write `<s>` and `<w>`.
fn expression(pattern: &str) -> Regex {
    let pattern = pattern
        .replace("%s", &format!("[{SPACE}]"))
        .replace("%S", &format!("[^{SPACE}]"))
        .replace("%w", &format!("[{WORD}]"))
        .replace("<s>", SPACE)
        .replace("<w>", WORD);
    Regex::new(&pattern).expect("the expressions of this file compile; a test uses each")
}

static IMPORT_BLOCK: LazyLock<Regex> = LazyLock::new(|| expression(r"^%s*import%s*\(%s*$"));
static FROM_IMPORT_BLOCK: LazyLock<Regex> =
    LazyLock::new(|| expression(r"^%s*from%s+%S+%s+import%s*\("));
static IMPORT_LINE: LazyLock<Regex> = LazyLock::new(|| {
    let forms = [
        r"import%s+.+",
        r"from%s+%S+%s+import%s+.+",
        r"pragma%s+.+",
        r"package%s+%S+.*",
        r"#%s*include%s+.+",
        r"#%s*import%s+.+",
        r"(?:global%s+)?using%s+(?:namespace%s+)?(?:static%s+)?[<w>.]+(?:%s*=%s*[<w>.]+)?%s*;?",
        r"library%s*\(.+\)%s*;?",
        r"source%s*\(.+\)%s*;?",
        r"use%s+[<w>\\:,*{}<s>]+;?",
        r"local%s+%w+%s*=%s*require%s*\(.+\)%s*;?",
        r"extern%s+crate%s+%S+.*",
        r"require(?:_once|_relative)?%s*(?:\(?%s*.+)",
        r"include(?:_once)?%s*(?:\(?%s*.+)",
        r"(?:const|let|var)%s+.+?=%s*require%s*\(.+\)%s*;?",
    ];
    expression(&format!(r"^%s*(?:{})%s*$", forms.join("|")))
});

/// Drops lines that import something, and parenthesised import blocks.
pub(super) fn strip_imports(text: &str) -> String {
    let mut kept = Vec::new();
    let mut depth: isize = 0;
    for line in text.split('\n') {
        if depth > 0 {
            depth += parentheses(line);
        } else if IMPORT_BLOCK.is_match(line) {
            depth = 1;
        } else if FROM_IMPORT_BLOCK.is_match(line) {
            depth = parentheses(line).max(0);
        } else if !IMPORT_LINE.is_match(line) {
            kept.push(line);
        }
    }
    kept.join("\n")
}

fn parentheses(line: &str) -> isize {
    line.bytes()
        .map(|byte| match byte {
            b'(' => 1,
            b')' => -1,
            _ => 0,
        })
        .sum()
}

/// Replaces string literals and then numbers by placeholders.
pub(super) fn replace_literals(text: &str) -> String {
    replace_numbers(&replace_strings(text))
}

/// Where a literal that is open at each byte ends, for one kind of quote.
///
/// The expression is `(?:\\.|[^...])*quote`: an escape takes two characters if that leads to an end, and in the
/// tripled kinds the backslash may also stand alone. The end depends on the place only, so one pass from the back
/// answers every start.
struct Ends {
    quote: &'static str,
    end: Vec<Option<usize>>,
}

impl Ends {
    fn new(text: &str, quote: &'static str) -> Self {
        let bytes = text.as_bytes();
        let mut end = vec![None; bytes.len() + 2];
        for at in (0..bytes.len()).rev() {
            if !text.is_char_boundary(at) {
                continue;
            }
            let width = |at: usize| text[at..].chars().next().map_or(1, char::len_utf8);
            let next = at + width(at);
            end[at] = if bytes[at] == b'\\' {
                let escaped = if next < bytes.len() {
                    end[next + width(next)]
                } else {
                    None
                };
                match escaped {
                    None if quote.len() == 3 => end[next],
                    found => found,
                }
            } else if text[at..].starts_with(quote) {
                Some(at + quote.len())
            } else {
                end[next]
            };
        }
        Self { quote, end }
    }

    fn literal(&self, text: &str, at: usize) -> Option<usize> {
        let inside = at + self.quote.len();
        text[at..]
            .starts_with(self.quote)
            .then(|| self.end[inside])?
    }
}

fn replace_strings(text: &str) -> String {
    let kinds: Vec<Ends> = ["\"\"\"", "'''", "`", "\"", "'"]
        .into_iter()
        .filter(|quote| text.contains(quote))
        .map(|quote| Ends::new(text, quote))
        .collect();
    let mut out = String::with_capacity(text.len());
    let mut rest = 0;
    while let Some(step) = text[rest..].find(['"', '\'', '`']) {
        let at = rest + step;
        out.push_str(&text[rest..at]);
        if let Some(end) = kinds.iter().find_map(|kind| kind.literal(text, at)) {
            out.push_str(" <STR> ");
            rest = end;
        } else {
            out.push_str(&text[at..=at]);
            rest = at + 1;
        }
    }
    out.push_str(&text[rest..]);
    out
}

fn replace_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = 0;
    let mut after_word = false;
    while let Some(c) = text[rest..].chars().next() {
        if !after_word
            && is_decimal(c)
            && let Some(length) = number_length(&text[rest..])
        {
            out.push_str(" <NUM> ");
            rest += length;
            // The match ends at a word boundary, so what follows is not a word character.
            after_word = true;
            continue;
        }
        out.push(c);
        rest += c.len_utf8();
        after_word = is_word(c);
    }
    out
}

/// Length in bytes of `\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b` at the start of a text that begins with a digit.
fn number_length(text: &str) -> Option<usize> {
    let digits = |from: usize| {
        let rest = &text[from..];
        from + rest.find(|c| !is_decimal(c)).unwrap_or(rest.len())
    };
    let at_boundary = |at: usize| !text[at..].chars().next().is_some_and(is_word);
    let whole = digits(0);
    let mut fraction = whole;
    if text[whole..].starts_with('.') {
        let end = digits(whole + 1);
        if end > whole + 1 {
            fraction = end;
        }
    }
    let mut exponent = fraction;
    if text[fraction..].starts_with(['e', 'E']) {
        let sign = usize::from(text[fraction + 1..].starts_with(['+', '-']));
        let end = digits(fraction + 1 + sign);
        if end > fraction + 1 + sign {
            exponent = end;
        }
    }
    [exponent, fraction, whole]
        .into_iter()
        .find(|&end| at_boundary(end))
}

/// Replaces identifiers by `id1`, `id2`, ... in order of appearance; keywords go to lower case; everything is joined
/// by single spaces.
pub(super) fn rename_identifiers(text: &str) -> String {
    let mut names: HashMap<&str, usize> = HashMap::new();
    let mut out: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let bytes = rest.as_bytes();
        if starts_identifier(bytes[0]) {
            let end = bytes
                .iter()
                .position(|&byte| !continues_identifier(byte))
                .unwrap_or(bytes.len());
            let word = &rest[..end];
            let lowered = word.to_ascii_lowercase();
            if is_keyword(&lowered) {
                out.push(lowered);
            } else {
                let fresh = names.len() + 1;
                out.push(format!("id{}", names.entry(word).or_insert(fresh)));
            }
            rest = &rest[end..];
        } else if rest.starts_with("<STR>") || rest.starts_with("<NUM>") {
            out.push(rest[..5].to_owned());
            rest = &rest[5..];
        } else {
            if !is_word(c) && !is_space(c) {
                out.push(c.to_string());
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    out.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_lines_go() {
        for line in [
            "import java.util.List;",
            "  from a import b",
            "pragma solidity ^0.8;",
            "package x",
            "#include <stdio.h>",
            "# import x",
            "global using static System.Math;",
            "using X = Y.Z;",
            "library(dplyr);",
            "source('x')",
            "use std::{a, b};",
            "local m = require('m')",
            "extern crate foo;",
            "require_once 'x.php';",
            "include 'y'",
            "const fs = require('fs');",
        ] {
            assert_eq!(strip_imports(line), "", "{line}");
        }
        for line in ["important = 1", "using (var x) {", "use", "let x = 1;"] {
            assert_eq!(strip_imports(line), line);
        }
    }

    #[test]
    fn import_blocks_go_to_their_closing_line() {
        assert_eq!(
            strip_imports("import (\n a\n (b)\n)\nx\nfrom q import (a,\n b)\ny"),
            "x\ny"
        );
        assert_eq!(strip_imports("from q import (a)\ny"), "y");
    }

    #[test]
    fn strings_and_numbers_become_placeholders() {
        assert_eq!(
            replace_literals(r#"a='x\'y' + "é" + `q` "open"#),
            r#"a= <STR>  +  <STR>  +  <STR>  "open"#
        );
        assert_eq!(replace_literals("'''a'b\\'''' 1"), " <STR>   <NUM> ");
        // Only with the backslash standing alone is there an end.
        assert_eq!(replace_literals("\"\"\"a\\\"\"\""), " <STR> ");
        assert_eq!(
            replace_literals("1.5e3 x1 2x 1.5e3x 3. .4 1e+2"),
            " <NUM>  x1 2x  <NUM> .5e3x  <NUM> . . <NUM>   <NUM> "
        );
    }
}
