//! The writers in Python's form (specs/matheel.md section 0) and the digest.

use std::io;

use sha2::{Digest, Sha256};

use super::Value;

/// The canonical text: sorted keys, no spaces, non-ASCII raw.
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    push_value(&mut out, value, Form::Canonical, 0);
    out
}

/// The lower-case hex SHA-256 of the canonical text.
pub fn digest(value: &Value) -> String {
    sha256_hex(canonical(value).as_bytes())
}

/// The text Python's `json.dumps(value, indent=2, sort_keys=True)` gives: ASCII-escaped, no final newline.
pub fn pretty(value: &Value) -> String {
    let mut out = String::new();
    push_value(&mut out, value, Form::Pretty, 0);
    out
}

/// Writes what [`pretty`] gives, without holding the whole text.
///
/// # Errors
/// Whatever `out` answers.
pub fn write_pretty(out: &mut dyn io::Write, value: &Value) -> io::Result<()> {
    let mut buffer = String::new();
    write_pretty_at(out, &mut buffer, value, 0)?;
    out.write_all(buffer.as_bytes())
}

fn write_pretty_at(
    out: &mut dyn io::Write,
    buffer: &mut String,
    value: &Value,
    level: usize,
) -> io::Result<()> {
    const ENOUGH: usize = 64 << 10;
    match value {
        Value::Array(items) if !items.is_empty() => {
            buffer.push('[');
            for (n, item) in items.iter().enumerate() {
                push_separator(buffer, n, Form::Pretty, level + 1);
                write_pretty_at(out, buffer, item, level + 1)?;
            }
            push_close(buffer, ']', Form::Pretty, level);
        }
        Value::Object(object) if !object.is_empty() => {
            buffer.push('{');
            for (n, (key, item)) in object.iter().enumerate() {
                push_separator(buffer, n, Form::Pretty, level + 1);
                push_ascii(buffer, key);
                buffer.push_str(": ");
                write_pretty_at(out, buffer, item, level + 1)?;
            }
            push_close(buffer, '}', Form::Pretty, level);
        }
        other => push_value(buffer, other, Form::Pretty, level),
    }
    if buffer.len() > ENOUGH {
        out.write_all(buffer.as_bytes())?;
        buffer.clear();
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Canonical,
    Pretty,
}

fn push_value(out: &mut String, value: &Value, form: Form, level: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Int(number) => push_int(out, *number),
        Value::BigInt(digits) => out.push_str(digits),
        Value::Float(number) => push_float(out, *number),
        Value::String(text) => push_text(out, text, form),
        Value::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                push_separator(out, n, form, level + 1);
                push_value(out, item, form, level + 1);
            }
            if items.is_empty() {
                out.push(']');
            } else {
                push_close(out, ']', form, level);
            }
        }
        Value::Object(object) => {
            out.push('{');
            for (n, (key, item)) in object.iter().enumerate() {
                push_separator(out, n, form, level + 1);
                push_text(out, key, form);
                out.push_str(if form == Form::Pretty { ": " } else { ":" });
                push_value(out, item, form, level + 1);
            }
            if object.is_empty() {
                out.push('}');
            } else {
                push_close(out, '}', form, level);
            }
        }
    }
}

fn push_separator(out: &mut String, n: usize, form: Form, level: usize) {
    if n > 0 {
        out.push(',');
    }
    push_indent(out, form, level);
}

fn push_close(out: &mut String, close: char, form: Form, level: usize) {
    push_indent(out, form, level);
    out.push(close);
}

fn push_indent(out: &mut String, form: Form, level: usize) {
    if form == Form::Pretty {
        out.push('\n');
        for _ in 0..level {
            out.push_str("  ");
        }
    }
}

fn push_text(out: &mut String, text: &str, form: Form) {
    match form {
        Form::Canonical => push_raw(out, text),
        Form::Pretty => push_ascii(out, text),
    }
}

/// Appends an integer as JSON.
fn push_int(out: &mut String, number: i64) {
    use std::fmt::Write as _;
    // Writing to a String cannot fail.
    let _ = write!(out, "{number}");
}

/// Appends a text as a canonical JSON string: only `"`, `\` and U+0000..U+001F are escaped.
pub(crate) fn push_raw(out: &mut String, text: &str) {
    out.push('"');
    let bytes = text.as_bytes();
    let mut done = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte == b'"' || byte == b'\\' || byte < 0x20 {
            out.push_str(&text[done..at]);
            push_escape(out, byte);
            done = at + 1;
        }
    }
    out.push_str(&text[done..]);
    out.push('"');
}

/// Appends a text as Python's `ensure_ascii` does: everything outside U+0020..U+007E is escaped.
fn push_ascii(out: &mut String, text: &str) {
    out.push('"');
    let mut done = 0;
    for (at, character) in text.char_indices() {
        if (' '..='~').contains(&character) && character != '"' && character != '\\' {
            continue;
        }
        out.push_str(&text[done..at]);
        done = at + character.len_utf8();
        if character.is_ascii() && character != '\u{7f}' {
            push_escape(out, character as u8);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                push_hex4(out, *unit);
            }
        }
    }
    out.push_str(&text[done..]);
    out.push('"');
}

fn push_escape(out: &mut String, byte: u8) {
    match byte {
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        b'\n' => out.push_str("\\n"),
        b'\r' => out.push_str("\\r"),
        b'\t' => out.push_str("\\t"),
        0x08 => out.push_str("\\b"),
        0x0c => out.push_str("\\f"),
        other => push_hex4(out, u16::from(other)),
    }
}

fn push_hex4(out: &mut String, unit: u16) {
    out.push_str("\\u");
    for shift in [12, 8, 4, 0] {
        out.push(HEX[usize::from(unit >> shift & 0xf)]);
    }
}

const HEX: [char; 16] = [
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
];

/// Python's `repr` of a double. What is not finite gives `nan`, `inf` or `-inf`, as there.
pub fn float_text(value: f64) -> String {
    let mut out = String::new();
    push_float(&mut out, value);
    out
}

/// Appends [`float_text`].
///
/// The digits are those of zmij (shortest, ties as Python breaks them, which the standard library does not), laid out
/// by Python's rule: positional when 1e-4 <= |x| < 1e16, else an exponent with a sign and at least two digits.
pub(crate) fn push_float(out: &mut String, value: f64) {
    if !value.is_finite() {
        out.push_str(if value.is_nan() {
            "nan"
        } else if value > 0.0 {
            "inf"
        } else {
            "-inf"
        });
        return;
    }
    let mut buffer = zmij::Buffer::new();
    let printed = buffer.format_finite(value);
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-4..1e16).contains(&magnitude) {
        out.push_str(printed);
    } else {
        push_exponent_form(out, printed);
    }
}

/// Lays out the digits of a number outside the positional range: `d.ddde-05`, `de+16`.
fn push_exponent_form(out: &mut String, printed: &str) {
    let (mantissa, exponent) = printed.split_once('e').unwrap_or((printed, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let mut digits = String::with_capacity(24);
    // The power of ten of the first digit that is not zero.
    let mut power = exponent - 1;
    let mut fraction = false;
    for character in mantissa.chars() {
        match character {
            '-' => out.push('-'),
            '.' => fraction = true,
            '0' if digits.is_empty() => power -= i64::from(fraction),
            digit => {
                digits.push(digit);
                power += i64::from(!fraction);
            }
        }
    }
    let digits = digits.trim_end_matches('0');
    let (first, rest) = digits.split_at(1.min(digits.len()));
    out.push_str(first);
    if !rest.is_empty() {
        out.push('.');
        out.push_str(rest);
    }
    out.push_str(if power < 0 { "e-" } else { "e+" });
    if power.abs() < 10 {
        out.push('0');
    }
    push_int(out, power.abs());
}

/// Lower-case hex SHA-256 of bytes.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Lower-case hex of bytes.
pub fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]])
        .collect()
}

/// True of 64 lower-case hex digits.
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
