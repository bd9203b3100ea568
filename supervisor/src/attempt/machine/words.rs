//! A stranger's words, made fit for records and terminals.

use proctor_wire::WireError;

/// How many characters of a line are shown.
const SHOWN: usize = 80;
/// How many characters of the reader's complaint are shown.
const REASON: usize = 200;

/// Text of the worker's for records: bounded, and without characters that would control a terminal or turn the
/// direction of writing.
pub(super) fn clean(text: &str, limit: usize) -> String {
    text.chars()
        .map(|c| if controls(c) { ' ' } else { c })
        .take(limit)
        .collect()
}

fn controls(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The start of a line, escaped and in quotes.
pub(super) fn quote(line: &[u8]) -> String {
    // A character has at most four bytes, so what is shown is never cut in the middle of one.
    let start = String::from_utf8_lossy(&line[..line.len().min(4 * SHOWN + 4)]).into_owned();
    let mut shown: String = start.chars().take(SHOWN).collect();
    if shown.len() < start.len() {
        shown.push_str("...");
    }
    format!("{shown:?}")
}

/// What is wrong with a line that is no message, to follow its number.
pub(super) fn no_message(error: &WireError, line: &[u8]) -> String {
    let reason = match error {
        WireError::Malformed(reason) => reason.replace(" at line 1 column ", " at column "),
        other => other.to_string(),
    };
    let reason = clean(&reason, REASON);
    format!("is not a message: {} ({reason})", quote(line))
}
