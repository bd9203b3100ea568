//! A payload as somebody wrote it: not judged yet, its rows held compactly.

use std::path::Path;

use super::cells::RawRows;
use crate::canonical::{Limits, Object, ReadError, Value, read_streaming};
use crate::input::{InputError, read_file};

/// A payload that may hold anything.
#[derive(Debug, Default)]
pub struct Payload {
    /// Everything but the rows.
    pub(super) frame: Object,
    pub(super) rows: RawRows,
}

const ROWS: &str = "per_dataset";

impl Payload {
    /// Reads a payload file.
    ///
    /// # Errors
    /// The file cannot be read, or is not one JSON object.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let limits = Limits::default();
        let bytes = read_file(path, limits.bytes)?;
        Self::read(&bytes, limits).map_err(|source| InputError::Json {
            path: path.to_owned(),
            source,
        })
    }

    /// Reads a payload. Its rows are taken in one by one.
    ///
    /// # Errors
    /// The text is not one JSON object.
    pub fn read(bytes: &[u8], limits: Limits) -> Result<Self, ReadError> {
        let mut rows = RawRows::default();
        match read_streaming(bytes, limits, ROWS, &mut |item| rows.push(&item))? {
            Value::Object(frame) => Ok(Self { frame, rows }),
            other => Err(ReadError {
                line: 1,
                column: 1,
                problem: format!("the document is {}, not an object", other.type_name()),
            }),
        }
    }

    /// False of a document that has nothing a bundle has: it is something else, and no verdict is due.
    pub fn is_bundle(&self) -> bool {
        self.frame.contains_key("metadata")
            || self.frame.contains_key(ROWS)
            || !self.rows.is_empty()
    }

    /// Its metadata; `null` when there is none.
    pub fn metadata(&self) -> &Value {
        static NULL: Value = Value::Null;
        self.frame.get("metadata").unwrap_or(&NULL)
    }

    /// Its metadata, to change it before it is judged; `None` when it is no object.
    pub fn metadata_mut(&mut self) -> Option<&mut Object> {
        self.frame.get_mut("metadata")?.as_object_mut()
    }
}

impl From<&Value> for Payload {
    /// A value that is no object gives an empty payload, which no rule accepts.
    fn from(value: &Value) -> Self {
        let mut payload = Self::default();
        for (key, member) in value.as_object().into_iter().flat_map(Object::iter) {
            match member {
                Value::Array(items) if key == ROWS => {
                    for item in items {
                        payload.rows.push(item);
                    }
                }
                member => drop(payload.frame.insert(key, member.clone())),
            }
        }
        payload
    }
}
