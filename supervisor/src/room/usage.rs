//! How much lies in a scratch directory that has no size of its own: looked at again and again, on a thread beside the
//! attempt, so that a tree of a million files delays nobody's deadline.
//!
//! What is found is a lower bound: files that are deleted but still open are not seen.

use std::collections::HashSet;
use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{Mode, SFlag, fstat, fstatat};

use super::scratch;

/// The least time between two looks.
const PAUSE: Duration = Duration::from_millis(100);
/// How long the end of the thread is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// A look may take one part in so many of the time.
const SHARE: u32 = 50;
/// The most names of directories that are kept for later in one look, and the most linked files that are told apart.
const MAX_KEPT: usize = 100_000;
/// The kernel counts blocks of this many bytes, whatever the file system's own are.
const BLOCK: u64 = 512;

/// A watch over one directory. It ends when this value is dropped.
#[derive(Debug)]
pub(super) struct Usage {
    shared: Arc<Shared>,
    /// Closed to wake the thread.
    wake: Option<mpsc::Sender<()>>,
    /// Closed by the thread when it is done.
    done: mpsc::Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The bytes that were found when it was too much; 0 before.
    overrun: AtomicU64,
    stop: AtomicBool,
}

impl Usage {
    /// Watches for more than `limit` bytes.
    pub(super) fn watch(directory: PathBuf, limit: u64) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (wake, woken) = mpsc::channel::<()>();
        let (finished, done) = mpsc::channel::<()>();
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("usage".into())
            .spawn(move || {
                theirs.look_on(&directory, limit, &woken);
                drop(finished);
            })?;
        Ok(Self {
            shared,
            wake: Some(wake),
            done,
            thread: Some(thread),
        })
    }

    /// The bytes that were found, once they were too many.
    pub(super) fn overrun(&self) -> Option<u64> {
        Some(self.shared.overrun.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }
}

impl Drop for Usage {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.wake = None;
        // A file system that does not answer keeps its thread, and nobody else.
        let ended = self.done.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Disconnected);
        if let Some(thread) = self.thread.take().filter(|_| ended) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn look_on(&self, directory: &Path, limit: u64, woken: &mpsc::Receiver<()>) {
        let mut pause = PAUSE;
        while woken.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Timeout) {
            let begun = Instant::now();
            let found = used(directory, &self.stop);
            if found > limit {
                self.overrun.store(found, Ordering::Relaxed);
                return;
            }
            pause = PAUSE.max(begun.elapsed() * SHARE);
        }
    }
}

const DIRECTORY: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// A directory that is being looked at: what it is, and which of its directories are still to be looked at.
struct Level {
    identity: (u64, u64),
    ahead: Vec<CString>,
}

/// Bytes on disk of everything in a directory, linked files once, links not followed. However deep the tree, few
/// descriptors are open at a time; what is moved meanwhile ends the look early.
fn used(directory: &Path, stop: &AtomicBool) -> u64 {
    let mut tally = Tally::default();
    let Ok(mut at) = opened(|flags| open(directory, flags, Mode::empty())) else {
        return 0;
    };
    let Ok(first) = tally.enter(&at) else {
        return 0;
    };
    let mut levels = vec![first];
    while let Some(level) = levels.last_mut() {
        if stop.load(Ordering::Relaxed) {
            return 0;
        }
        if let Some(name) = level.ahead.pop() {
            tally.kept -= 1;
            let Ok(below) = opened(|flags| openat(&at, name.as_c_str(), flags, Mode::empty()))
            else {
                continue;
            };
            if let Ok(level) = tally.enter(&below) {
                levels.push(level);
                at = below;
            }
            continue;
        }
        levels.pop();
        let Some(above) = levels.last() else { break };
        let Ok(back) = openat(&at, c"..", DIRECTORY, Mode::empty()) else {
            break;
        };
        // Somebody may have moved the directory to where this leads out of the tree.
        if identity(&back).ok() != Some(above.identity) {
            break;
        }
        at = back;
    }
    tally.bytes
}

/// Opens a directory. One that may be written to and not be listed would hide what is in it, so it is opened to its owner.
fn opened(open: impl Fn(OFlag) -> nix::Result<OwnedFd>) -> io::Result<OwnedFd> {
    match open(DIRECTORY) {
        Err(Errno::EACCES) => scratch::unlocked(open),
        found => Ok(found?),
    }
}

fn identity(directory: &OwnedFd) -> nix::Result<(u64, u64)> {
    fstat(directory).map(|found| (found.st_dev, found.st_ino))
}

#[derive(Default)]
struct Tally {
    bytes: u64,
    kept: usize,
    linked: HashSet<u64>,
}

impl Tally {
    /// Counts what a directory holds.
    fn enter(&mut self, directory: &OwnedFd) -> nix::Result<Level> {
        let mut level = Level {
            identity: identity(directory)?,
            ahead: Vec::new(),
        };
        let again = openat(directory, c".", DIRECTORY, Mode::empty())?;
        for entry in Dir::from_fd(again)?.iter() {
            let name = entry?.file_name().to_owned();
            if name.as_c_str() == c"." || name.as_c_str() == c".." {
                continue;
            }
            let found = match fstatat(directory, name.as_c_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
                Err(Errno::ENOENT) => continue,
                found => found?,
            };
            let folder = SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR;
            let twice = !folder
                && found.st_nlink > 1
                && self.linked.len() < MAX_KEPT
                && !self.linked.insert(found.st_ino);
            if !twice {
                let blocks = u64::try_from(found.st_blocks).unwrap_or(0);
                self.bytes = self.bytes.saturating_add(blocks.saturating_mul(BLOCK));
            }
            if folder && self.kept < MAX_KEPT {
                self.kept += 1;
                level.ahead.push(name);
            }
        }
        Ok(level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn used_now(directory: &Path) -> u64 {
        used(directory, &AtomicBool::new(false))
    }

    #[test]
    fn everything_is_counted_once_and_nothing_outside() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("big"), vec![1; 4 << 20]).unwrap();
        let root = folder.path();
        assert_eq!(used_now(root), 0);
        let deep = root.join("a/b/c");
        fs::create_dir_all(&deep).unwrap();
        fs::create_dir_all(root.join("z/y")).unwrap();
        let empty = used_now(root);
        fs::write(deep.join("file"), vec![1; 1 << 20]).unwrap();
        fs::write(root.join("z/y/file"), vec![1; 1 << 20]).unwrap();
        fs::hard_link(deep.join("file"), root.join("again")).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join("link")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("big"), deep.join("link")).unwrap();
        let found = used_now(root) - empty;
        // Two files of a megabyte; directories and links may take a block.
        assert!(
            (2 << 20..(2 << 20) + (64 << 10)).contains(&found),
            "{found}"
        );
        // A hole takes no space.
        let sparse = fs::File::create(root.join("sparse")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        assert!(used_now(root) - empty < 3 << 20);
        assert_eq!(used(root, &AtomicBool::new(true)), 0);
    }

    #[test]
    fn a_deep_tree_needs_few_descriptors() {
        let folder = tempfile::tempdir().unwrap();
        let mut at = open(folder.path(), DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..3000 {
            nix::sys::stat::mkdirat(&at, c"d", Mode::S_IRWXU).unwrap();
            at = openat(&at, c"d", DIRECTORY, Mode::empty()).unwrap();
        }
        let file = openat(
            &at,
            c"file",
            OFlag::O_CREAT | OFlag::O_WRONLY | OFlag::O_CLOEXEC,
            Mode::S_IRUSR,
        );
        nix::unistd::write(file.unwrap(), &vec![1; 1 << 20]).unwrap();
        drop(at);
        assert!(used_now(folder.path()) >= 1 << 20);
        super::super::remove_tree(folder.path(), Duration::from_mins(2)).unwrap();
    }

    #[test]
    fn too_much_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let usage = Usage::watch(folder.path().to_owned(), 1 << 20).unwrap();
        assert_eq!(usage.overrun(), None);
        fs::write(folder.path().join("file"), vec![1; 2 << 20]).unwrap();
        let end = Instant::now() + Duration::from_secs(30);
        while usage.overrun().is_none() {
            assert!(Instant::now() < end);
            std::thread::yield_now();
        }
        assert!(usage.overrun().unwrap() >= 2 << 20);
    }
}
