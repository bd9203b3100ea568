//! Everything that is refused before anything starts: unsound input, methods nothing here can run, a machine that
//! cannot hold the result. Nothing is written here.

use super::handshake::greet;
use super::{host, worker};
use crate::error::Error;
use crate::room::{self, Probe};
use crate::rundir::RunDir;
use crate::rundir::durable;
use crate::rundir::plan::{Policy, WorkerBinary, parts};
use crate::schedule::core_sets;
use proctor_protocol::dataset::Family;
use proctor_protocol::frozen::{DatasetEntry, LoadedEntry, Protocol};
use proctor_protocol::method::{Method, MethodKind, load_methods};
use std::path::{Path, PathBuf};

/// What is asked of a run.
#[derive(Debug, Clone)]
pub struct Request {
    /// The protocol file.
    pub protocol: PathBuf,
    /// The methods file.
    pub methods: PathBuf,
    /// The run directory to make.
    pub output: PathBuf,
    /// Methods at a time.
    pub jobs: usize,
    /// Names of the methods to run; empty for all.
    pub only: Vec<String>,
    /// Base name of the bundle's files.
    pub basename: String,
    /// The worker, if named.
    pub worker: Option<PathBuf>,
}

/// A run that may start.
#[derive(Debug)]
pub struct Prepared {
    /// The protocol.
    pub protocol: Protocol,
    /// Its data, checked against it.
    pub loaded: Vec<LoadedEntry>,
    /// The methods to run.
    pub methods: Vec<Method>,
    /// How they are run.
    pub policy: Policy,
    /// Where.
    pub run: RunDir,
    /// Base name of the bundle's files.
    pub basename: String,
    /// What isolation this machine gives.
    pub probe: Probe,
}

/// Checks a request, cheapest things first.
///
/// # Errors
/// The first thing that is wrong, and what to do about it.
pub fn prepare(request: &Request) -> Result<Prepared, Error> {
    let methods = chosen(
        load_methods(&request.methods)?,
        &request.only,
        &request.methods,
    )?;
    let protocol = Protocol::load(&request.protocol)?;
    for method in &methods {
        method.check_against(&protocol)?;
    }
    runnable(&methods)?;
    let run = RunDir::new(&absolute(&request.output)?);
    empty_or_absent(run.root(), "--output")?;
    check_space(run.root(), needed_bytes(&protocol, &methods))?;
    let cores = host::usable_cores().map_err(|error| {
        Error::Infrastructure(format!(
            "the system does not tell which cores may be used: {error}"
        ))
    })?;
    let core_sets =
        core_sets(&cores, request.jobs).map_err(|error| Error::input(error.to_string()))?;
    let worker = worker_binary(&methods, request.worker.as_deref())?;
    let probe = room::probe();
    if probe.best().is_none() {
        return Err(Error::Infrastructure(
            "this machine gives no room that can be emptied for sure; `proctor doctor` says why"
                .into(),
        ));
    }
    if let Some(program) = &worker.path {
        for method in methods
            .iter()
            .filter(|method| method.kind == MethodKind::Builtin)
        {
            greet(program, method, &core_sets[0])?;
        }
    }
    let loaded = protocol.verify_data()?;
    Ok(Prepared {
        policy: Policy {
            budget_seconds: protocol.max_method_seconds(),
            jobs: request.jobs,
            core_sets,
            worker,
        },
        protocol,
        loaded,
        methods,
        run,
        basename: request.basename.clone(),
        probe,
    })
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(|error| Error::input(format!("{}: {error}", path.display())))
}

/// The methods named, in the order of the file; all without names.
fn chosen(methods: Vec<Method>, only: &[String], file: &Path) -> Result<Vec<Method>, Error> {
    let missing = only
        .iter()
        .find(|name| methods.iter().all(|method| method.name != **name));
    if let Some(name) = missing {
        let names: Vec<&str> = methods.iter().map(|method| method.name.as_str()).collect();
        return Err(Error::input(format!(
            "--only {name:?}: {} has no method of that name; it has: {}",
            file.display(),
            names.join(", ")
        )));
    }
    let wanted = |method: &Method| only.is_empty() || only.contains(&method.name);
    Ok(methods.into_iter().filter(wanted).collect())
}

/// Refuses, all at once, the methods that nothing here can run.
fn runnable(methods: &[Method]) -> Result<(), Error> {
    let refused: Vec<String> = methods
        .iter()
        .filter_map(|method| match &method.kind {
            MethodKind::Unsupported(reason) => Some(format!("  {}: {reason}", method.name)),
            _ => None,
        })
        .collect();
    if refused.is_empty() {
        return Ok(());
    }
    Err(Error::input(format!(
        "nothing was started: the built-in worker cannot run\n{}\nleave these methods out (--only NAME names the others)",
        refused.join("\n")
    )))
}

/// Refuses a directory that holds something.
///
/// # Errors
/// It is a file, cannot be read, or is not empty.
pub fn empty_or_absent(path: &Path, option: &str) -> Result<(), Error> {
    let mut entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(Error::input(format!(
                "{option} {}: {error}",
                path.display()
            )));
        }
    };
    if entries.next().is_none() {
        return Ok(());
    }
    let hint = if path.join("run.json").exists() {
        "it holds a run already (`proctor status` shows it, `proctor merge` makes its bundle)"
    } else {
        "it is not empty"
    };
    Err(Error::input(format!(
        "{option} {}: {hint}; name a directory that is empty or does not exist",
        path.display()
    )))
}

/// Bytes a labelled score row takes in a bundle, generously.
const SCORE_ROW_BYTES: u64 = 128;
/// Room for records, logs and pages.
const SPARE_BYTES: u64 = 64 << 20;

fn needed_bytes(protocol: &Protocol, methods: &[Method]) -> u64 {
    let items: u64 = methods
        .iter()
        .flat_map(|method| parts(protocol, method))
        .map(|part| items(&protocol.datasets()[part.dataset]))
        .fold(0, u64::saturating_add);
    items
        .saturating_mul(8 + SCORE_ROW_BYTES)
        .saturating_add(SPARE_BYTES)
}

/// Scores a worker is asked for: nothing is masked on the wire.
fn items(entry: &DatasetEntry) -> u64 {
    match entry.family {
        Family::Pair => entry.count("pairs"),
        Family::Retrieval => entry.count("queries").saturating_mul(entry.count("corpus")),
    }
}

fn check_space(path: &Path, needed: u64) -> Result<(), Error> {
    let there = path.ancestors().find(|folder| folder.exists());
    let free = durable::free_bytes(there.unwrap_or(Path::new("/")))?;
    if free >= needed {
        return Ok(());
    }
    Err(Error::input(format!(
        "{}: {} MiB are free where the run needs up to {} MiB; free some, or name another --output",
        path.display(),
        free >> 20,
        needed.div_ceil(1 << 20)
    )))
}

fn worker_binary(methods: &[Method], given: Option<&Path>) -> Result<WorkerBinary, Error> {
    let builtin = methods
        .iter()
        .any(|method| method.kind == MethodKind::Builtin);
    if !builtin {
        return Ok(WorkerBinary {
            path: None,
            sha256: String::new(),
        });
    }
    let path = worker::find(given)?;
    let sha256 = host::file_sha256(&path)
        .map_err(|error| Error::input(format!("{}: {error}", path.display())))?;
    Ok(WorkerBinary {
        path: Some(path),
        sha256,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_with_anything_in_it_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        empty_or_absent(&path, "--output").unwrap();
        std::fs::create_dir(&path).unwrap();
        empty_or_absent(&path, "--output").unwrap();
        std::fs::write(path.join("run.json"), "").unwrap();
        let text = empty_or_absent(&path, "--output").unwrap_err().to_string();
        assert!(text.contains("holds a run already"), "{text}");
        assert!(empty_or_absent(&path.join("run.json"), "--output").is_err());
    }

    #[test]
    fn a_run_that_cannot_fit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check_space(&folder.path().join("a/b"), 0).is_ok());
        assert!(matches!(
            check_space(folder.path(), u64::MAX),
            Err(Error::Input(_))
        ));
    }
}
