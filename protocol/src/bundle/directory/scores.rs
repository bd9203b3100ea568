//! The score files of a bundle directory against its index and against the checkpoints.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Directory, below, entries, name};
use crate::bundle::Finding;
use crate::bundle::score::digest_scores;
use crate::canonical::Value;

const RULE: &str = "evidence";
/// The folder of score files.
const SCORES: &str = "scores";
/// The folder of validation scores, in each folder of evidence.
pub(super) const VALIDATION: &str = "validation";

/// The names of the score files that are there, each of which the payload must list.
pub(super) fn listed(directory: &Directory<'_>) -> Result<BTreeSet<String>, Finding> {
    let index = directory.document.metadata().get("score_artifacts");
    let index: BTreeSet<&str> = index
        .and_then(Value::as_array)
        .unwrap_or_default()
        .iter()
        .filter_map(|entry| entry.get("filename")?.as_str())
        .collect();
    let mut there = BTreeSet::new();
    for path in entries(&directory.root.join(SCORES))? {
        if !index.contains(name(&path)) {
            let problem = "is in the bundle, but not in metadata.score_artifacts";
            let shown = below(directory.root, &path);
            return Err(Finding::new("score_artifacts", shown, problem));
        }
        there.insert(name(&path).to_owned());
    }
    Ok(there)
}

/// The names of the files of validation scores that are there.
pub(super) fn of_validation(folders: &[PathBuf]) -> Result<BTreeSet<String>, Finding> {
    let mut there = BTreeSet::new();
    for folder in folders {
        let paths = entries(&folder.join(VALIDATION))?;
        there.extend(paths.iter().map(|path| name(path).to_owned()));
    }
    Ok(there)
}

/// What a checkpoint says of the scores of a dataset.
pub(super) struct Promise {
    /// Of validation data.
    pub validation: bool,
    /// Name of the score file.
    pub file: String,
    /// How many scores.
    pub items: i64,
    /// SHA-256 of the scores as little-endian doubles.
    pub sha256: String,
    /// The record that says so, for messages.
    pub record: String,
}

impl Promise {
    /// Compares a score file with the checkpoint, where it holds every score: candidates that a protocol leaves out are
    /// in the checkpoint alone.
    pub(super) fn check(&self, root: &Path, folders: &[PathBuf]) -> Result<(), Finding> {
        let path = if self.validation {
            let places = folders.iter();
            let mut places = places.map(|folder| folder.join(VALIDATION).join(&self.file));
            places.find(|path| path.exists())
        } else {
            Some(root.join(SCORES).join(&self.file)).filter(|path| path.exists())
        };
        let Some(path) = path else {
            return Ok(());
        };
        let shown = below(root, &path);
        let (rows, sha256) =
            digest_scores(&path).map_err(|problem| Finding::new(RULE, shown.as_ref(), problem))?;
        if i64::try_from(rows) != Ok(self.items) || sha256 == self.sha256 {
            return Ok(());
        }
        let why = format!("{} has scores of SHA-256", self.record);
        Err(Finding::differs(
            RULE,
            shown,
            (&self.sha256, &why),
            &format!("of scores with SHA-256 {sha256}"),
        ))
    }
}
