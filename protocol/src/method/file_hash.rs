//! Hashing the files a method is made of.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::canonical::hex;
use crate::input::open_regular;

/// The lower-case hex SHA-256 of a regular file. Anything else (a folder, a pipe that would block) is an error.
///
/// # Errors
/// The file cannot be read, or is no regular file.
pub fn sha256_file(path: &Path) -> io::Result<String> {
    let mut file = open_regular(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = match file.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if read == 0 {
            return Ok(hex(&hasher.finalize()));
        }
        hasher.update(&buffer[..read]);
    }
}

/// Hashes of files, each file read once: thousands of methods may share one interpreter.
#[derive(Debug, Default)]
pub struct FileHashes(HashMap<PathBuf, String>);

impl FileHashes {
    /// As [`sha256_file`]; a path that was hashed before is not read again.
    ///
    /// # Errors
    /// As [`sha256_file`].
    pub fn sha256(&mut self, path: &Path) -> io::Result<String> {
        if let Some(known) = self.0.get(path) {
            return Ok(known.clone());
        }
        let sha256 = sha256_file(path)?;
        self.0.insert(path.to_owned(), sha256.clone());
        Ok(sha256)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_hashed_once_and_one_that_cannot_be_read_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc");
        let mut hashes = FileHashes::default();
        assert!(hashes.sha256(&path).is_err());
        std::fs::write(&path, "abc").unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hashes.sha256(&path).unwrap(), abc);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(hashes.sha256(&path).unwrap(), abc);
        assert!(FileHashes::default().sha256(&path).is_err());
    }
}
