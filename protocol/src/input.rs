//! How an input of ours (manifest, protocol, methods file) is read, and how it is refused.

use std::path::{Path, PathBuf};

use crate::canonical::{Limits, ReadError, Value, read_with};

/// What was refused, where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The file, where one is known.
    pub file: Option<PathBuf>,
    /// The field, like `datasets[2].source_revision`; empty for the whole document.
    pub field: String,
    /// What is wrong and what to do.
    pub problem: String,
}

impl Refusal {
    /// A refusal of a field of a document whose file the caller will name with [`InputError::in_file`].
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            file: None,
            field: field.into(),
            problem: problem.into(),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.problem)
    }
}

/// Why a manifest, a protocol, a methods file or the data behind them is refused.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file cannot be read at all.
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is not one JSON document.
    #[error("{}: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Line, column and problem.
        source: ReadError,
    },
    /// A field breaks a rule.
    #[error("{0}")]
    Refused(Refusal),
}

impl InputError {
    /// Names the file in a refusal that has none yet.
    #[must_use]
    pub fn in_file(mut self, path: &Path) -> Self {
        if let Self::Refused(refusal) = &mut self
            && refusal.file.is_none()
        {
            refusal.file = Some(path.to_owned());
        }
        self
    }
}

impl From<Refusal> for InputError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Reads one JSON document from a file.
///
/// # Errors
/// The file cannot be read, is longer than the limits allow, or is not one JSON document.
pub fn read_json(path: &Path, limits: Limits) -> Result<Value, InputError> {
    let bytes = read_file(path, limits.bytes)?;
    read_with(&bytes, limits).map_err(|source| InputError::Json {
        path: path.to_owned(),
        source,
    })
}

/// Reads a file of at most `most` bytes, and one byte more of a longer one: enough for a reader to say so.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn read_file(path: &Path, most: usize) -> Result<Vec<u8>, InputError> {
    let unreadable = |source| InputError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0).min(most) + 1);
    std::io::Read::read_to_end(&mut std::io::Read::take(file, most as u64 + 1), &mut bytes)
        .map_err(unreadable)?;
    Ok(bytes)
}

/// The name of a member: `split_policy.type`.
pub(crate) fn member(field: &str, key: &str) -> String {
    if field.is_empty() {
        key.to_owned()
    } else {
        format!("{field}.{key}")
    }
}

/// The name of an item: `datasets[2]`.
pub(crate) fn index(field: &str, at: usize) -> String {
    format!("{field}[{at}]")
}
