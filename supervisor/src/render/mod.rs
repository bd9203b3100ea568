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

/// Seconds for people: `0.042 s`, `12.3 s`, `4 min 05 s`.
pub fn seconds(value: f64) -> String {
    if value < 10.0 {
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
    fn control_characters_cannot_reach_the_terminal() {
        assert_eq!(
            plain("a\u{1b}[31mb\tc\n\u{202e}d"),
            "a\\u{1b}[31mb c\\u{a}\\u{202e}d"
        );
        assert_eq!(plain("é - ok"), "é - ok");
    }

    #[test]
    fn seconds_are_short() {
        assert_eq!(seconds(0.0421), "0.042 s");
        assert_eq!(seconds(12.34), "12.3 s");
        assert_eq!(seconds(245.2), "4 min 05 s");
    }
}
