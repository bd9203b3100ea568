//! Making a bundle directory.

use super::{BUNDLE_FILE, INVENTORY_FILE};
use crate::rundir::durable::{self, At, DiskError, DiskResult};
use crate::rundir::{Supervisor, regular};
use proctor_protocol::bundle::{InventoryRow, inventory_root, inventory_value};
use proctor_protocol::canonical::{Value, hex, pretty};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// How the hidden directories of bundles under construction begin.
const PREFIX: &str = ".bundle-";

/// Takes away what merges that were killed left unfinished in a folder.
fn sweep(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let mark = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if mark
            .and_then(Supervisor::of_mark)
            .is_some_and(|owner| owner.is_gone())
        {
            // Nobody reads it, so nothing is lost when it stays.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A bundle under construction, in a hidden directory beside its place. Dropped unfinished, it leaves nothing.
#[derive(Debug)]
pub struct Builder {
    dir: TempDir,
    rows: Vec<InventoryRow>,
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
        sweep(parent);
        let dir = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", Supervisor::this().mark()))
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .tempdir_in(parent)
            .at("create a directory in", parent)?;
        Ok(Self {
            dir,
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
        let full = self.dir.path().join(path);
        let folder = durable::parent(&full);
        fs::create_dir_all(folder).at("create the directory", folder)?;
        let file = File::create_new(&full).at("create", &full)?;
        let mut out = Hashing {
            out: BufWriter::with_capacity(1 << 16, file),
            hash: Sha256::new(),
            size: 0,
        };
        let given = content(&mut out)
            .and_then(|given| out.flush().map(|()| given))
            .at("write", &full)?;
        out.out.get_ref().sync_all().at("sync", &full)?;
        self.rows.push(InventoryRow {
            path: path.to_owned(),
            sha256: hex(&out.hash.finalize()),
            size_bytes: out.size,
        });
        Ok(given)
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
        let mut source = regular::open(from).at("open", from)?;
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
        sync_tree(self.dir.path())?;
        Ok(Sealed {
            root_sha256: inventory_root(&self.rows),
            dir: self.dir,
        })
    }
}

/// A finished bundle that is not in its place yet.
#[derive(Debug)]
pub struct Sealed {
    dir: TempDir,
    root_sha256: String,
}

impl Sealed {
    /// The root digest.
    pub fn root_sha256(&self) -> &str {
        &self.root_sha256
    }

    /// Puts it in place. The place must be free or an empty directory.
    ///
    /// # Errors
    /// It is not, or the system refused.
    pub fn publish(self, target: &Path) -> DiskResult<Published> {
        durable::publish_dir(self.dir.path(), target)?;
        // It has moved: there is nothing left to remove under the old name.
        let _ = self.dir.keep();
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
    pub fn publish_numbered(self, folder: &Path) -> DiskResult<Published> {
        let newest = newest_number(folder)?;
        if let Some(number) = newest {
            let path = folder.join(format!("{number:04}"));
            if super::check_inventory(&path).is_ok_and(|root| root == self.root_sha256) {
                return Ok(Published {
                    path,
                    root_sha256: self.root_sha256,
                });
            }
        }
        let mut number = newest.unwrap_or(0) + 1;
        loop {
            let path = folder.join(format!("{number:04}"));
            match durable::publish_dir(self.dir.path(), &path) {
                // Another merge took the number.
                Err(DiskError { source, .. })
                    if source.kind() == io::ErrorKind::DirectoryNotEmpty
                        || source.kind() == io::ErrorKind::AlreadyExists =>
                {
                    number += 1;
                }
                Err(error) => return Err(error),
                Ok(()) => {
                    let _ = self.dir.keep();
                    return Ok(Published {
                        path,
                        root_sha256: self.root_sha256,
                    });
                }
            }
        }
    }
}

fn newest_number(folder: &Path) -> DiskResult<Option<u32>> {
    let mut newest = None;
    for entry in fs::read_dir(folder).at("read", folder)? {
        let name = entry.at("read", folder)?.file_name();
        let number = name.to_str().and_then(|name| name.parse::<u32>().ok());
        newest = newest.max(number);
    }
    Ok(newest)
}

fn sync_tree(folder: &Path) -> DiskResult<()> {
    for entry in fs::read_dir(folder).at("read", folder)? {
        let entry = entry.at("read", folder)?;
        if entry.file_type().at("read", &entry.path())?.is_dir() {
            sync_tree(&entry.path())?;
        }
    }
    durable::sync_dir(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::{InventoryProblem, check_inventory};
    use proctor_protocol::object;

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
        make(format!(".bundle-{}-a/scores", dead.mark()));
        make(format!(".bundle-{}-b", this.mark()));
        make(".bundle-of-mine".into());
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
                format!(".bundle-{}-b", this.mark()),
                ".bundle-of-mine".into(),
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
