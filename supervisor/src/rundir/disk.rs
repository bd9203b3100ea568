//! The one door to the file system for everything that must survive. Each function is one operation of the system, done
//! again when a signal came between. Tests stand in this door: they number the operations, let one of them fail, or end
//! the world before it (see `faults`). In the program itself nothing stands there.

use proctor_protocol::input::open_regular;
use std::ffi::OsString;
use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

#[cfg(test)]
use crate::faults::{Handle, Op};

/// Does one operation, until no signal comes between.
macro_rules! operation {
    ($op:expr, $work:expr) => {
        loop {
            #[cfg(test)]
            if let Some(error) = crate::faults::before(&$op) {
                if error.kind() == ErrorKind::Interrupted {
                    continue;
                }
                break Err(error);
            }
            match $work {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                done => {
                    #[cfg(test)]
                    if done.is_ok() {
                        crate::faults::after(&$op);
                    }
                    break done;
                }
            }
        }
    };
}

/// A file that is being written.
#[derive(Debug)]
pub struct Out {
    file: File,
    #[cfg(test)]
    handle: Handle,
}

impl Out {
    /// Makes a file under a name that must be free.
    ///
    /// # Errors
    /// The name is taken (kind `AlreadyExists`), or the system refused.
    pub fn create_new(path: &Path, mode: u32) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(mode);
        let file = operation!(Op::Create(path), options.open(path))?;
        Ok(Self {
            file,
            #[cfg(test)]
            handle: Handle::of(path),
        })
    }

    /// Waits until the content is on the disk, and the length with it.
    ///
    /// # Errors
    /// The system refused. What was written since the last success may be lost, and asking again proves nothing.
    pub fn sync(&self) -> io::Result<()> {
        operation!(Op::Sync(&self.handle), self.file.sync_data())
    }

    /// Cuts the file to its first `length` bytes.
    ///
    /// # Errors
    /// The system refused.
    pub fn cut(&self, length: u64) -> io::Result<()> {
        operation!(Op::Cut(&self.handle, length), self.file.set_len(length))?;
        io::Seek::seek(&mut &self.file, io::SeekFrom::Start(length)).map(|_| ())
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(test)]
        let bytes = crate::faults::shortened(&self.handle, bytes);
        operation!(Op::Write(&self.handle, bytes), self.file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A regular file that is being read.
#[derive(Debug)]
pub struct In {
    file: File,
    #[cfg(test)]
    handle: Handle,
}

impl In {
    /// Opens a regular file. A pipe, a device or a folder in its place is an error, never a wait.
    ///
    /// # Errors
    /// There is none, or the system refused.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = operation!(Op::Open(path), open_regular(path))?;
        Ok(Self {
            file,
            #[cfg(test)]
            handle: Handle::of(path),
        })
    }

    /// Its length in bytes.
    ///
    /// # Errors
    /// The system refused.
    pub fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Goes to a place, in bytes from the beginning.
    ///
    /// # Errors
    /// The system refused.
    pub fn seek(&mut self, to: u64) -> io::Result<()> {
        io::Seek::seek(&mut self.file, io::SeekFrom::Start(to)).map(|_| ())
    }
}

impl Read for In {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        operation!(Op::Read(&self.handle), self.file.read(buffer))
    }
}

/// Waits until what a file that somebody wrote holds is on the disk.
///
/// # Errors
/// The system refused.
pub fn sync_file(path: &Path) -> io::Result<()> {
    operation!(
        Op::SyncPath(path),
        open_regular(path).and_then(|file| file.sync_all())
    )
}

/// Waits until the names in a directory are on the disk.
///
/// # Errors
/// The system refused.
pub fn sync_dir(path: &Path) -> io::Result<()> {
    operation!(
        Op::SyncPath(path),
        File::open(path).and_then(|directory| directory.sync_all())
    )
}

/// Makes a directory that must not exist.
///
/// # Errors
/// The name is taken (kind `AlreadyExists`), or the system refused.
pub fn mkdir(path: &Path) -> io::Result<()> {
    operation!(Op::Mkdir(path), fs::create_dir(path))
}

/// Gives a file or directory another name, in the place of a file that has it.
///
/// # Errors
/// The name is taken by a directory that is not empty, or the system refused.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    operation!(Op::Rename(from, to), fs::rename(from, to))
}

/// Gives a file another name, which must be free.
///
/// # Errors
/// The name is taken (kind `AlreadyExists`), or the system refused.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    operation!(Op::Rename(from, to), rename_or_link(from, to))
}

fn rename_or_link(from: &Path, to: &Path) -> io::Result<()> {
    use nix::errno::Errno;
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
    match renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE) {
        // Some network file systems cannot do it in one step. A link is refused where the name is taken, too.
        Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        done => Ok(done?),
    }
}

/// Makes a symbolic link under a name that must be free.
///
/// # Errors
/// The name is taken, or the system refused.
pub fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    operation!(
        Op::Symlink(target, link),
        std::os::unix::fs::symlink(target, link)
    )
}

/// Takes away a name of a file.
///
/// # Errors
/// There is none, or the system refused.
pub fn unlink(path: &Path) -> io::Result<()> {
    operation!(Op::Unlink(path), fs::remove_file(path))
}

/// Takes away an empty directory.
///
/// # Errors
/// It is not empty, there is none, or the system refused.
pub fn rmdir(path: &Path) -> io::Result<()> {
    operation!(Op::Unlink(path), fs::remove_dir(path))
}

/// What lies in a directory, in name order. Links are not followed.
///
/// # Errors
/// There is none, or the system refused.
pub fn list(path: &Path) -> io::Result<Vec<(OsString, FileType)>> {
    let entries = || -> io::Result<Vec<(OsString, FileType)>> {
        fs::read_dir(path)?
            .map(|entry| entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?))))
            .collect()
    };
    let mut found: Vec<(OsString, FileType)> = operation!(Op::Open(path), entries())?;
    found.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(found)
}

/// As [`list`], of a directory that need not be there: then nothing lies in it.
///
/// # Errors
/// The system refused.
pub fn list_if_there(path: &Path) -> io::Result<Vec<(OsString, FileType)>> {
    match list(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed,
    }
}
