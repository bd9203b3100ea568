//! Source files: where they may lie, and their text.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use super::field::{path_parts, quoted};
use crate::input::open_regular;

/// The longest source file, in bytes.
const MAX_SOURCE_BYTES: u64 = 256 << 20;

/// Reads a whole regular file of at most `limit` bytes.
///
/// # Errors
/// What the system answers, or that the file is no regular file or too large.
pub(super) fn read_regular_file(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let size = file.metadata()?.len();
    let mut bytes = Vec::with_capacity(size.min(limit) as usize + 1);
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("the file has more than the {limit} bytes allowed"),
        ));
    }
    Ok(bytes)
}

/// Reads the source of every row of `files.csv`, in row order, from below the resolved folder `root`.
///
/// # Errors
/// The first row, counted from 0, whose file is missing, is not a regular file, leaves the folder, or cannot be read.
pub(super) fn read_all<'a>(
    root: &Path,
    paths: impl Iterator<Item = &'a str>,
) -> Result<Vec<Arc<str>>, (usize, String)> {
    let mut folders = Folders::new(root);
    let places: Vec<Result<PathBuf, String>> = paths.map(|path| folders.place(path)).collect();
    let texts: Vec<Result<Arc<str>, String>> = places
        .into_par_iter()
        .with_min_len(16)
        .map(|place| {
            let bytes = read_regular(root, &place?)?;
            Ok(decode(bytes).into())
        })
        .collect();
    texts
        .into_iter()
        .enumerate()
        .map(|(row, text)| text.map_err(|problem| (row, problem)))
        .collect()
}

/// Resolved folders below the root: each is resolved once, however many files it holds.
struct Folders<'a> {
    root: &'a Path,
    resolved: HashMap<Vec<String>, Result<PathBuf, String>>,
}

impl<'a> Folders<'a> {
    fn new(root: &'a Path) -> Self {
        Self {
            root,
            resolved: HashMap::new(),
        }
    }

    fn place(&mut self, path: &str) -> Result<PathBuf, String> {
        let parts = path_parts(path)?;
        let (name, folder) = parts
            .split_last()
            .ok_or_else(|| "file_path must not be empty".to_owned())?;
        if folder.is_empty() {
            return Ok(self.root.join(name));
        }
        let key: Vec<String> = folder.iter().map(ToString::to_string).collect();
        let root = self.root;
        let folder = self.resolved.entry(key).or_insert_with_key(|key| {
            let folder: PathBuf = key.iter().collect();
            inside(root, &root.join(folder)).map_err(|problem| match problem {
                Outside::Leaves => leaves(path),
                Outside::Cannot(error) => cannot(path, &error),
            })
        });
        Ok(folder.clone()?.join(name))
    }
}

enum Outside {
    Leaves,
    Cannot(io::Error),
}

/// Resolves symbolic links; the result must lie below `root`.
fn inside(root: &Path, path: &Path) -> Result<PathBuf, Outside> {
    let resolved = fs::canonicalize(path).map_err(Outside::Cannot)?;
    if resolved.starts_with(root) {
        Ok(resolved)
    } else {
        Err(Outside::Leaves)
    }
}

fn leaves(path: &str) -> String {
    let path = quoted(path);
    format!("file_path {path} leads out of the dataset's folder through a symbolic link")
}

fn cannot(path: &str, error: &io::Error) -> String {
    let path = quoted(path);
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            format!("the file {path} does not exist")
        }
        io::ErrorKind::InvalidInput => format!("the file {path} {error}"),
        _ => format!("the file {path} cannot be read: {error}"),
    }
}

fn read_regular(root: &Path, place: &Path) -> Result<Vec<u8>, String> {
    let shown = place.strip_prefix(root).unwrap_or(place).to_string_lossy();
    let metadata = fs::symlink_metadata(place).map_err(|error| cannot(&shown, &error))?;
    if metadata.is_symlink() {
        inside(root, place).map_err(|problem| match problem {
            Outside::Leaves => leaves(&shown),
            Outside::Cannot(error) => cannot(&shown, &error),
        })?;
    }
    read_regular_file(place, MAX_SOURCE_BYTES).map_err(|error| cannot(&shown, &error))
}

/// Decodes source text: invalid UTF-8 is dropped, then CRLF and a lone CR become LF. Nothing is stripped, and a byte
/// order mark stays.
pub fn decode(bytes: Vec<u8>) -> String {
    let text = String::from_utf8(bytes).unwrap_or_else(|error| {
        error
            .as_bytes()
            .utf8_chunks()
            .map(|chunk| chunk.valid())
            .collect()
    });
    if !text.as_bytes().contains(&b'\r') {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut pieces = text.split('\r');
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        out.push('\n');
        out.push_str(piece.strip_prefix('\n').unwrap_or(piece));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_bytes_go_first_and_newlines_then() {
        for (bytes, text) in [
            (&b"a\r\nb\rc\n\r\r\n"[..], "a\nb\nc\n\n\n"),
            (b"a\r\xff\nb", "a\nb"),
            (b"\xef\xbb\xbfx\xef\xbf\xbd", "\u{feff}x\u{fffd}"),
            (b"\xe2\x82x\xf0\x9f\x98", "x"),
            (b"", ""),
            (b"\r", "\n"),
        ] {
            assert_eq!(decode(bytes.to_vec()), text);
        }
    }
}
