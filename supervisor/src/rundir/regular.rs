//! Reading files that lie where others can write. A pipe, a device or a folder in the place of a file is an error, never
//! a wait.

use super::disk::In;
pub use proctor_protocol::input::open_regular as open;
pub use proctor_protocol::method::sha256_file as sha256;
use std::io::{self, Read};
use std::path::Path;

/// The longest record that is read. Ours have a few kilobytes.
const RECORD_BYTES: u64 = 16 << 20;

/// The bytes of a regular file that is as short as records are.
///
/// # Errors
/// As [`read_at_most`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_at_most(path, RECORD_BYTES)
}

/// The bytes of a regular file that is at most `most` bytes long.
///
/// # Errors
/// It is longer (kind `FileTooLarge`), or as [`In::open`].
pub fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = In::open(path)?;
    let too_long = || {
        let text = format!("is longer than the {most} bytes such a file may have");
        io::Error::new(io::ErrorKind::FileTooLarge, text)
    };
    let length = file.length()?;
    if length > most {
        return Err(too_long());
    }
    let mut bytes = Vec::with_capacity(length as usize + 1);
    file.take(most + 1).read_to_end(&mut bytes)?;
    // It grew meanwhile, or has no true length, as files of /proc.
    if bytes.len() as u64 > most {
        return Err(too_long());
    }
    Ok(bytes)
}

/// The last bytes of a regular file, at most `most`.
///
/// # Errors
/// As [`In::open`].
pub fn read_end(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = In::open(path)?;
    file.seek(file.length()?.saturating_sub(most))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;

    #[test]
    fn a_file_hashes_to_the_known_digest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc");
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(
            sha256(&path).unwrap(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(read(&path).unwrap(), b"abc");
        let error = read_at_most(&path, 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_end(&path, 2).unwrap(), b"bc");
        assert_eq!(read_end(&path, 9).unwrap(), b"abc");
    }

    #[test]
    fn a_pipe_or_a_folder_is_an_error_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        for path in [pipe.as_path(), folder.path()] {
            let text = read(path).unwrap_err().to_string();
            assert!(text.contains("not a regular file"), "{text}");
            assert!(sha256(path).is_err());
        }
    }
}
