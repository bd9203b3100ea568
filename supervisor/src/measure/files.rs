//! Which part of the files of an attempt is in the page cache.

use super::conditions::{Reading, Readings, reason};
use crate::room::cached;
use crate::rundir::regular;
use proctor_protocol::canonical::Value;
use proctor_protocol::object;
use std::fs;
use std::path::{Path, PathBuf};

/// So many files of a kind are looked at; each costs a few microseconds.
const MOST_FILES: usize = 128;
/// So many folders of datasets are looked into.
const MOST_FOLDERS: usize = 64;

/// The files that an attempt has to do with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// What the method declares: models, tables, sources.
    pub method: Vec<PathBuf>,
    /// The worker's program.
    pub worker: Vec<PathBuf>,
    /// Folders of datasets.
    pub datasets: Vec<PathBuf>,
}

/// Looks at all of them.
pub(super) fn page_cache(files: &Files) -> Value {
    let mut readings = Readings::default();
    let (datasets, all) = below(&files.datasets);
    for (name, files, all) in [
        ("method", &files.method, true),
        ("worker", &files.worker, true),
        ("datasets", &datasets, all),
    ] {
        readings.put(name, resident(files, all));
    }
    readings.into_value()
}

/// The part of some files that is in memory; `all` is false when there are more of them.
fn resident(files: &[PathBuf], all: bool) -> Reading<Value> {
    if files.is_empty() {
        return Err("there are no such files".into());
    }
    let looked_at = &files[..files.len().min(MOST_FILES)];
    let (mut bytes, mut resident) = (0_u64, 0_u64);
    for file in looked_at {
        let found = regular::open(file).and_then(|file| cached(&file));
        let found = found.map_err(|error| match file.file_name() {
            Some(name) => format!("{}: {}", name.display(), reason(&error)),
            None => reason(&error),
        })?;
        bytes = bytes.saturating_add(found.bytes);
        resident = resident.saturating_add(found.resident);
    }
    let fraction = if bytes == 0 {
        1.0
    } else {
        (resident as f64 / bytes as f64 * 1e4).round() / 1e4
    };
    Ok(object! {
        "files" => looked_at.len(),
        "all" => all && looked_at.len() == files.len(),
        "bytes" => i64::try_from(bytes).unwrap_or(i64::MAX),
        "resident" => fraction,
    })
}

/// Regular files in some folders and the folders below them, and whether they are all there are.
fn below(roots: &[PathBuf]) -> (Vec<PathBuf>, bool) {
    let mut folders: Vec<PathBuf> = roots.iter().rev().cloned().collect();
    let (mut files, mut looked_into) = (Vec::new(), 0);
    while let Some(folder) = folders.pop() {
        if looked_into == MOST_FOLDERS {
            return (files, false);
        }
        looked_into += 1;
        if !list(&folder, &mut files, &mut folders) {
            return (files, false);
        }
    }
    (files, true)
}

/// Adds what is in a folder; false when there is more than is wanted, or it cannot be read.
fn list(folder: &Path, files: &mut Vec<PathBuf>, folders: &mut Vec<PathBuf>) -> bool {
    let Ok(entries) = fs::read_dir(folder) else {
        return false;
    };
    for entry in entries {
        let Some((entry, kind)) = entry.ok().and_then(|entry| {
            let kind = entry.file_type().ok()?;
            Some((entry, kind))
        }) else {
            return false;
        };
        if kind.is_dir() {
            folders.push(entry.path());
        } else if kind.is_file() {
            if files.len() == MOST_FILES {
                return false;
            }
            files.push(entry.path());
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_were_just_written_are_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("data/files")).unwrap();
        fs::write(path("model"), vec![1; 10_000]).unwrap();
        fs::write(path("data/pairs.csv"), "a,b\n").unwrap();
        fs::write(path("data/files/x"), "text").unwrap();
        let files = Files {
            method: vec![path("model")],
            worker: vec![path("gone")],
            datasets: vec![path("data")],
        };
        let value = page_cache(&files);
        let model =
            object! { "files" => 1_i64, "all" => true, "bytes" => 10_000_i64, "resident" => 1.0 };
        assert_eq!(value.get("method"), Some(&model));
        let data = value.get("datasets").unwrap();
        assert_eq!(data.get("files").and_then(Value::as_int), Some(2));
        assert_eq!(data.get("bytes").and_then(Value::as_int), Some(8));
        assert!(value.get("worker").unwrap().is_null());
        let why = value
            .get("unknown")
            .and_then(|unknown| unknown.get("worker"));
        assert!(why.and_then(Value::as_str).unwrap().starts_with("gone: "));
    }

    #[test]
    fn of_very_many_files_some_are_looked_at_and_it_says_so() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..MOST_FILES + 20 {
            fs::write(folder.path().join(number.to_string()), "x").unwrap();
        }
        let files = Files {
            datasets: vec![folder.path().into()],
            ..Files::default()
        };
        let data = page_cache(&files);
        let data = data.get("datasets").unwrap();
        assert_eq!(
            data.get("files").and_then(Value::as_int),
            i64::try_from(MOST_FILES).ok()
        );
        assert_eq!(data.get("all").and_then(Value::as_bool), Some(false));
    }
}
