//! `metadata.json`: what a dataset says of itself. It is not part of the content fingerprint.

use super::field::quoted;
use proctor_wire::Family;

use crate::canonical::{Limits, Object, Value, py_lower, py_strip, read_with};

/// Metadata after normalisation.
#[derive(Debug, Clone, PartialEq)]
pub struct Metadata {
    /// The domain, such as `plagiarism`: lower-case snake case.
    pub task_type: String,
    /// Everything, with `task_type` and `dataset_kind` as normalised.
    pub object: Object,
}

/// The dataset kind that goes with a task family.
fn kind_of(family: Family) -> &'static str {
    match family {
        Family::Pair => "pair_classification",
        Family::Retrieval => "retrieval",
    }
}

impl Metadata {
    /// Reads the bytes of `metadata.json`; `None` when the dataset has none.
    ///
    /// # Errors
    /// What is wrong: not a JSON object, a `task_type` that is not a domain, or a `dataset_kind` that does not fit.
    pub fn read(bytes: Option<&[u8]>, family: Family) -> Result<Self, String> {
        let limits = Limits {
            bytes: 16 << 20,
            ..Limits::default()
        };
        let value = match bytes {
            Some(bytes) => read_with(bytes, limits).map_err(|error| error.to_string())?,
            None => Value::Null,
        };
        let mut object = match value {
            Value::Object(object) => object,
            other if !other.truthy() => Object::new(),
            other => return Err(format!("must be an object, not {}", other.type_name())),
        };
        let task_type = task_type(object.get("task_type"))?;
        let kind = match object.get("dataset_kind").filter(|value| value.truthy()) {
            None => kind_of(family).to_owned(),
            Some(Value::String(text)) => py_lower(py_strip(text)),
            Some(other) => {
                return Err(format!(
                    "dataset_kind must be a string, not {}",
                    other.type_name()
                ));
            }
        };
        if kind != kind_of(family) {
            return Err(format!(
                "dataset_kind is {}, but a {} dataset must say {:?} or nothing",
                quoted(&kind),
                family.name(),
                kind_of(family)
            ));
        }
        object.insert("task_type", task_type.as_str());
        object.insert("dataset_kind", kind);
        Ok(Self { task_type, object })
    }
}

/// Normalises a `task_type`; absent means `plagiarism`.
///
/// # Errors
/// What is wrong with it.
pub fn task_type(value: Option<&Value>) -> Result<String, String> {
    let text = match value {
        None | Some(Value::Null) => return Ok("plagiarism".into()),
        Some(Value::String(text)) => py_lower(py_strip(text)),
        Some(other) => {
            return Err(format!(
                "task_type must be a string, not {}",
                other.type_name()
            ));
        }
    };
    let mut bytes = text.bytes();
    let snake = bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if !snake {
        return Err(format!(
            "task_type {} must be a snake_case domain, such as \"plagiarism\"",
            quoted(&text)
        ));
    }
    if ["pair", "pair_classification", "retrieval"].contains(&text.as_str()) {
        return Err(format!(
            "task_type {text:?} names a task family; it must name a domain, such as \"plagiarism\""
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_and_refusals() {
        let read = |text: &str, family| Metadata::read(Some(text.as_bytes()), family);
        let plain = Metadata::read(None, Family::Pair).unwrap();
        assert_eq!(plain.task_type, "plagiarism");
        assert_eq!(
            plain.object.get("dataset_kind").and_then(Value::as_str),
            Some("pair_classification")
        );
        for text in [
            "{}",
            "null",
            "[]",
            "{\"task_type\": null, \"dataset_kind\": \"\"}",
        ] {
            assert_eq!(read(text, Family::Pair).unwrap(), plain, "{text}");
        }
        let other = read("{\"task_type\": \" Code_Clones2 \"}", Family::Retrieval).unwrap();
        assert_eq!(other.task_type, "code_clones2");
        for text in [
            "[1]",
            "\"x\"",
            "{\"task_type\": \"\"}",
            "{\"task_type\": 1}",
            "{\"task_type\": \"2a\"}",
            "{\"task_type\": \"a-b\"}",
            "{\"task_type\": \"é\"}",
            "{\"task_type\": \"Pair\"}",
            "{\"dataset_kind\": \"retrieval\"}",
            "{\"dataset_kind\": 3}",
            "{\"a\": 1, \"a\": 1}",
            "{",
        ] {
            assert!(read(text, Family::Pair).is_err(), "{text}");
        }
    }
}
