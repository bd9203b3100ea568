//! Making a bundle directory.

use super::{BUNDLE_FILE, INVENTORY_FILE};
use crate::rundir::disk::{self, In, Out};
use crate::rundir::durable::{self, At, DiskError, DiskResult};
use crate::rundir::numbered;
use proctor_protocol::bundle::{InventoryRow, inventory_root, inventory_value};
use proctor_protocol::canonical::{Value, hex, pretty};
use sha2::{Digest, Sha256};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A bundle under construction, in a hidden directory beside its place. Dropped unfinished, it leaves nothing.
#[derive(Debug)]
pub struct Builder {
    dir: Hidden,
    rows: Vec<InventoryRow>,
}

/// The hidden directory; it goes away when it is dropped.
#[derive(Debug)]
struct Hidden {
    path: PathBuf,
}

impl Hidden {
    fn new(parent: &Path) -> DiskResult<Self> {
        let path = durable::own_beside(&parent.join("bundle"));
        disk::mkdir(&path).at("create a directory in", parent)?;
        Ok(Self { path })
    }

    /// Puts it in place under another name.
    fn publish(&mut self, target: &Path) -> DiskResult<()> {
        let published = durable::publish_dir(&self.path, target);
        // Also when its new name could not be synced: it is not under the old one any more.
        if !self.path.is_dir() {
            self.path = PathBuf::new();
        }
        published
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            // Nobody reads it, so nothing is lost when it stays.
            let _ = durable::remove_tree(&self.path);
        }
    }
}

/// A bundle in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Where it is.
    pub path: PathBuf,
    /// Its root digest.
    pub root_sha256: String,
}

/// Passes bytes on and hashes them.
struct Hashing<W> {
    out: W,
    hash: Sha256,
    size: u64,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Builder {
    /// Starts a bundle that will lie in `parent`, which is made when it is missing.
    ///
    /// # Errors
    /// The system refused.
    pub fn new(parent: &Path) -> DiskResult<Self> {
        durable::create_dir_all(parent)?;
        durable::sweep(parent);
        Ok(Self {
            dir: Hidden::new(parent)?,
            rows: Vec::new(),
        })
    }

    /// Writes one file, synced. `path` is relative and uses `/`.
    ///
    /// # Errors
    /// The system refused, or `content` failed.
    pub fn file<T>(
        &mut self,
        path: &str,
        content: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> DiskResult<T> {
        let full = self.dir.path.join(path);
        self.folder(durable::parent(Path::new(path)))?;
        let file = Out::create_new(&full, 0o644).at("create", &full)?;
        let mut out = Hashing {
            out: BufWriter::with_capacity(1 << 16, file),
            hash: Sha256::new(),
            size: 0,
        };
        let given = content(&mut out)
            .and_then(|given| out.flush().map(|()| given))
            .at("write", &full)?;
        out.out.get_ref().sync().at("sync", &full)?;
        self.rows.push(InventoryRow {
            path: path.to_owned(),
            sha256: hex(&out.hash.finalize()),
            size_bytes: out.size,
        });
        Ok(given)
    }

    /// Makes a folder in the bundle, and those above it. It is synced when the bundle is sealed.
    fn folder(&self, path: &Path) -> DiskResult<()> {
        let full = self.dir.path.join(path);
        if full.is_dir() {
            return Ok(());
        }
        self.folder(durable::parent(path))?;
        disk::mkdir(&full).at("create the directory", &full)
    }

    /// Writes a JSON document.
    ///
    /// # Errors
    /// The system refused.
    pub fn json(&mut self, path: &str, value: &Value) -> DiskResult<()> {
        self.file(path, |out| out.write_all(pretty(value).as_bytes()))
    }

    /// Copies a file in.
    ///
    /// # Errors
    /// The system refused to read or to write.
    pub fn copy(&mut self, path: &str, from: &Path) -> DiskResult<()> {
        let mut source = In::open(from).at("open", from)?;
        self.file(path, |out| io::copy(&mut source, out).map(|_| ()))
    }

    /// Writes `bundle.json` and the inventory; nothing can be added after that.
    ///
    /// # Errors
    /// The system refused.
    pub fn seal(mut self, about: &Value) -> DiskResult<Sealed> {
        self.json(BUNDLE_FILE, about)?;
        let listed = inventory_value(&self.rows);
        self.json(INVENTORY_FILE, &listed)?;
        self.sealed()
    }

    /// As [`Builder::seal`], for a bundle that was copied whole, with its own `bundle.json` and inventory.
    ///
    /// # Errors
    /// The system refused.
    pub fn sealed(self) -> DiskResult<Sealed> {
        sync_tree(&self.dir.path)?;
        Ok(Sealed {
            root_sha256: inventory_root(&self.rows),
            dir: self.dir,
        })
    }
}

/// A finished bundle that is not in its place yet.
#[derive(Debug)]
pub struct Sealed {
    dir: Hidden,
    root_sha256: String,
}

impl Sealed {
    /// The root digest.
    pub fn root_sha256(&self) -> &str {
        &self.root_sha256
    }

    /// Where it lies meanwhile.
    pub fn dir(&self) -> &Path {
        &self.dir.path
    }

    /// Puts it in place. The place must be free or an empty directory.
    ///
    /// # Errors
    /// It is not, or the system refused.
    pub fn publish(mut self, target: &Path) -> DiskResult<Published> {
        self.dir.publish(target)?;
        Ok(Published {
            path: target.to_path_buf(),
            root_sha256: self.root_sha256,
        })
    }

    /// Puts it into `folder` under the next free number. When the newest bundle there is the same to the byte, that one
    /// is given back and nothing is added.
    ///
    /// # Errors
    /// The system refused.
    pub fn publish_numbered(mut self, folder: &Path) -> DiskResult<Published> {
        let newest = newest_number(folder)?;
        if let Some(number) = newest {
            let path = folder.join(format!("{number:04}"));
            if super::check_inventory(&path).is_ok_and(|root| root == self.root_sha256) {
                // A merge that was killed may have put it there, and its name is not on the disk yet.
                durable::sync_dir(folder)?;
                return Ok(Published {
                    path,
                    root_sha256: self.root_sha256,
                });
            }
        }
        let mut number = newest.unwrap_or(0) + 1;
        loop {
            let path = folder.join(format!("{number:04}"));
            match self.dir.publish(&path) {
                // Another merge took the number.
                Err(DiskError { source, .. })
                    if source.kind() == io::ErrorKind::DirectoryNotEmpty
                        || source.kind() == io::ErrorKind::AlreadyExists =>
                {
                    number += 1;
                }
                Err(error) => return Err(error),
                Ok(()) => {
                    return Ok(Published {
                        path,
                        root_sha256: self.root_sha256,
                    });
                }
            }
        }
    }
}

/// The number of the newest bundle in a folder.
///
/// # Errors
/// It cannot be read.
pub fn newest_number(folder: &Path) -> DiskResult<Option<u32>> {
    let entries = disk::list(folder).at("read", folder)?;
    // Nobody makes so many; a folder of that name is somebody else's, and no number comes after it.
    let number =
        |name: &std::ffi::OsString| numbered(name.to_str()?).filter(|last| *last < u32::MAX);
    Ok(entries.iter().filter_map(|(name, _)| number(name)).max())
}

fn sync_tree(folder: &Path) -> DiskResult<()> {
    for (name, kind) in disk::list(folder).at("read", folder)? {
        if kind.is_dir() {
            sync_tree(&folder.join(name))?;
        }
    }
    durable::sync_dir(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::{InventoryProblem, check_inventory};
    use crate::rundir::Supervisor;
    use proctor_protocol::object;
    use std::fs;

    fn build(parent: &Path, text: &str) -> Sealed {
        let mut builder = Builder::new(parent).unwrap();
        builder
            .file("scores/a.csv", |out| out.write_all(text.as_bytes()))
            .unwrap();
        builder
            .seal(&object! { "schema" => super::super::SCHEMA })
            .unwrap()
    }

    #[test]
    fn the_same_content_is_not_published_twice() {
        let folder = tempfile::tempdir().unwrap();
        let merged = folder.path().join("merged");
        let first = build(&merged, "x").publish_numbered(&merged).unwrap();
        let again = build(&merged, "x").publish_numbered(&merged).unwrap();
        assert_eq!(first, again);
        let other = build(&merged, "y").publish_numbered(&merged).unwrap();
        assert_eq!(other.path, merged.join("0002"));
        assert_ne!(other.root_sha256, first.root_sha256);
        assert_eq!(fs::read_dir(&merged).unwrap().count(), 2);
        // Folders that are named otherwise are nobody's.
        for name in ["7", "+0008", "00009", "4294967295"] {
            fs::create_dir(merged.join(name)).unwrap();
        }
        let third = build(&merged, "z").publish_numbered(&merged).unwrap();
        assert_eq!(third.path, merged.join("0003"));
    }

    #[test]
    fn the_inventory_sees_edits_additions_and_losses() {
        let folder = tempfile::tempdir().unwrap();
        let bundle = build(folder.path(), "x")
            .publish(&folder.path().join("b"))
            .unwrap();
        assert_eq!(check_inventory(&bundle.path).unwrap(), bundle.root_sha256);
        let file = bundle.path.join("scores/a.csv");
        fs::write(&file, "z").unwrap();
        assert!(matches!(
            check_inventory(&bundle.path),
            Err(InventoryProblem::Differs { .. })
        ));
        fs::remove_file(&file).unwrap();
        assert!(matches!(
            check_inventory(&bundle.path),
            Err(InventoryProblem::Missing { .. })
        ));
        fs::write(&file, "x").unwrap();
        fs::write(bundle.path.join("extra"), "").unwrap();
        assert!(matches!(
            check_inventory(&bundle.path),
            Err(InventoryProblem::Unlisted { .. })
        ));
    }

    #[test]
    fn what_a_killed_merge_left_is_taken_away_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let this = Supervisor::this();
        let dead = Supervisor { started: 1, ..this };
        let make = |mark: String| fs::create_dir_all(folder.path().join(mark)).unwrap();
        make(format!(".{}-0-bundle.part/scores", dead.mark()));
        make(format!(".{}-1-bundle.part", this.mark()));
        make(".mine.part".into());
        build(folder.path(), "x")
            .publish(&folder.path().join("b"))
            .unwrap();
        let mut names: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                format!(".{}-1-bundle.part", this.mark()),
                ".mine.part".into(),
                "b".into()
            ]
        );
    }

    #[test]
    fn a_place_that_is_taken_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("b");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("mine"), "").unwrap();
        assert!(build(folder.path(), "x").publish(&target).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
