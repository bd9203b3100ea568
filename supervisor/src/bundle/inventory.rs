//! Checking a bundle directory against its inventory.

use super::INVENTORY_FILE;
use crate::rundir::regular;
use proctor_protocol::bundle::{InventoryRow, inventory_root};
use proctor_protocol::canonical::{Limits, Value};
use proctor_protocol::input::read_json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How a bundle directory and its inventory differ.
#[derive(Debug, thiserror::Error)]
pub enum InventoryProblem {
    /// A file or folder cannot be read.
    #[error("could not read {path}: {source}", path = path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The inventory is not one.
    #[error("the inventory is not one: {0}")]
    Malformed(String),
    /// A listed file is not there.
    #[error("{path} is in the inventory but not in the bundle")]
    Missing {
        /// The file.
        path: String,
    },
    /// A file is not listed.
    #[error("{path} is in the bundle but not in the inventory")]
    Unlisted {
        /// The file.
        path: String,
    },
    /// A file is not the one that was listed.
    #[error("{path} was changed: its length or SHA-256 is not that of the inventory")]
    Differs {
        /// The file.
        path: String,
    },
    /// Something that is neither a folder nor a regular file.
    #[error("{path} is neither a regular file nor a folder; a bundle holds nothing else")]
    Foreign {
        /// What.
        path: String,
    },
}

/// Checks every file of a bundle directory; gives the root digest. A file is read only when it has the length that is
/// listed.
///
/// # Errors
/// The first difference.
pub fn check_inventory(dir: &Path) -> Result<String, InventoryProblem> {
    let mut sizes = BTreeMap::new();
    walk(dir, "", &mut sizes)?;
    let value = read_json(&dir.join(INVENTORY_FILE), Limits::default())
        .map_err(|error| InventoryProblem::Malformed(error.to_string()))?;
    let listed = listed(&value)?;
    let mut found = Vec::with_capacity(sizes.len());
    for (path, &size_bytes) in &sizes {
        let known = listed.get(path).filter(|_| path != INVENTORY_FILE);
        let differs = || InventoryProblem::Differs { path: path.clone() };
        match known {
            None if path != INVENTORY_FILE => {
                return Err(InventoryProblem::Unlisted { path: path.clone() });
            }
            Some(known) if known.size_bytes != size_bytes => return Err(differs()),
            _ => {}
        }
        let full = dir.join(path);
        let sha256 = regular::sha256(&full)
            .map_err(|source| InventoryProblem::Unreadable { path: full, source })?;
        if known.is_some_and(|known| known.sha256 != sha256) {
            return Err(differs());
        }
        found.push(InventoryRow {
            path: path.clone(),
            sha256,
            size_bytes,
        });
    }
    if let Some(path) = listed.keys().find(|path| !sizes.contains_key(*path)) {
        return Err(InventoryProblem::Missing { path: path.clone() });
    }
    Ok(inventory_root(&found))
}

fn listed(value: &Value) -> Result<BTreeMap<String, InventoryRow>, InventoryProblem> {
    let malformed = |problem: &str| InventoryProblem::Malformed(problem.to_owned());
    let rows = value
        .as_array()
        .ok_or_else(|| malformed("it must be an array"))?;
    let mut listed = BTreeMap::new();
    for row in rows {
        let row = Value::as_object(row).and_then(InventoryRow::from_object);
        let row = row.ok_or_else(|| malformed("a row needs path, sha256 and size_bytes"))?;
        if listed.insert(row.path.clone(), row).is_some() {
            return Err(malformed("a path is listed twice"));
        }
    }
    Ok(listed)
}

/// The length of every file, by its path.
fn walk(
    dir: &Path,
    below: &str,
    sizes: &mut BTreeMap<String, u64>,
) -> Result<(), InventoryProblem> {
    let unreadable = |source| InventoryProblem::Unreadable {
        path: dir.to_path_buf(),
        source,
    };
    for entry in std::fs::read_dir(dir).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
            let path = entry.path().display().to_string();
            return Err(InventoryProblem::Foreign { path });
        };
        let path = format!("{below}{name}");
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_dir() {
            walk(&entry.path(), &format!("{path}/"), sizes)?;
        } else if kind.is_file() {
            sizes.insert(path, entry.metadata().map_err(unreadable)?.len());
        } else {
            return Err(InventoryProblem::Foreign { path });
        }
    }
    Ok(())
}
