//! How an input of ours (manifest, protocol, methods file) is read, and how it is refused.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
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

/// Reads one JSON document from a regular file.
///
/// # Errors
/// The file cannot be read, is no regular file, is longer than the limits allow, or is not one JSON document.
pub fn read_json(path: &Path, limits: Limits) -> Result<Value, InputError> {
    parse(path, &read_file(path, limits.bytes)?, limits)
}

/// Reads one JSON document from a file that the user named: a pipe without a name will do too, as a shell's `<(...)` makes
/// one.
///
/// # Errors
/// As [`read_json`].
pub fn read_named_json(path: &Path, limits: Limits) -> Result<Value, InputError> {
    let bytes = open_named(path)
        .and_then(|file| read_at_most(file, limits.bytes))
        .map_err(|source| unreadable(path, source))?;
    parse(path, &bytes, limits)
}

fn parse(path: &Path, bytes: &[u8], limits: Limits) -> Result<Value, InputError> {
    read_with(bytes, limits).map_err(|source| InputError::Json {
        path: path.to_owned(),
        source,
    })
}

/// Reads a regular file of at most `most` bytes, and one byte more of a longer one: enough for a reader to say so.
///
/// # Errors
/// The file cannot be read, or is no regular file.
pub(crate) fn read_file(path: &Path, most: usize) -> Result<Vec<u8>, InputError> {
    open_regular(path)
        .and_then(|file| read_at_most(file, most))
        .map_err(|source| unreadable(path, source))
}

fn unreadable(path: &Path, source: io::Error) -> InputError {
    InputError::Unreadable {
        path: path.to_owned(),
        source,
    }
}

fn read_at_most(file: File, most: usize) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0).min(most) + 1);
    io::Read::read_to_end(&mut io::Read::take(file, most as u64 + 1), &mut bytes)?;
    Ok(bytes)
}

/// Opens a regular file for reading. A pipe or device in its place is refused, and never waited for.
///
/// # Errors
/// The file cannot be opened, or is something else than a regular file, which the error names.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Asked first, since opening a device can have effects of its own; and again of what was really opened.
    check_regular(&std::fs::metadata(path)?)?;
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    check_regular(&file.metadata()?)?;
    Ok(file)
}

fn check_regular(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let problem = format!("is {}, not a regular file", kind_name(metadata));
    Err(io::Error::new(io::ErrorKind::InvalidInput, problem))
}

fn open_named(path: &Path) -> io::Result<File> {
    let metadata = std::fs::metadata(path)?;
    // A shell's pipe has its writer from the start. One with a name in a folder may wait for its writer for ever.
    if metadata.file_type().is_fifo() && metadata.dev() == pipe_device()? {
        return File::open(path);
    }
    open_regular(path)
}

/// Where the kernel keeps pipes that have no name.
fn pipe_device() -> io::Result<u64> {
    let (reader, _writer) = io::pipe()?;
    Ok(File::from(OwnedFd::from(reader)).metadata()?.dev())
}

fn kind_name(metadata: &Metadata) -> &'static str {
    let kind = metadata.file_type();
    if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{Dataset, Family};

    /// Makes a named pipe that nobody writes to.
    fn pipe(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    }

    #[test]
    fn a_pipe_or_folder_in_place_of_a_file_is_named_and_never_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.json");
        pipe(&path);
        for read in [read_json, read_named_json] {
            let text = read(&path, Limits::default()).unwrap_err().to_string();
            assert!(text.contains("a named pipe, not a regular file"), "{text}");
        }
        let text = read_json(folder.path(), Limits::default())
            .unwrap_err()
            .to_string();
        assert!(text.contains("a directory, not a regular file"), "{text}");
        let data = Dataset::load(folder.path(), Family::Pair).unwrap_err();
        assert!(data.to_string().contains("files.csv"), "{data}");
        pipe(&folder.path().join("files.csv"));
        let text = Dataset::load(folder.path(), Family::Pair)
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("files.csv") && text.contains("a named pipe"),
            "{text}"
        );
    }

    #[test]
    fn the_pipe_of_a_shell_is_read() {
        use std::io::Write as _;
        use std::os::fd::AsRawFd as _;
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"[1]").unwrap();
        drop(writer);
        let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
        let value = read_named_json(&path, Limits::default()).unwrap();
        assert_eq!(value, Value::Array(vec![Value::Int(1.into())]));
    }
}
