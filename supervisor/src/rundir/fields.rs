//! Reading our own records back, with errors that name the file and the field.

use proctor_protocol::canonical::Value;
use std::path::{Path, PathBuf};

/// A file of the run directory that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The directory was never made a run.
    #[error("{path} is not a run directory: it has no run.json", path = path.display())]
    NoRun {
        /// The directory.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("could not read {path}: {source}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is not JSON.
    #[error("{path}: {source}", path = path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: proctor_protocol::canonical::ReadError,
    },
    /// It is JSON, but not this record.
    #[error("{path}: field `{field}` must be {wanted}; the file was written by another version or changed by hand", path = path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// The field.
        field: String,
        /// What it must be.
        wanted: &'static str,
    },
    /// A file does not hold what its record promises.
    #[error("{path}: {problem}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// The fields of one record.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    value: &'a Value,
    file: &'a Path,
}

impl<'a> Fields<'a> {
    /// The fields of a record that must carry this schema name.
    ///
    /// # Errors
    /// It carries another.
    pub fn new(
        value: &'a Value,
        file: &'a Path,
        schema: &'static str,
    ) -> Result<Self, RecordError> {
        let fields = Self { value, file };
        if fields.value("schema")?.as_str() == Some(schema) {
            Ok(fields)
        } else {
            Err(fields.wrong("schema", schema))
        }
    }

    /// The fields of an object within a record.
    pub fn within(value: &'a Value, file: &'a Path) -> Self {
        Self { value, file }
    }

    /// The error for a field of the wrong form.
    pub fn wrong(&self, field: &str, wanted: &'static str) -> RecordError {
        RecordError::Field {
            path: self.file.to_path_buf(),
            field: field.to_owned(),
            wanted,
        }
    }

    /// A field of any type.
    ///
    /// # Errors
    /// It is absent.
    pub fn value(&self, field: &str) -> Result<&'a Value, RecordError> {
        self.value
            .get(field)
            .ok_or_else(|| self.wrong(field, "present"))
    }

    /// A text.
    ///
    /// # Errors
    /// It is absent or something else.
    pub fn text(&self, field: &str) -> Result<String, RecordError> {
        let text = self.value(field)?.as_str();
        text.map(str::to_owned)
            .ok_or_else(|| self.wrong(field, "a string"))
    }

    /// An integer.
    ///
    /// # Errors
    /// It is absent or something else.
    pub fn int(&self, field: &str) -> Result<i64, RecordError> {
        self.value(field)?
            .as_int()
            .ok_or_else(|| self.wrong(field, "an integer"))
    }

    /// A number.
    ///
    /// # Errors
    /// It is absent or something else.
    pub fn number(&self, field: &str) -> Result<f64, RecordError> {
        self.value(field)?
            .as_number()
            .ok_or_else(|| self.wrong(field, "a number"))
    }

    /// An array.
    ///
    /// # Errors
    /// It is absent or something else.
    pub fn array(&self, field: &str) -> Result<&'a [Value], RecordError> {
        self.value(field)?
            .as_array()
            .ok_or_else(|| self.wrong(field, "an array"))
    }

    /// A list of small non-negative integers.
    ///
    /// # Errors
    /// It is absent or something else.
    pub fn indexes(&self, field: &str) -> Result<Vec<usize>, RecordError> {
        let wrong = || self.wrong(field, "a list of non-negative integers");
        let index = |value: &Value| {
            value
                .as_int()
                .and_then(|number| usize::try_from(number).ok())
        };
        self.array(field)?
            .iter()
            .map(|value| index(value).ok_or_else(wrong))
            .collect()
    }

    /// A list of texts.
    ///
    /// # Errors
    /// It is absent or something else.
    pub fn texts(&self, field: &str) -> Result<Vec<String>, RecordError> {
        let wrong = || self.wrong(field, "a list of strings");
        let text = |value: &Value| value.as_str().map(str::to_owned);
        self.array(field)?
            .iter()
            .map(|value| text(value).ok_or_else(wrong))
            .collect()
    }
}
