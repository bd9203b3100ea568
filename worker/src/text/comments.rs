//! Dropping comments without a parser, language by language.

use super::class::is_space;

/// Block comment markers where no language is known.
const GENERIC_BLOCKS: &[(&str, &str)] = &[("/*", "*/"), ("--[[", "]]")];

/// Lines that begin with these are directives, not comments, where no language is known.
const HASH_DIRECTIVES: &[&str] = &[
    "#include",
    "#import",
    "#define",
    "#if",
    "#ifdef",
    "#ifndef",
    "#elif",
    "#else",
    "#endif",
    "#pragma",
    "#undef",
    "#line",
    "#error",
    "#warning",
    "#region",
    "#endregion",
    "#nullable",
];

/// The comment markers of a language.
struct Markers {
    /// No language was given; hash directives then stay.
    generic: bool,
    python: bool,
    blocks: Vec<(&'static str, &'static str)>,
    lines: Vec<&'static str>,
}

impl Markers {
    fn of(language: Option<&str>) -> Self {
        let key = language
            .unwrap_or_default()
            .trim_matches(is_space)
            .to_lowercase()
            .replace('_', "-");
        let language = match key.as_str() {
            "c++" => "cpp",
            "c#" | "cs" => "csharp",
            "js" => "javascript",
            "objective-c" | "objectivec" => "objc",
            "py" => "python",
            "ts" => "typescript",
            other => other,
        };
        let (blocks, lines): (&[_], &[_]) = match language {
            "c" | "cpp" | "csharp" | "dart" | "go" | "java" | "javascript" | "kotlin" | "objc"
            | "rust" | "scala" | "solidity" | "swift" | "typescript" => {
                (&GENERIC_BLOCKS[..1], &["//"])
            }
            "php" => (&GENERIC_BLOCKS[..1], &["#", "//"]),
            "julia" | "python" | "r" | "ruby" => (&[], &["#"]),
            "lua" => (&GENERIC_BLOCKS[1..], &["--"]),
            _ => (GENERIC_BLOCKS, &["//", "#"]),
        };
        Self {
            generic: language.is_empty(),
            python: language == "python",
            blocks: blocks.to_vec(),
            lines: lines.to_vec(),
        }
    }
}

/// Drops block comments (each leaves one space and its newlines), then line comments with the white space before them.
pub(super) fn strip(text: &str, language: Option<&str>) -> String {
    let markers = Markers::of(language);
    strip_lines(&strip_blocks(text, &markers), &markers)
}

/// A quoted literal under way.
#[derive(Clone, Copy)]
struct Quote {
    mark: char,
    escaped: bool,
}

impl Quote {
    fn open(c: char) -> Option<Self> {
        matches!(c, '\'' | '"' | '`').then_some(Self {
            mark: c,
            escaped: false,
        })
    }

    /// The state after one more character; `None` once closed. A back quote knows no escapes.
    fn step(self, c: char) -> Option<Self> {
        let escaped = !self.escaped && c == '\\' && self.mark != '`';
        let closed = !self.escaped && !escaped && c == self.mark;
        (!closed).then_some(Self { escaped, ..self })
    }
}

fn strip_blocks(text: &str, markers: &Markers) -> String {
    if markers.blocks.is_empty() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut quote: Option<Quote> = None;
    let mut block: Option<&str> = None;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if let Some(end) = block {
            if rest.starts_with(end) {
                out.push(' ');
                at += end.len();
                block = None;
                continue;
            }
            if c == '\n' {
                out.push(c);
            }
        } else if let Some(open) = quote {
            out.push(c);
            quote = open.step(c);
        } else if let Some(open) = Quote::open(c) {
            out.push(c);
            quote = Some(open);
        } else if let Some((start, end)) = markers
            .blocks
            .iter()
            .find(|(start, _)| rest.starts_with(start))
        {
            out.push(' ');
            at += start.len();
            block = Some(end);
            continue;
        } else if starts_line_comment(text, at, markers) {
            // Quotes and block marks inside a line comment are plain text; the line goes later.
            let end = rest.find('\n').unwrap_or(rest.len());
            out.push_str(&rest[..end]);
            at += end;
            continue;
        } else {
            out.push(c);
        }
        at += c.len_utf8();
    }
    out
}

fn starts_line_comment(text: &str, at: usize, markers: &Markers) -> bool {
    let rest = &text[at..];
    if !markers.lines.iter().any(|marker| rest.starts_with(marker)) {
        return false;
    }
    let directive = rest.starts_with('#')
        && markers.generic
        && HASH_DIRECTIVES.iter().any(|word| rest.starts_with(word))
        && {
            let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
            text[line_start..at].chars().all(is_space)
        };
    !directive
}

fn strip_lines(text: &str, markers: &Markers) -> String {
    let mut out = String::with_capacity(text.len());
    let mut triple: Option<&str> = None;
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
        }
        let kept = strip_line(line, markers, &mut triple);
        out.push_str(kept.trim_end_matches(is_space));
    }
    out
}

/// The line without its comment. `triple` is Python's triple quote that is open across lines.
fn strip_line<'a>(line: &'a str, markers: &Markers, triple: &mut Option<&'a str>) -> &'a str {
    let start = line.trim_start_matches(is_space);
    if markers.generic && HASH_DIRECTIVES.iter().any(|word| start.starts_with(word)) {
        return line;
    }
    let mut quote: Option<Quote> = None;
    let mut escaped = false;
    let mut at = 0;
    while let Some(c) = line[at..].chars().next() {
        let rest = &line[at..];
        if let Some(mark) = *triple {
            if !escaped && rest.starts_with(mark) {
                at += mark.len();
                *triple = None;
                continue;
            }
            escaped = !escaped && c == '\\';
        } else if let Some(open) = quote {
            quote = open.step(c);
        } else if markers.python && (rest.starts_with("'''") || rest.starts_with("\"\"\"")) {
            *triple = Some(&rest[..3]);
            escaped = false;
            at += 3;
            continue;
        } else if let Some(open) = Quote::open(c) {
            quote = Some(open);
        } else if markers.lines.iter().any(|marker| rest.starts_with(marker)) {
            return &line[..at];
        }
        at += c.len_utf8();
    }
    line
}
