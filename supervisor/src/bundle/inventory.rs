//! Checking a bundle directory against its inventory.

use super::INVENTORY_FILE;
use crate::rundir::regular;
use proctor_protocol::bundle::{InventoryRow, inventory_root};
use proctor_protocol::canonical::{Limits, Value};
use proctor_protocol::input::read_json;
use std::collections::{BTreeMap, BTreeSet};
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

/// Checks every file of a bundle directory; gives the root digest.
///
/// # Errors
/// The first difference.
pub fn check_inventory(dir: &Path) -> Result<String, InventoryProblem> {
    let mut found = Vec::new();
    walk(dir, "", &mut found)?;
    let value = read_json(&dir.join(INVENTORY_FILE), Limits::default())
        .map_err(|error| InventoryProblem::Malformed(error.to_string()))?;
    let listed = listed(&value)?;
    for row in &found {
        if row.path == INVENTORY_FILE {
            continue;
        }
        match listed.get(&row.path) {
            None => {
                return Err(InventoryProblem::Unlisted {
                    path: row.path.clone(),
                });
            }
            Some(known) if known != row => {
                return Err(InventoryProblem::Differs {
                    path: row.path.clone(),
                });
            }
            Some(_) => {}
        }
    }
    let there: BTreeSet<&str> = found.iter().map(|row| row.path.as_str()).collect();
    let missing = |path: &&String| !there.contains(path.as_str());
    if let Some(path) = listed.keys().find(missing) {
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

fn walk(dir: &Path, below: &str, rows: &mut Vec<InventoryRow>) -> Result<(), InventoryProblem> {
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
            walk(&entry.path(), &format!("{path}/"), rows)?;
        } else if kind.is_file() {
            let size_bytes = entry.metadata().map_err(unreadable)?.len();
            let sha256 =
                regular::sha256(&entry.path()).map_err(|source| InventoryProblem::Unreadable {
                    path: entry.path(),
                    source,
                })?;
            rows.push(InventoryRow {
                path,
                sha256,
                size_bytes,
            });
        } else {
            return Err(InventoryProblem::Foreign { path });
        }
    }
    Ok(())
}
