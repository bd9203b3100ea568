//! Finding the parts of a bundle that is a directory or a bare payload file.

use super::{BUNDLE_FILE, EVIDENCE, SCHEMA, SCORES};
use crate::error::Error;
use proctor_protocol::canonical::{Limits, Value};
use proctor_protocol::input::read_json;
use std::path::{Path, PathBuf};

/// A bundle that was found, its payload not judged yet.
#[derive(Debug)]
pub struct Opened {
    /// The payload.
    pub payload: Value,
    /// The payload's file.
    pub payload_file: PathBuf,
    /// The bundle directory, when it is one of ours.
    pub dir: Option<PathBuf>,
    /// The folder of score files, when there is one.
    pub scores: Option<PathBuf>,
    /// The folder of evidence, when there is one.
    pub evidence: Option<PathBuf>,
}

/// Finds the parts of the bundle at `path`: a bundle directory, or a payload file of anybody.
///
/// # Errors
/// There is none, or its payload is not JSON.
pub fn open(path: &Path) -> Result<Opened, Error> {
    if !path.is_dir() {
        return Ok(Opened {
            payload: read_json(path, Limits::default())?,
            payload_file: path.to_path_buf(),
            dir: None,
            scores: None,
            evidence: None,
        });
    }
    let about_file = path.join(BUNDLE_FILE);
    if !about_file.is_file() {
        let hint = if path.join("run.json").is_file() {
            "; it is a run directory: its bundle is `bundle` in it, once there is one"
        } else {
            ""
        };
        return Err(Error::input(format!(
            "{} is not a bundle: it has no {BUNDLE_FILE}{hint}",
            path.display()
        )));
    }
    let about = read_json(&about_file, Limits::default())?;
    let refuse = |problem: String| Error::input(format!("{}: {problem}", about_file.display()));
    if about.get("schema").and_then(Value::as_str) != Some(SCHEMA) {
        return Err(refuse(format!(
            "`schema` must be {SCHEMA:?}; another version wrote it"
        )));
    }
    let payload = about.get("payload").and_then(Value::as_str);
    let plain = |name: &&str| !name.is_empty() && !name.contains(['/', '\\']) && *name != "..";
    let payload = payload
        .filter(plain)
        .ok_or_else(|| refuse("`payload` must be the name of a file in the bundle".into()))?;
    let payload_file = path.join(payload);
    let folder = |name| Some(path.join(name)).filter(|folder| folder.is_dir());
    Ok(Opened {
        payload: read_json(&payload_file, Limits::default())?,
        payload_file,
        dir: Some(path.to_path_buf()),
        scores: folder(SCORES),
        evidence: folder(EVIDENCE),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_name_cannot_leave_the_bundle() {
        let folder = tempfile::tempdir().unwrap();
        for bad in ["../x.json", "/etc/passwd", "", ".."] {
            let text = format!("{{\"schema\":\"{SCHEMA}\",\"payload\":\"{bad}\"}}");
            std::fs::write(folder.path().join(BUNDLE_FILE), text).unwrap();
            let error = open(folder.path()).unwrap_err().to_string();
            assert!(
                error.contains("must be the name of a file"),
                "{bad}: {error}"
            );
        }
    }

    #[test]
    fn a_run_directory_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("run.json"), "{}").unwrap();
        let error = open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("it is a run directory"), "{error}");
    }
}
