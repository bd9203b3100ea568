//! Every write of a run directory goes through here, so that "durable" means one thing: the bytes are on the disk and
//! the name that leads to them is too. What is written whole appears whole: a temporary file beside the target, fsync,
//! rename, fsync of the directory. What grows is appended record by record with an fsync each.

use super::Supervisor;
use super::disk::{self, Out};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file operation that failed, with what was being done and where.
#[derive(Debug, thiserror::Error)]
#[error("could not {action} {path}: {source}", path = path.display())]
pub struct DiskError {
    /// What was tried, as a verb.
    pub action: &'static str,
    /// On which path.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl DiskError {
    /// True when the disk or a quota is full.
    pub fn is_full(&self) -> bool {
        matches!(
            self.source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
    }

    /// What people can do about it, to be put behind what happened; empty where nobody knows better than the system.
    pub fn advice(&self) -> &'static str {
        match self.source.kind() {
            io::ErrorKind::StorageFull => "; free some space there and try again",
            io::ErrorKind::QuotaExceeded => "; free some of the quota there and try again",
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                "; make it writable, or use another place"
            }
            _ if self.source.raw_os_error() == Some(libc::EIO) => {
                "; the disk itself fails: the kernel's log says more"
            }
            _ => "",
        }
    }
}

/// The result of a file operation.
pub type DiskResult<T> = Result<T, DiskError>;

/// Names the operation in an I/O error.
pub(crate) trait At<T> {
    fn at(self, action: &'static str, path: &Path) -> DiskResult<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &Path) -> DiskResult<T> {
        self.map_err(|source| DiskError {
            action,
            path: path.to_path_buf(),
            source,
        })
    }
}

/// Makes names in a directory durable.
///
/// # Errors
/// The directory cannot be opened or synced.
pub fn sync_dir(path: &Path) -> DiskResult<()> {
    disk::sync_dir(path).at("sync the directory", path)
}

/// Makes durable whatever lies in a directory. A process that was killed may have left files that can be read and are
/// not on the disk yet; nothing may be built on them before.
///
/// # Errors
/// Something cannot be read or synced.
pub fn settle(path: &Path) -> DiskResult<()> {
    for (name, kind) in disk::list(path).at("read", path)? {
        let inner = path.join(name);
        if kind.is_dir() {
            settle(&inner)?;
        } else if kind.is_file() {
            match disk::sync_file(&inner) {
                // Gone meanwhile, so nothing is built on it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                synced => synced.at("sync", &inner)?,
            }
        }
    }
    sync_dir(path)
}

/// The folder a path lies in; the current one for a bare name.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Makes one directory that must not exist yet, durably. Of two callers exactly one succeeds.
///
/// # Errors
/// It exists already (kind `AlreadyExists`), or the system refused.
pub fn create_dir(path: &Path) -> DiskResult<()> {
    disk::mkdir(path).at("create the directory", path)?;
    sync_dir(parent(path))
}

/// Makes a directory and those above it where they are missing, durably.
///
/// # Errors
/// The system refused.
pub fn create_dir_all(path: &Path) -> DiskResult<()> {
    if path.is_dir() {
        // Whoever made it may have been killed before its name was on the disk. A folder that cannot be opened is not
        // ours, and neither is its care.
        return match sync_dir(parent(path)) {
            Err(error) if error.source.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            synced => synced,
        };
    }
    let above = parent(path);
    if !above.is_dir() {
        create_dir_all(above)?;
    }
    match create_dir(path) {
        Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {
            Ok(())
        }
        other => other,
    }
}

/// Writes a whole file: it is there complete, or not at all. A file of that name is replaced.
///
/// # Errors
/// Any step failed; the temporary file is taken away then.
pub fn write_file(path: &Path, bytes: &[u8]) -> DiskResult<()> {
    write_file_with(path, |file| file.write_all(bytes))
}

/// Writes a whole file under a name that must be free, read-only. Of several callers exactly one succeeds, and what is
/// there afterwards is that one's.
///
/// # Errors
/// The name is taken (kind `AlreadyExists`), or the system refused.
pub fn claim_file(path: &Path, bytes: &[u8]) -> DiskResult<()> {
    let temporary = own_beside(path);
    let claimed = fill_and_sync(&temporary, path, 0o444, |file| file.write_all(bytes))
        .and_then(|()| disk::rename_new(&temporary, path).at("create", path));
    if claimed.is_err() {
        // The first error is the one to tell; a leftover is swept away later.
        let _ = disk::unlink(&temporary);
    }
    claimed?;
    sync_dir(parent(path))
}

/// What something is that is no regular file, with its article.
pub fn kind(found: &fs::Metadata) -> &'static str {
    let kind = found.file_type();
    if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_file() {
        "a file"
    } else {
        "a device"
    }
}

/// As [`write_file`], with the bytes produced by `content`.
///
/// # Errors
/// Any step failed, `content` included.
pub fn write_file_with(
    path: &Path,
    content: impl FnOnce(&mut Out) -> io::Result<()>,
) -> DiskResult<()> {
    let temporary = temporary_beside(path);
    let written = fill_and_sync(&temporary, path, 0o644, content)
        .and_then(|()| disk::rename(&temporary, path).at("put in place", path));
    if written.is_err() {
        // The first error is the one to tell; a leftover temporary file is ignored by every reader.
        let _ = disk::unlink(&temporary);
    }
    written?;
    sync_dir(parent(path))
}

/// Errors name the target: the temporary name would tell people nothing.
fn fill_and_sync(
    temporary: &Path,
    target: &Path,
    mode: u32,
    content: impl FnOnce(&mut Out) -> io::Result<()>,
) -> DiskResult<()> {
    let mut file = create_anew(temporary, mode).at("create", target)?;
    content(&mut file).at("write", target)?;
    file.sync().at("sync", target)
}

/// Creates a file of ours, in the place of one that an earlier try left. Nothing that lies there is ever opened: it
/// could be a pipe, which waits, or a link, which leads elsewhere.
pub(crate) fn create_anew(path: &Path, mode: u32) -> io::Result<Out> {
    match Out::create_new(path, mode) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            disk::unlink(path)?;
            Out::create_new(path, mode)
        }
        created => created,
    }
}

/// A hidden name beside the target. Each file of a run directory has one writer, so a fixed name does.
fn temporary_beside(path: &Path) -> PathBuf {
    let name = path
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    path.with_file_name(format!(".{name}.part"))
}

/// A hidden name beside the target that nobody else uses, and that says whose it is: several processes may write the
/// same thing at the same time.
pub(crate) fn own_beside(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mark = Supervisor::this().mark();
    path.with_file_name(format!(".{mark}-{number}-{name}.part"))
}

/// True when a name is that of something unfinished, whose writer is gone.
fn is_left_over(name: &std::ffi::OsStr) -> bool {
    let name = name.to_str().and_then(|name| name.strip_prefix('.'));
    let mark = name.and_then(|name| name.strip_suffix(".part"));
    mark.and_then(Supervisor::of_mark)
        .is_some_and(|owner| owner.is_gone())
}

/// Takes away what processes that were killed left unfinished in a folder.
pub fn sweep(folder: &Path) {
    for (name, _) in disk::list(folder).unwrap_or_default() {
        if is_left_over(&name) {
            // Nobody reads it, so nothing is lost when it stays.
            let _ = remove_tree(&folder.join(name));
        }
    }
}

/// Takes away a file, or a directory with everything in it. Links are not followed.
///
/// # Errors
/// The system refused; part of it may be gone.
pub fn remove_tree(path: &Path) -> DiskResult<()> {
    let found = fs::symlink_metadata(path).at("read", path)?;
    if !found.is_dir() {
        return disk::unlink(path).at("remove", path);
    }
    for (name, _) in disk::list(path).at("read", path)? {
        remove_tree(&path.join(name))?;
    }
    disk::rmdir(path).at("remove", path)
}

/// Puts a finished directory in place under a name that must be free, durably. What lies in it must be synced already.
///
/// # Errors
/// The name is taken by something that is not an empty directory, or the system refused.
pub fn publish_dir(built: &Path, target: &Path) -> DiskResult<()> {
    disk::rename(built, target).at("put in place", target)?;
    sync_dir(parent(target))
}

/// Points a symbolic link at `target`, replacing an older link in one step.
///
/// # Errors
/// The system refused.
pub fn replace_link(link: &Path, target: &Path) -> DiskResult<()> {
    let temporary = own_beside(link);
    disk::symlink(target, &temporary).at("create the link", link)?;
    let moved = disk::rename(&temporary, link).at("put in place", link);
    if moved.is_err() {
        let _ = disk::unlink(&temporary);
    }
    moved?;
    sync_dir(parent(link))
}

/// A file that grows by whole records.
#[derive(Debug)]
pub struct Appender {
    file: Out,
    path: PathBuf,
    /// Bytes of whole records; `None` after a failure that could not be undone.
    length: Option<u64>,
}

impl Appender {
    /// Creates the file; it must not exist.
    ///
    /// # Errors
    /// It exists, or the system refused.
    pub fn create(path: &Path) -> DiskResult<Self> {
        let file = Out::create_new(path, 0o644).at("create", path)?;
        sync_dir(parent(path))?;
        Ok(Self {
            file,
            path: path.to_path_buf(),
            length: Some(0),
        })
    }

    /// Adds one line and waits until it is on the disk. After a failure the file is as it was before, or nothing can be
    /// added any more: a record after a torn one would be lost to every reader.
    ///
    /// # Errors
    /// The system refused.
    pub fn append(&mut self, line: &str) -> DiskResult<()> {
        let Some(length) = self.length.take() else {
            let torn = io::Error::other("an earlier record is torn");
            return Err(torn).at("append to", &self.path);
        };
        let mut bytes = Vec::with_capacity(line.len() + 1);
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        if let Err(error) = self.file.write_all(&bytes) {
            self.length = self.file.cut(length).ok().map(|()| length);
            return Err(error).at("append to", &self.path);
        }
        if let Err(error) = self.file.sync() {
            // It cannot be made good: the system may have thrown the data away and forgotten that it did. What was not
            // promised is not left to be read.
            let _ = self.file.cut(length);
            return Err(error).at("sync", &self.path);
        }
        self.length = Some(length + bytes.len() as u64);
        Ok(())
    }
}

/// Replaces a small file for readers who look in meanwhile. Not durable: losing it loses nothing.
///
/// # Errors
/// The system refused.
pub fn replace_quickly(path: &Path, bytes: &[u8]) -> DiskResult<()> {
    let temporary = temporary_beside(path);
    create_anew(&temporary, 0o644)
        .and_then(|mut file| file.write_all(bytes))
        .at("write", path)?;
    disk::rename(&temporary, path).at("put in place", path)
}

/// Bytes that an unprivileged user may still write on the file system of `path`, which must exist.
///
/// # Errors
/// The system refused.
pub fn free_bytes(path: &Path) -> DiskResult<u64> {
    let stat = nix::sys::statvfs::statvfs(path)
        .map_err(io::Error::from)
        .at("ask for the free space of", path)?;
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion)] // The width differs by platform.
    Ok((stat.blocks_available() as u64).saturating_mul(stat.fragment_size() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_leaves_no_temporary() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write_file(&path, b"one").unwrap();
        write_file(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_keeps_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write_file(&path, b"one").unwrap();
        let error = write_file_with(&path, |file| {
            file.write_all(b"tw")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        })
        .unwrap_err();
        assert!(!error.to_string().contains(".part"), "{error}");
        assert!(error.is_full());
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn of_many_who_claim_a_name_one_wins() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        let claim = |number: u8| claim_file(&path, &[number; 3]).map(|()| number);
        let results: Vec<DiskResult<u8>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || claim(n))).collect();
            let ends = threads.into_iter().map(|thread| thread.join().unwrap());
            ends.collect()
        });
        let winners: Vec<u8> = results.iter().flatten().copied().collect();
        assert_eq!(winners.len(), 1);
        assert_eq!(fs::read(&path).unwrap(), [winners[0]; 3]);
        for error in results.into_iter().filter_map(Result::err) {
            assert_eq!(error.source.kind(), io::ErrorKind::AlreadyExists);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn only_one_creates_a_directory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        create_dir(&path).unwrap();
        let error = create_dir(&path).unwrap_err();
        assert_eq!(error.source.kind(), io::ErrorKind::AlreadyExists);
        create_dir_all(&path.join("y/z")).unwrap();
        assert!(path.join("y/z").is_dir());
    }

    #[test]
    fn a_link_moves_in_one_step() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("bundle");
        replace_link(&link, Path::new("merged/0001")).unwrap();
        replace_link(&link, Path::new("merged/0002")).unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("merged/0002"));
    }

    #[test]
    fn records_are_appended_to_a_new_file_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = Appender::create(&path).unwrap();
        log.append("{}").unwrap();
        log.append("[]").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"{}\n[]\n");
        assert!(Appender::create(&path).is_err());
    }
}
