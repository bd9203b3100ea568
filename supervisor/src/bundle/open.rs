//! Finding the parts of a bundle that is a directory or a bare payload file.

use super::{BUNDLE_FILE, SCHEMA, SCORES};
use crate::error::Error;
use crate::rundir::durable;
use proctor_protocol::bundle::Payload;
use proctor_protocol::canonical::{Limits, Value};
use proctor_protocol::input::read_json;
use std::path::{Path, PathBuf};

/// A bundle that was found, its payload not judged yet.
#[derive(Debug)]
pub struct Opened {
    /// The payload.
    pub payload: Payload,
    /// The payload's file.
    pub payload_file: PathBuf,
    /// The bundle directory, when it is one of ours.
    pub dir: Option<PathBuf>,
    /// The folder of score files, when there is one.
    pub scores: Option<PathBuf>,
    /// What its `bundle.json` says; `null` of a bare payload.
    pub about: Value,
}

impl Opened {
    /// Refuses what has nothing that a bundle has: it is some other document, and no verdict is due.
    ///
    /// # Errors
    /// It has neither metadata nor rows.
    pub fn check(&self) -> Result<(), Error> {
        if self.payload.is_bundle() {
            return Ok(());
        }
        Err(Error::input(format!(
            "{} is not a bundle: it has neither metadata nor rows",
            self.payload_file.display()
        )))
    }
}

/// Finds the parts of the bundle at `path`: a bundle directory, or a payload file of anybody. A payload file in a bundle
/// directory stands for that directory.
///
/// # Errors
/// There is none, or its payload is not JSON.
pub fn open(path: &Path) -> Result<Opened, Error> {
    if path.is_dir() {
        return open_dir(path);
    }
    let folder = durable::parent(path);
    if stands_for(path, folder) {
        return open_dir(folder);
    }
    Ok(Opened {
        payload: Payload::open(path)?,
        payload_file: path.to_path_buf(),
        dir: None,
        scores: None,
        about: Value::Null,
    })
}

/// True when the folder is a bundle of ours whose payload is this file. A `bundle.json` of somebody else beside a payload
/// says nothing about it.
fn stands_for(file: &Path, folder: &Path) -> bool {
    let Ok(about) = read_json(&folder.join(BUNDLE_FILE), Limits::default()) else {
        return false;
    };
    let text = |field: &str| about.get(field).and_then(Value::as_str);
    text("schema") == Some(SCHEMA)
        && text("payload").is_some_and(|name| file.file_name() == Some(name.as_ref()))
}

fn open_dir(path: &Path) -> Result<Opened, Error> {
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
    let text = |field: &str| about.get(field).and_then(Value::as_str);
    if text("schema") != Some(SCHEMA) {
        return Err(refuse(format!(
            "`schema` must be {SCHEMA:?}; another version wrote it"
        )));
    }
    let plain = |name: &&str| !name.is_empty() && !name.contains(['/', '\\']) && *name != "..";
    let payload = text("payload")
        .filter(plain)
        .ok_or_else(|| refuse("`payload` must be the name of a file in the bundle".into()))?;
    let payload_file = path.join(payload);
    Ok(Opened {
        payload: Payload::open(&payload_file)?,
        payload_file,
        dir: Some(path.to_path_buf()),
        scores: Some(path.join(SCORES)).filter(|folder| folder.is_dir()),
        about,
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
    fn a_payload_file_stands_for_its_bundle_directory_and_others_for_themselves() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let about =
            format!("{{\"schema\":\"{SCHEMA}\",\"payload\":\"p.json\",\"evidence\":\"full\"}}");
        std::fs::write(file(BUNDLE_FILE), about).unwrap();
        std::fs::write(file("p.json"), "{}").unwrap();
        std::fs::write(file("other.json"), "{}").unwrap();
        let opened = open(&file("p.json")).unwrap();
        assert_eq!(opened.dir.as_deref(), Some(folder.path()));
        let evidence = opened.about.get("evidence").and_then(Value::as_str);
        assert_eq!(evidence, Some("full"));
        let opened = open(&file("other.json")).unwrap();
        assert_eq!((opened.dir, opened.about), (None, Value::Null));
    }

    #[test]
    fn a_payload_beside_somebody_elses_bundle_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("p.json"), "{}").unwrap();
        for foreign in ["{\"schema\":\"other/1\",\"payload\":\"p.json\"}", "[]", "{"] {
            std::fs::write(folder.path().join(BUNDLE_FILE), foreign).unwrap();
            let opened = open(&folder.path().join("p.json")).unwrap();
            assert_eq!(opened.dir, None, "{foreign}");
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
