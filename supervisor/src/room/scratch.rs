//! A worker's private directory: made for one room, and removed with everything in it whatever the worker made of it.
//!
//! The worker decides how deep and how wide the tree is, and what it is allowed to do with it. So removal follows no
//! link, holds a constant number of descriptors, needs no more stack or memory for a deeper tree, and has an end.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::Kernel;

/// How much longer than its bound a removal may be silent.
const ANSWER: Duration = Duration::from_secs(1);

/// The scratch directory of one room.
#[derive(Debug, Clone)]
pub(super) struct Scratch {
    path: PathBuf,
    /// Device and number, so that nothing else is ever removed in its place.
    identity: (u64, u64),
}

impl Scratch {
    /// Makes the directory, for its owner alone.
    ///
    /// # Errors
    /// The folder it lies in does not exist, or something of that name does: whoever made it before could have put
    /// anything there.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let metadata = fs::symlink_metadata(&path)?;
        Ok(Self {
            path,
            identity: (metadata.dev(), metadata.ino()),
        })
    }

    /// The directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it with everything in it, within the kernel's bound.
    pub(super) fn remove(&self, kernel: &'static dyn Kernel) -> io::Result<()> {
        match fs::symlink_metadata(&self.path) {
            Ok(metadata) if (metadata.dev(), metadata.ino()) == self.identity => {
                // In a room with a view of its own nothing is ever written here.
                if fs::remove_dir(&self.path).is_ok() {
                    return Ok(());
                }
                remove_elsewhere(self.path.clone(), kernel)
            }
            Ok(_) => Err(io::Error::other("something else was put in its place")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Removes a directory on a thread of its own: a file system that does not answer holds up that thread and nobody else.
fn remove_elsewhere(path: PathBuf, kernel: &'static dyn Kernel) -> io::Result<()> {
    let bound = kernel.removal();
    let (done, removed) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new()
        .name("remover".into())
        .spawn(move || {
            let _ = done.send(kernel.removes(&path, bound));
        })?;
    // The walk keeps the bound by itself unless a single call does not come back.
    let Ok(removed) = removed.recv_timeout(bound + ANSWER) else {
        let error = "the file system does not answer";
        return Err(io::Error::new(io::ErrorKind::TimedOut, error));
    };
    let _ = thread.join();
    removed
}

/// Removes a directory with everything in it, within `bound`. Symbolic links in it are removed, never followed.
///
/// Every directory is moved to the top before it is emptied, so the tree is never more than two levels deep while it
/// is walked.
///
/// # Errors
/// The system refused, `path` is no directory, or the time was up; what is left stays.
pub fn remove_tree(path: &Path, bound: Duration) -> io::Result<()> {
    let end = Instant::now().checked_add(bound);
    let walk = Walk {
        top: open_directory(path)?,
        end,
    };
    walk.empty_top()?;
    fs::remove_dir(path)
}

const DIRECTORY: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    unlocked(|flags| open(path, flags, Mode::empty()))
}

/// Opens a directory and makes it usable for its owner, who may have locked it.
pub(super) fn unlocked(open: impl Fn(OFlag) -> nix::Result<OwnedFd>) -> io::Result<OwnedFd> {
    match open(DIRECTORY) {
        Ok(directory) => {
            allow(&directory);
            Ok(directory)
        }
        Err(Errno::EACCES) => {
            // This opens without permission, and never through a link.
            let place = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            allow(&open(place)?);
            Ok(open(DIRECTORY)?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Where this fails, what needed it fails too and says why.
fn allow(directory: &OwnedFd) {
    let own = format!("/proc/self/fd/{}", directory.as_raw_fd());
    let _ = fs::set_permissions(own, fs::Permissions::from_mode(0o700));
}

/// Entries of a directory, read anew.
fn entries(directory: &OwnedFd) -> io::Result<Dir> {
    let again = openat(directory, c".", DIRECTORY, Mode::empty())?;
    Ok(Dir::from_fd(again)?)
}

struct Walk {
    top: OwnedFd,
    end: Option<Instant>,
}

/// What a look at one directory did.
#[derive(Default)]
struct Round {
    /// Something was removed or moved.
    progress: bool,
    /// Why something is still there.
    problem: Option<io::Error>,
    /// There was nothing to do.
    empty: bool,
}

impl Walk {
    fn in_time(&self) -> io::Result<()> {
        if self.end.is_some_and(|end| Instant::now() >= end) {
            let error = "it holds too much to be removed in time";
            return Err(io::Error::new(io::ErrorKind::TimedOut, error));
        }
        Ok(())
    }

    fn empty_top(&self) -> io::Result<()> {
        loop {
            let round = self.round(&self.top, |name, problem| match self.empty_one(name) {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(error),
                Err(error) => {
                    *problem = Some(error);
                    Ok(false)
                }
            })?;
            if round.empty {
                return Ok(());
            }
            if !round.progress {
                return Err(round.problem.unwrap_or_else(|| Errno::ENOTEMPTY.into()));
            }
        }
    }

    /// Removes what a directory holds but for directories, which `directory` is asked to deal with.
    fn round(
        &self,
        of: &OwnedFd,
        mut directory: impl FnMut(&CStr, &mut Option<io::Error>) -> io::Result<bool>,
    ) -> io::Result<Round> {
        let mut round = Round {
            empty: true,
            ..Round::default()
        };
        for entry in entries(of)?.iter() {
            self.in_time()?;
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            round.empty = false;
            let mut is_directory = entry.file_type() == Some(Type::Directory);
            if !is_directory {
                match unlinkat(of, name, UnlinkatFlags::NoRemoveDir) {
                    Ok(()) | Err(Errno::ENOENT) => round.progress = true,
                    // Not every file system says what an entry is.
                    Err(Errno::EISDIR) => is_directory = true,
                    Err(error) => round.problem = Some(error.into()),
                }
            }
            if is_directory && directory(name, &mut round.problem)? {
                round.progress = true;
            }
        }
        Ok(round)
    }

    /// Empties a directory at the top, its directories moved to the top, and removes it.
    fn empty_one(&self, name: &CStr) -> io::Result<()> {
        // Most directories of most workers are empty or hold files only.
        if unlinkat(&self.top, name, UnlinkatFlags::RemoveDir).is_ok() {
            return Ok(());
        }
        let inside = unlocked(|flags| openat(&self.top, name, flags, Mode::empty()))?;
        let mut free = 0;
        loop {
            let round = self.round(&inside, |name, problem| {
                match self.hoist(&inside, name, &mut free) {
                    Ok(()) => Ok(true),
                    Err(error) => {
                        *problem = Some(error);
                        Ok(false)
                    }
                }
            })?;
            if round.empty {
                break;
            }
            if !round.progress {
                return Err(round.problem.unwrap_or_else(|| Errno::ENOTEMPTY.into()));
            }
        }
        unlinkat(&self.top, name, UnlinkatFlags::RemoveDir)?;
        Ok(())
    }

    /// Moves a directory to the top, under the first number from `free` on that is not taken.
    fn hoist(&self, from: &OwnedFd, name: &CStr, free: &mut u64) -> io::Result<()> {
        let mut unlocked_it = false;
        loop {
            self.in_time()?;
            let number = CString::new(format!(".{free}")).unwrap_or_default();
            match renameat(from, name, self.top.as_fd(), number.as_c_str()) {
                Ok(()) => {
                    *free += 1;
                    return Ok(());
                }
                Err(Errno::ENOTEMPTY | Errno::EEXIST | Errno::ENOTDIR) => *free += 1,
                // A directory that is moved is written to.
                Err(Errno::EACCES) if !unlocked_it => {
                    unlocked(|flags| openat(from, name, flags, Mode::empty()))?;
                    unlocked_it = true;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Honest;
    use super::*;
    use std::os::unix::fs::symlink;

    const LONG: Duration = Duration::from_mins(2);

    fn nest(below: &Path, levels: usize, mode: u32) {
        let mut at = open(below, DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..levels {
            nix::sys::stat::mkdirat(&at, c"d", Mode::S_IRWXU).unwrap();
            let next = openat(&at, c"d", DIRECTORY, Mode::empty()).unwrap();
            nix::sys::stat::fchmod(&at, Mode::from_bits_truncate(mode)).unwrap();
            at = next;
        }
    }

    #[test]
    fn a_deep_tree_is_removed_on_a_small_stack() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(&folder.path().join("s")).unwrap();
        nest(scratch.path(), 15_000, 0o700);
        let removed = std::thread::Builder::new()
            .stack_size(64 << 10)
            .spawn(move || remove_tree(scratch.path(), LONG))
            .unwrap()
            .join()
            .unwrap();
        removed.unwrap();
        assert!(!folder.path().join("s").exists());
    }

    #[test]
    fn a_wide_and_deep_tree_is_removed_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        let scratch = Scratch::create(&folder.path().join("s")).unwrap();
        let inside = scratch.path().to_owned();
        symlink(&outside, inside.join("link")).unwrap();
        symlink("/no/where", inside.join(".0")).unwrap();
        fs::create_dir_all(inside.join("a/.1/x")).unwrap();
        fs::create_dir_all(inside.join("a/.0/.2/.3")).unwrap();
        symlink(&outside, inside.join("a/.0/link")).unwrap();
        fs::hard_link(outside.join("kept"), inside.join("a/hard")).unwrap();
        for number in 0..200 {
            let one = inside.join(format!("w{number}"));
            fs::create_dir_all(one.join("x/y")).unwrap();
            fs::write(one.join("x/file"), "x").unwrap();
        }
        nix::unistd::mkfifo(&inside.join("a/fifo"), Mode::S_IRWXU).unwrap();
        scratch.remove(&Honest).unwrap();
        assert!(!inside.exists());
        assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "x");
        // Twice is no error.
        scratch.remove(&Honest).unwrap();
    }

    /// As root nothing is locked; the test of the rooms does the same as another user.
    #[test]
    fn locked_directories_are_opened_at_any_depth() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [0o000, 0o500, 0o300] {
            let scratch = Scratch::create(&folder.path().join("s")).unwrap();
            nest(scratch.path(), 300, mode);
            scratch.remove(&Honest).unwrap();
        }
    }

    #[test]
    fn removal_has_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(&folder.path().join("s")).unwrap();
        nest(scratch.path(), 100, 0o700);
        for number in 0..2000 {
            fs::write(scratch.path().join(number.to_string()), "").unwrap();
        }
        let error = remove_tree(scratch.path(), Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(scratch.path().exists());
        scratch.remove(&Honest).unwrap();
    }

    #[test]
    fn what_was_there_before_is_neither_used_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        fs::create_dir(&path).unwrap();
        let error = Scratch::create(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        fs::remove_dir(&path).unwrap();
        symlink(folder.path(), &path).unwrap();
        assert!(Scratch::create(&path).is_err());
        fs::remove_file(&path).unwrap();

        let scratch = Scratch::create(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::rename(&path, folder.path().join("moved")).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("kept"), "x").unwrap();
        assert!(scratch.remove(&Honest).is_err());
        assert!(path.join("kept").exists());
        fs::remove_dir_all(&path).unwrap();
        symlink(folder.path(), &path).unwrap();
        assert!(scratch.remove(&Honest).is_err());
        assert!(remove_tree(&path, LONG).is_err());
        assert!(folder.path().join("moved").exists());
    }
}
