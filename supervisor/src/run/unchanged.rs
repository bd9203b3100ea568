//! Whether what a run was planned with is still what lies there. A run goes on only with the same program, inputs and files.

use crate::rundir::plan::{Plan, WorkerBinary};
use proctor_protocol::canonical::Value;
use proctor_protocol::method::{FileHashes, Method, MethodKind};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A file that is not what was planned.
#[derive(Debug)]
pub struct Difference {
    /// The file.
    pub path: PathBuf,
    /// SHA-256 it had.
    pub expected: String,
    /// SHA-256 it has, or why it cannot be read.
    pub found: Result<String, io::Error>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.found {
            Ok(found) => write!(
                f,
                "{path}: SHA-256 is {found}, the run was planned with {}",
                self.expected
            ),
            Err(error) => write!(
                f,
                "{path}: cannot be read any more ({error}); the run was planned with SHA-256 {}",
                self.expected
            ),
        }
    }
}

fn compare(path: &Path, expected: &str, hashes: &mut FileHashes) -> Option<Difference> {
    let found = hashes.sha256(path);
    if found.as_ref().is_ok_and(|found| found == expected) {
        return None;
    }
    Some(Difference {
        path: path.to_path_buf(),
        expected: expected.to_owned(),
        found,
    })
}

/// The first file a method is made of that is not the one that was planned. Its id promises what runs.
pub fn of_method(
    method: &Method,
    worker: &WorkerBinary,
    hashes: &mut FileHashes,
) -> Option<Difference> {
    let mut promised: Vec<(&Path, Option<&str>)> = Vec::new();
    match &method.kind {
        MethodKind::Program(program) => {
            let known = |key| method.configuration.get(key);
            let executable = known("executable_sha256").and_then(Value::as_str);
            promised.push((&program.executable, executable));
            let files = known("files").and_then(Value::as_array).unwrap_or_default();
            for path in &program.files {
                let name = path.file_name().and_then(|name| name.to_str());
                let entry = files
                    .iter()
                    .find(|entry| entry.get("name").and_then(Value::as_str) == name);
                promised.push((path, entry.and_then(|entry| entry.get("sha256")?.as_str())));
            }
        }
        MethodKind::Builtin | MethodKind::Unsupported(_) => {
            let path = worker.path.as_deref();
            promised.extend(path.map(|path| (path, Some(worker.sha256.as_str()))));
        }
    }
    let mut promised = promised.into_iter();
    promised.find_map(|(path, sha256)| compare(path, sha256.unwrap_or("none"), hashes))
}

/// What of the program, the inputs and the files of these methods is not as it was planned. An input that is gone
/// is no difference: the plan holds all that was in it. `other` is the file of this program where it is not known to be the same.
pub fn differences<'a>(
    plan: &Plan,
    methods: impl Iterator<Item = &'a Method>,
    other: Option<&Path>,
) -> Vec<Difference> {
    let mut hashes = FileHashes::default();
    let mut found = Vec::new();
    found.extend(other.and_then(|own| compare(own, &plan.binary_sha256, &mut hashes)));
    for input in &plan.inputs {
        let difference = compare(&input.path, &input.sha256, &mut hashes);
        found.extend(difference.filter(|difference| {
            !matches!(&difference.found, Err(error) if error.kind() == io::ErrorKind::NotFound)
        }));
    }
    for method in methods {
        let difference = of_method(method, &plan.policy.worker, &mut hashes);
        found.extend(difference.filter(|one| {
            found
                .iter()
                .all(|other: &Difference| other.path != one.path)
        }));
    }
    found
}
