//! Our values as `serde_json` values, for the wire.

use crate::canonical::Value;
use crate::input::{index, member};

/// The same value for the wire, exactly: methods whose configuration holds an integer too long for it were refused.
pub fn to_serde(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(number) => (*number).into(),
        Value::BigInt(digits) => match digits.parse::<u64>() {
            Ok(number) => number.into(),
            Err(_) => value.as_number().into(),
        },
        Value::Float(number) => (*number).into(),
        Value::String(text) => text.as_ref().into(),
        Value::Array(items) => items.iter().map(to_serde).collect(),
        Value::Object(object) => object
            .iter()
            .map(|(key, item)| (key.to_owned(), to_serde(item)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

/// Where a value holds an integer of more than 64 bits, which `serde_json` could only round.
pub(super) fn too_long(value: &Value) -> Option<String> {
    let inside = |place: String, value| {
        let below = too_long(value)?;
        Some(match (place.is_empty(), below.starts_with('[')) {
            (true, _) => below,
            (false, true) => format!("{place}{below}"),
            (false, false) if below.is_empty() => place,
            (false, false) => member(&place, &below),
        })
    };
    match value {
        Value::BigInt(digits) => digits.parse::<u64>().is_err().then(String::new),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(at, item)| inside(index("", at), item)),
        Value::Object(object) => object
            .iter()
            .find_map(|(key, item)| inside(key.to_owned(), item)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::read;

    #[test]
    fn integers_arrive_exactly_or_are_found() {
        let value = read(b"{\"a\":[18446744073709551615,-9223372036854775808]}").unwrap();
        assert_eq!(too_long(&value), None);
        let text = to_serde(&value).to_string();
        assert_eq!(text, "{\"a\":[18446744073709551615,-9223372036854775808]}");
        for (text, place) in [
            ("{\"a\":[1,{\"b\":18446744073709551616}]}", "a[1].b"),
            ("{\"a\":{\"b\":[-9223372036854775809]}}", "a.b[0]"),
            ("{\"a\":18446744073709551616}", "a"),
        ] {
            let found = too_long(&read(text.as_bytes()).unwrap());
            assert_eq!(found.as_deref(), Some(place));
        }
    }
}
