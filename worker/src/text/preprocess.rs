//! Matheel's preprocess modes.

use super::class::is_space;
use super::{advanced, comments};
use proctor_wire::builtin::Preprocess;

/// Prepares a text. `language` says which comments there are in the modes that drop them; without one, the common
/// kinds of comment are dropped.
pub fn preprocess(text: &str, mode: Preprocess, language: Option<&str>) -> String {
    let text = trim_lines(text);
    match mode {
        Preprocess::None => text.trim_matches(is_space).to_owned(),
        Preprocess::Normalize => drop_blank_lines(&text).trim_matches(is_space).to_owned(),
        Preprocess::Basic => collapse_spaces(&drop_blank_lines(&comments::strip(&text, language))),
        Preprocess::Advanced => {
            let text = advanced::strip_imports(&comments::strip(&text, language));
            let text = advanced::replace_literals(&drop_blank_lines(&text));
            collapse_spaces(&advanced::rename_identifiers(&text))
        }
    }
}

/// Unifies newlines to LF.
fn unify_newlines(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n").into()
    } else {
        text.into()
    }
}

/// Unifies newlines and strips every line on the right.
fn trim_lines(text: &str) -> String {
    let text = unify_newlines(text);
    let mut out = String::with_capacity(text.len());
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            out.push('\n');
        }
        out.push_str(line.trim_end_matches(is_space));
    }
    out
}

fn drop_blank_lines(text: &str) -> String {
    let lines: Vec<&str> = text
        .split('\n')
        .filter(|line| !line.chars().all(is_space))
        .collect();
    lines.join("\n")
}

fn collapse_spaces(text: &str) -> String {
    let pieces: Vec<&str> = text
        .split(is_space)
        .filter(|piece| !piece.is_empty())
        .collect();
    pieces.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_unifies_newlines_and_strips() {
        let text = "\u{1c} a \t\r\n\rb\u{a0}\r\nc  \n\n";
        assert_eq!(preprocess(text, Preprocess::None, None), "a\n\nb\nc");
        assert_eq!(preprocess(text, Preprocess::Normalize, None), "a\nb\nc");
        assert_eq!(preprocess(" \n ", Preprocess::None, None), "");
    }

    #[test]
    fn basic_drops_comments_and_collapses() {
        let text = "int a; // x\n/* y\n */ int b = '//';\n\n# z\n";
        assert_eq!(
            preprocess(text, Preprocess::Basic, Some("Java")),
            "int a; int b = '//'; # z"
        );
        assert_eq!(
            preprocess(text, Preprocess::Basic, None),
            "int a; int b = '//';"
        );
    }

    #[test]
    fn advanced_replaces_names_and_literals() {
        let text = "import java.util.*;\nint Total = 3 + 4.5e1;\nString s = \"a\\\"b\";\nTotal += s.length();";
        assert_eq!(
            preprocess(text, Preprocess::Advanced, Some("java")),
            "int id1 = <NUM> + <NUM> ; string id2 = <STR> ; id1 + = id2 . id3 ( ) ;"
        );
    }
}
