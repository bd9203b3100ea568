//! Python's `str`, `float` and `int` of JSON values: Matheel's manifests may say `"2"` or `2.9` where a number is meant.

use crate::canonical::{Value, float_text, py_float, py_strip};

/// `str(value)` of a text, number or truth value; `None` for the rest, whose text nobody means.
pub(crate) fn text(value: &Value) -> Option<String> {
    Some(match value {
        Value::String(text) => text.to_string(),
        Value::Int(number) => number.to_string(),
        Value::BigInt(digits) => digits.to_string(),
        Value::Float(number) => float_text(*number),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    })
}

/// `float(value)` where it is finite; `None` where Python raises or gives no finite number.
pub(crate) fn finite(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        Value::String(text) => py_float(text),
        number => number.as_number(),
    }
    .filter(|number| number.is_finite())
}

/// `int(value)` where it has 64 bits; floats are cut towards zero. `None` where Python raises or the number is longer.
pub(crate) fn int(value: &Value) -> Option<i64> {
    /// 2 to the power of 63: the first double that is too large.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    match value {
        Value::Int(number) => Some(*number),
        Value::Bool(value) => Some(i64::from(*value)),
        Value::Float(number) => (number.abs() < LIMIT).then_some(number.trunc() as i64),
        Value::String(text) => int_text(py_strip(text)),
        _ => None,
    }
}

/// The integer grammar of Python's `int(text)`, in ASCII digits.
fn int_text(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let plain = digits
        .split('_')
        .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    plain.then(|| text.replace('_', "").parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_python_reads_them() {
        let s = |text: &str| Value::from(text);
        assert_eq!(int(&s(" +1_0 ")), Some(10));
        assert_eq!(int(&s("-0")), Some(0));
        assert_eq!(int(&Value::Float(2.9)), Some(2));
        assert_eq!(int(&Value::Float(-2.9)), Some(-2));
        assert_eq!(int(&Value::Bool(true)), Some(1));
        assert_eq!(int(&Value::Float(1e300)), None);
        for wrong in [
            "", "+", "ten", "1.0", "1__0", "_1", "1_", "- 1", "0x1", "+-1",
        ] {
            assert_eq!(int(&s(wrong)), None, "{wrong:?}");
        }
        assert_eq!(finite(&s(" 0.25 ")), Some(0.25));
        assert_eq!(finite(&s("inf")), None);
        assert_eq!(finite(&Value::Bool(true)), Some(1.0));
        assert_eq!(finite(&Value::BigInt("1".repeat(400).into())), None);
        assert_eq!(finite(&Value::Null), None);
        assert_eq!(text(&Value::Float(1e16)).as_deref(), Some("1e+16"));
        assert_eq!(text(&Value::Bool(false)).as_deref(), Some("False"));
        assert_eq!(text(&Value::Null), None);
    }
}
