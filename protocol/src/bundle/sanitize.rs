//! What is cut from descriptive parts of a bundle before it is published (specs/matheel.md section f).

use crate::canonical::Value;
use crate::public_metadata::is_credential_key;

/// Keys whose text is a local path: only the last component is kept.
const PATH_KEYS: [&str; 4] = [
    "path",
    "algorithm_path",
    "destination",
    "adapted_destination",
];

/// The last component of a path of either kind of system.
fn last_component(path: &str) -> &str {
    path.rsplit(['/', '\\'])
        .find(|part| !part.is_empty())
        .unwrap_or(path)
}

/// True for text that names a place on this machine.
fn is_local(text: &str) -> bool {
    let text = text.trim();
    let drive = text.as_bytes().get(1) == Some(&b':');
    text.starts_with(['/', '.', '~', '\\']) || drive
}

/// A copy without credentials and local paths.
pub(super) fn sanitized(value: &Value) -> Value {
    sanitized_at(value, "")
}

fn sanitized_at(value: &Value, key: &str) -> Value {
    match value {
        Value::Object(object) => Value::Object(
            object
                .iter()
                .map(|(key, item)| {
                    let item = if is_credential_key(key) {
                        "<redacted>".into()
                    } else {
                        sanitized_at(item, key)
                    };
                    (key, item)
                })
                .collect(),
        ),
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| sanitized_at(item, key)).collect())
        }
        Value::String(text)
            if PATH_KEYS.contains(&key) || (key == "identifier" && is_local(text)) =>
        {
            last_component(text).into()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    #[test]
    fn paths_keep_their_last_component_and_credentials_are_blanked() {
        let value = object! {
            "path" => "/home/u/data/set",
            "identifier" => "IR-Plag",
            "spec" => object! { "identifier" => "./x/y", "HF-Token" => "abc", "algorithm_path" => "C:\\m\\a.py" },
            "note" => "/left/alone",
        };
        let expected = object! {
            "path" => "set",
            "identifier" => "IR-Plag",
            "spec" => object! { "identifier" => "y", "HF-Token" => "<redacted>", "algorithm_path" => "a.py" },
            "note" => "/left/alone",
        };
        assert_eq!(sanitized(&value), expected);
    }
}
