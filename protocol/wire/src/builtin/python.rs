//! JSON values read the way Python's conversions read them.

use super::{Refusal, invalid};
use serde_json::Value;

/// Python's `str.strip()`: Unicode white space and the separators U+001C to U+001F.
pub(super) fn strip(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

/// The non-empty parts between commas, stripped.
pub(super) fn comma_list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(strip).filter(|part| !part.is_empty())
}

/// Python's truth of a value.
pub(super) fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(values) => !values.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

/// Python's `float()` of a number, a truth value or ASCII text; `None` where it raises.
pub(super) fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => float_text(text),
        _ => None,
    }
}

fn float_text(text: &str) -> Option<f64> {
    let text = strip(text);
    let bytes = text.as_bytes();
    let digit = |at: Option<&u8>| at.is_some_and(u8::is_ascii_digit);
    let between_digits = bytes.iter().enumerate().all(|(at, &byte)| {
        byte != b'_' || (at > 0 && digit(bytes.get(at - 1)) && digit(bytes.get(at + 1)))
    });
    if !between_digits {
        return None;
    }
    text.replace('_', "").parse().ok()
}

/// Matheel's positive integer option: `float()` must be finite, integral and at least 1.
pub(super) fn positive_integer(name: &str, value: &Value) -> Result<usize, Refusal> {
    match float(value) {
        Some(number) if number.is_finite() && number >= 1.0 && number.fract() == 0.0 => {
            // Casting saturates; no text has as many tokens.
            Ok(number as usize)
        }
        _ => Err(invalid(format!("{name} must be a positive integer"))),
    }
}
