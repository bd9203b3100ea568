//! Judging what lies around a payload in a bundle directory (design section 9): its tables and pages must be those of the
//! payload, and its evidence must tell what the payload tells.

mod attempts;
mod files;
mod plans;
mod scores;
mod thresholds;

use std::path::{Path, PathBuf};

use super::{Document, Finding};
use crate::canonical::{Value, canonical};
use crate::frozen::{LoadedEntry, Protocol};

/// The folder of evidence.
const EVIDENCE: &str = "evidence";
/// Evidence of bundles that were merged lies in parts, which may hold parts again.
const PART: &str = "part-";
/// How deep parts may lie in each other.
const MAX_DEPTH: usize = 64;
/// Most parts of one bundle.
const MAX_PARTS: usize = 10_000;

/// How much of a bundle has our evidence. It is derived from the records, never believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// No method.
    None,
    /// Some methods, or not all of an attempt.
    Partial,
    /// The plan is there, and every method that ran has the ended attempt that counts, and its score files.
    Full,
}

impl Evidence {
    /// The word in `bundle.json` and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::None => "none",
        }
    }

    /// The level of a word.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Full, Self::Partial, Self::None]
            .into_iter()
            .find(|evidence| evidence.name() == name)
    }
}

/// A bundle directory whose payload was accepted.
#[derive(Debug, Clone, Copy)]
pub struct Directory<'a> {
    /// Where it is.
    pub root: &'a Path,
    /// What its `bundle.json` says.
    pub about: &'a Value,
    /// The payload.
    pub document: &'a Document,
    /// The protocol, when it is known from outside.
    pub protocol: Option<&'a Protocol>,
    /// The frozen data, in the order of the protocol's datasets.
    pub data: Option<&'a [LoadedEntry]>,
    /// Our version: pages of another version are laid out in another way, so they are not compared.
    pub version: &'a str,
}

/// What the payload of a directory rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backing {
    /// How much evidence there is.
    pub evidence: Evidence,
    /// False when another version made the pages.
    pub pages_compared: bool,
    /// Calibrated thresholds in the payload.
    pub thresholds: usize,
    /// Those that were calibrated again from validation scores.
    pub recomputed_thresholds: usize,
}

/// Compares everything that lies around a payload with it. The inventory is not read here.
///
/// # Errors
/// The first difference, and where.
pub fn check_directory(directory: &Directory<'_>) -> Result<Backing, Finding> {
    let embedded;
    let protocol = if let Some(protocol) = directory.protocol {
        protocol
    } else {
        let value = directory.document.metadata().get("benchmark_protocol");
        embedded = Protocol::from_value(value.unwrap_or(&Value::Null), None).map_err(|error| {
            let at = "metadata.benchmark_protocol";
            Finding::new("protocol", at, error.to_string())
        })?;
        &embedded
    };
    check_about(directory)?;
    let folders = evidence_folders(directory.root)?;
    let (thresholds, recomputed_thresholds) = thresholds::check(directory, protocol, &folders)?;
    let runs = plans::check(directory, protocol, &folders)?;
    let mut evidence = attempts::check(directory, protocol, &folders, &runs)?;
    if runs.iter().all(Option::is_none) {
        evidence = evidence.min(Evidence::Partial);
    }
    check_claim(directory, evidence)?;
    let pages_compared = files::check(directory)?;
    Ok(Backing {
        evidence,
        pages_compared,
        thresholds,
        recomputed_thresholds,
    })
}

/// What `bundle.json` says of the payload must be so.
fn check_about(directory: &Directory<'_>) -> Result<(), Finding> {
    let document = directory.document;
    let complete = !document.is_incomplete();
    let expected = [
        ("complete", Value::from(complete)),
        ("benchmark_id", document.benchmark_id().into()),
        ("protocol_id", document.protocol_id().into()),
    ];
    for (field, expected) in expected {
        let found = directory.about.get(field).unwrap_or(&Value::Null);
        if *found != expected {
            return Err(Finding::differs(
                "bundle",
                format!("bundle.json: {field}"),
                (&canonical(&expected), "the payload makes it"),
                &canonical(found),
            ));
        }
    }
    Ok(())
}

/// No bundle may say that it has more evidence than it has.
fn check_claim(directory: &Directory<'_>, evidence: Evidence) -> Result<(), Finding> {
    let claim = directory.about.get("evidence").and_then(Value::as_str);
    match claim.and_then(Evidence::from_name) {
        Some(claim) if claim <= evidence => Ok(()),
        _ => Err(Finding::differs(
            "evidence",
            "bundle.json: evidence",
            (evidence.name(), "the records make it"),
            claim.unwrap_or("missing"),
        )),
    }
}

/// The folder of evidence, and those of the bundles that were merged: from outside to inside, by name.
fn evidence_folders(root: &Path) -> Result<Vec<PathBuf>, Finding> {
    let mut folders = Vec::new();
    let mut level = vec![root.join(EVIDENCE)];
    for _ in 0..MAX_DEPTH {
        let mut next = Vec::new();
        for folder in level {
            if !folder.is_dir() {
                continue;
            }
            let parts = entries(&folder)?;
            next.extend(
                parts
                    .into_iter()
                    .filter(|path| name(path).starts_with(PART)),
            );
            folders.push(folder);
            if folders.len() + next.len() > MAX_PARTS {
                let problem = format!("has more than the {MAX_PARTS} parts allowed");
                return Err(Finding::new("evidence", EVIDENCE, problem));
            }
        }
        if next.is_empty() {
            return Ok(folders);
        }
        level = next;
    }
    let problem = format!("has parts in parts, more than the {MAX_DEPTH} levels allowed");
    Err(Finding::new("evidence", EVIDENCE, problem))
}

/// What lies in a folder, by name; nothing when it is not there.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Finding> {
    let read = || -> std::io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            paths.push(entry?.path());
        }
        paths.sort();
        Ok(paths)
    };
    match read() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(|error| {
            let at = folder.display().to_string();
            Finding::new("evidence", at, format!("cannot be read: {error}"))
        }),
    }
}

fn name(path: &Path) -> &str {
    path.file_name()
        .and_then(std::ffi::OsStr::to_str)
        .unwrap_or_default()
}

/// A path as the bundle names it.
fn below<'a>(root: &Path, path: &'a Path) -> std::borrow::Cow<'a, str> {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy()
}
