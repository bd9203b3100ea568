//! Hashing the files a method is made of.

use std::io::{self, Read as _};
use std::path::Path;

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
