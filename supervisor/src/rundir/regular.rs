//! Reading files that lie where others can write. A pipe, a device or a folder in the place of a file is an error, never
//! a wait.

pub use proctor_protocol::input::open_regular as open;
pub use proctor_protocol::method::sha256_file as sha256;
use std::io::{self, Read};
use std::path::Path;

/// The bytes of a regular file.
///
/// # Errors
/// As [`open`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
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
