//! What people see: data on stdout, everything about the way there on stderr.

pub mod output;
pub mod progress;
pub mod results;
pub mod sentence;
pub mod table;

use std::fmt::Write;

/// Text of others made harmless for a terminal: control characters become visible escapes, tabs become spaces.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => out.push(' '),
            // Direction overrides could make a line read as another one.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// The most characters of somebody's text that a message repeats.
const BRIEF: usize = 200;

/// [`plain`] text, cut where it is long: for names and paths that a message repeats.
pub fn brief(text: &str) -> String {
    let mut characters = text.chars();
    let start: String = characters.by_ref().take(BRIEF).collect();
    let mut out = plain(&start);
    if characters.next().is_some() {
        out.push_str("...");
    }
    out
}

/// The most characters of one word of a message.
const WORD: usize = 400;
/// The most characters of a message.
const MESSAGE: usize = 4000;

/// A line of a message made fit to be shown: harmless, and with a bound however long the input was that it repeats. A
/// long word, which is somebody's path or name, loses its middle, so that what is said about it stays.
pub fn message(line: &str) -> String {
    let words = line.split(' ').map(|word| {
        let length = word.chars().count();
        if length <= WORD {
            return plain(word);
        }
        let start: String = word.chars().take(WORD / 2).collect();
        let end: String = word.chars().skip(length - WORD / 4).collect();
        format!("{}...{}", plain(&start), plain(&end))
    });
    let text = words.collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MESSAGE) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// A number with its noun: `1 core`, `2 cores`.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = match (number, noun) {
        (1, _) => "",
        (_, "process") => "es",
        _ => "s",
    };
    format!("{number} {noun}{plural}")
}

/// Seconds for people: `0.042 s`, `12.3 s`, `4 min 05 s`.
pub fn seconds(value: f64) -> String {
    if value >= 1e9 || (value > 0.0 && value < 0.0005) {
        format!("{value:e} s")
    } else if value < 10.0 {
        format!("{value:.3} s")
    } else if value < 120.0 {
        format!("{value:.1} s")
    } else {
        let whole = value.round() as u64;
        format!("{} min {:02} s", whole / 60, whole % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!(counted(1, "core"), "1 core");
        assert_eq!(counted(0, "core"), "0 cores");
        assert_eq!(counted(2, "process"), "2 processes");
    }

    #[test]
    fn control_characters_cannot_reach_the_terminal() {
        assert_eq!(
            plain("a\u{1b}[31mb\tc\n\u{202e}d"),
            "a\\u{1b}[31mb c\\u{a}\\u{202e}d"
        );
        assert_eq!(plain("é - ok"), "é - ok");
    }

    #[test]
    fn what_is_long_is_cut() {
        assert_eq!(brief("a\nb"), "a\\u{a}b");
        assert_eq!(brief(&"x".repeat(10_000)), "x".repeat(200) + "...");
    }

    #[test]
    fn a_message_keeps_its_reason_however_long_the_name_is() {
        let text = message(&format!("{}/end: it is too long\u{7}", "y".repeat(9000)));
        assert!(text.ends_with("/end: it is too long\\u{7}"), "{text}");
        assert!(text.len() < 500, "{}", text.len());
        assert!(message(&"a ".repeat(9000)).len() < 4100);
        assert_eq!(message("error: short"), "error: short");
    }

    #[test]
    fn seconds_are_short() {
        assert_eq!(seconds(0.0421), "0.042 s");
        assert_eq!(seconds(12.34), "12.3 s");
        assert_eq!(seconds(245.2), "4 min 05 s");
        assert_eq!(
            (seconds(1e308), seconds(1e-320)),
            ("1e308 s".into(), "1e-320 s".into())
        );
        assert_eq!(seconds(0.0), "0.000 s");
    }
}
