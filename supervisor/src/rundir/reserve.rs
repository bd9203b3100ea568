//! Space kept back for the records that say what went wrong. A method that fills the disk must not keep its own terminal
//! record from being written, nor the records of the methods after it.

use super::disk::{self, Out};
use super::durable::{DiskError, DiskResult};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Bytes kept back: a few hundred records.
const BYTES: usize = 1 << 20;

/// A file that takes up space until the space is needed.
#[derive(Debug)]
pub struct Reserve {
    path: PathBuf,
}

impl Reserve {
    /// The reserve of the run directory `root`; it holds nothing yet.
    pub fn of(root: &Path) -> Self {
        Self {
            path: root.join(".reserve"),
        }
    }

    /// Takes the space, unless it is taken already. A disk that is full now has none to give, and that is no error.
    pub fn take(&self) {
        match std::fs::symlink_metadata(&self.path) {
            Ok(found) if found.is_file() && found.len() == BYTES as u64 => return,
            // Whoever made it was killed over it.
            Ok(_) => {
                self.give_back();
            }
            Err(_) => {}
        }
        let fill = || -> io::Result<()> {
            let mut file = Out::create_new(&self.path, 0o644)?;
            file.write_all(&noise())?;
            file.sync()
        };
        if fill().is_err() {
            self.give_back();
        }
    }

    /// Gives the space back; true when there was some.
    pub fn give_back(&self) -> bool {
        disk::unlink(&self.path).is_ok()
    }

    /// Does `work`, and once more with the space given back when the disk is full.
    ///
    /// # Errors
    /// What `work` said at last.
    pub fn with<T>(&self, mut work: impl FnMut() -> DiskResult<T>) -> DiskResult<T> {
        match work() {
            Err(error) if DiskError::is_full(&error) && self.give_back() => work(),
            done => done,
        }
    }
}

/// Bytes that no file system can store in less space than they take (an xorshift sequence).
fn noise() -> Vec<u8> {
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut bytes = Vec::with_capacity(BYTES);
    while bytes.len() < BYTES {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rundir::durable::At;
    use std::fs;

    fn full() -> DiskResult<()> {
        Err(io::Error::from(io::ErrorKind::StorageFull)).at("write", Path::new("terminal.json"))
    }

    #[test]
    fn the_space_is_given_back_when_a_record_needs_it() {
        let folder = tempfile::tempdir().unwrap();
        let reserve = Reserve::of(folder.path());
        let file = folder.path().join(".reserve");
        reserve.take();
        assert_eq!(fs::metadata(&file).unwrap().len(), BYTES as u64);
        // Like a full disk: it works as soon as the reserve is gone.
        reserve
            .with(|| if file.exists() { full() } else { Ok(()) })
            .unwrap();
        assert!(!file.exists());
        // With nothing to give back the error stands, and other errors never cost the reserve.
        assert!(reserve.with(full).unwrap_err().is_full());
        // One that was not finished is taken anew.
        fs::write(&file, [0; 10]).unwrap();
        reserve.take();
        assert_eq!(fs::metadata(&file).unwrap().len(), BYTES as u64);
        let other = || -> DiskResult<()> {
            Err(io::Error::from(io::ErrorKind::PermissionDenied)).at("write", Path::new("x"))
        };
        assert!(reserve.with(other).is_err());
        assert!(file.exists());
    }
}
