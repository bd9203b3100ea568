//! Our values as `serde_json` values, for the wire.

use crate::canonical::Value;

/// The same value for the wire. An integer longer than 64 bits becomes the nearest double, the only form `serde_json`
/// has for it.
pub fn to_serde(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(number) => (*number).into(),
        Value::BigInt(_) => value.as_number().into(),
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
