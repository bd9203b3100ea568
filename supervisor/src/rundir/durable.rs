//! Every write of a run directory goes through here, so that "durable" means one thing: the bytes are on the disk and
//! the name that leads to them is too. What is written whole appears whole: a temporary file beside the target, fsync,
//! rename, fsync of the directory. What grows is appended record by record with an fsync each.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

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
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .at("sync the directory", path)
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
    fs::create_dir(path).at("create the directory", path)?;
    sync_dir(parent(path))
}

/// Makes a directory and those above it where they are missing, durably.
///
/// # Errors
/// The system refused.
pub fn create_dir_all(path: &Path) -> DiskResult<()> {
    if path.is_dir() {
        return Ok(());
    }
    create_dir_all(parent(path))?;
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
    let folder = parent(path);
    let mut file = tempfile::Builder::new()
        .prefix(".")
        .suffix(".part")
        .permissions(fs::Permissions::from_mode(0o444))
        .tempfile_in(folder)
        .at("create", path)?;
    file.write_all(bytes).at("write", path)?;
    file.as_file().sync_all().at("sync", path)?;
    file.persist_noclobber(path)
        .map_err(|error| error.error)
        .at("create", path)?;
    sync_dir(folder)
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
    content: impl FnOnce(&mut File) -> io::Result<()>,
) -> DiskResult<()> {
    let temporary = temporary_beside(path);
    let written = fill_and_sync(&temporary, path, content)
        .and_then(|()| fs::rename(&temporary, path).at("put in place", path));
    if written.is_err() {
        // The first error is the one to tell; a leftover temporary file is ignored by every reader.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync_dir(parent(path))
}

/// Errors name the target: the temporary name would tell people nothing.
fn fill_and_sync(
    temporary: &Path,
    target: &Path,
    content: impl FnOnce(&mut File) -> io::Result<()>,
) -> DiskResult<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .open(temporary)
        .at("create", target)?;
    content(&mut file).at("write", target)?;
    file.sync_all().at("sync", target)
}

/// A hidden name beside the target. Each file of a run directory has one writer, so a fixed name does.
fn temporary_beside(path: &Path) -> PathBuf {
    let name = path
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    path.with_file_name(format!(".{name}.part"))
}

/// Puts a finished directory in place under a name that must be free, durably. What lies in it must be synced already.
///
/// # Errors
/// The name is taken by something that is not an empty directory, or the system refused.
pub fn publish_dir(built: &Path, target: &Path) -> DiskResult<()> {
    fs::rename(built, target).at("put in place", target)?;
    sync_dir(parent(target))
}

/// Points a symbolic link at `target`, replacing an older link in one step.
///
/// # Errors
/// The system refused.
pub fn replace_link(link: &Path, target: &Path) -> DiskResult<()> {
    let temporary = temporary_beside(link);
    let _ = fs::remove_file(&temporary);
    std::os::unix::fs::symlink(target, &temporary).at("create the link", link)?;
    fs::rename(&temporary, link).at("put in place", link)?;
    sync_dir(parent(link))
}

/// A file that grows by whole records.
#[derive(Debug)]
pub struct Appender {
    file: File,
    path: PathBuf,
}

impl Appender {
    /// Creates the file; it must not exist.
    ///
    /// # Errors
    /// It exists, or the system refused.
    pub fn create(path: &Path) -> DiskResult<Self> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o644)
            .open(path)
            .at("create", path)?;
        sync_dir(parent(path))?;
        Ok(Self {
            file,
            path: path.to_path_buf(),
        })
    }

    /// Adds one line and waits until it is on the disk.
    ///
    /// # Errors
    /// The system refused; part of the line may be there, which readers drop.
    pub fn append(&mut self, line: &str) -> DiskResult<()> {
        let mut bytes = Vec::with_capacity(line.len() + 1);
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        self.file.write_all(&bytes).at("append to", &self.path)?;
        self.file.sync_data().at("sync", &self.path)
    }
}

/// Replaces a small file for readers who look in meanwhile. Not durable: losing it loses nothing.
///
/// # Errors
/// The system refused.
pub fn replace_quickly(path: &Path, bytes: &[u8]) -> DiskResult<()> {
    let temporary = temporary_beside(path);
    fs::write(&temporary, bytes).at("write", path)?;
    fs::rename(&temporary, path).at("put in place", path)
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
