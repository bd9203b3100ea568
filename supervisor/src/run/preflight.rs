//! Everything that is refused before anything starts: unsound input, methods nothing here can run, a machine that
//! cannot hold the result. Nothing is written here.

use super::handshake::greet;
use super::taint::{self, Mark};
use super::{host, limits, official, scratch, worker};
use crate::bundle::file_stem;
use crate::error::Error;
use crate::load::Rule;
use crate::render::{brief, plain};
use crate::room::{self, Isolation, Rung};
use crate::rundir::RunDir;
use crate::rundir::plan::{Input, Policy, WorkerBinary, parts};
use crate::rundir::{Part, disk, durable, regular};
use crate::schedule::core_sets;
use proctor_protocol::dataset::Family;
use proctor_protocol::frozen::{DatasetEntry, ExecutionLimits, LoadedEntry, Protocol};
use proctor_protocol::method::{Method, MethodKind, load_methods};
use std::fmt::Write;
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
    /// How many cores it may use of those that this process may; all of them without it.
    pub cores: Option<usize>,
    /// Names of the methods to run; empty for all.
    pub only: Vec<String>,
    /// Base name of the bundle's files.
    pub basename: String,
    /// The worker, if named.
    pub worker: Option<PathBuf>,
    /// Limits, stricter than those of the protocol.
    pub limits: ExecutionLimits,
    /// The rung of the rooms; the best one of this machine without it.
    pub containment: Option<Rung>,
    /// Whether the machine must give what an official run demands.
    pub official: bool,
    /// Whether it runs all the same where the machine does not.
    pub allow_degraded: bool,
    /// What is asked of the machine before a method starts, if anything.
    pub load: Option<Rule>,
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
    /// The rung of its rooms.
    pub rung: Rung,
    /// The files the plan is made from.
    pub inputs: Vec<Input>,
}

/// Checks a request, cheapest things first.
///
/// # Errors
/// The first thing that is wrong, and what to do about it.
pub fn prepare(request: &Request) -> Result<Prepared, Error> {
    file_stem(&request.basename)?;
    // Before they are read: one that changes meanwhile is seen as changed.
    let inputs = inputs(request)?;
    let methods = chosen(
        load_methods(&request.methods)?,
        &request.only,
        &request.methods,
    )?;
    let protocol = Protocol::load(&request.protocol)?;
    for method in &methods {
        method
            .check_against(&protocol)
            .map_err(|error| error.in_file(&request.methods))?;
    }
    runnable(&methods)?;
    let run = RunDir::new(&absolute(&request.output)?);
    never_started(run.root())?;
    let all = methods.iter().flat_map(|method| parts(&protocol, method));
    check_space(run.root(), needed_bytes(&protocol, all))?;
    let limits = limits::in_force(protocol.limits(), &request.limits)?;
    let mut cores = host::usable_cores().map_err(|error| {
        Error::Infrastructure(format!(
            "the system does not tell which cores may be used: {error}"
        ))
    })?;
    cores.truncate(request.cores.unwrap_or(usize::MAX));
    let core_sets = core_sets(&cores, request.jobs, limits::cpus(&limits))
        .map_err(|error| Error::input(error.to_string()))?;
    let worker = worker_binary(&methods, request.worker.as_deref())?;
    readable(methods.iter(), worker.path.as_deref())?;
    scratch::usable().map_err(Error::input)?;
    let (rung, isolation) = containment(request.containment)?;
    let degraded = if request.official {
        lacking(rung, &isolation, &limits)
    } else {
        Vec::new()
    };
    if !request.allow_degraded {
        refuse_degraded(&degraded)?;
    }
    if let Some(program) = &worker.path {
        for method in methods
            .iter()
            .filter(|method| method.kind == MethodKind::Builtin)
        {
            greet(program, method, &core_sets[0], Some(rung))?;
        }
    }
    let loaded = protocol
        .verify_data()
        .map_err(|error| error.in_file(&request.protocol))?;
    Ok(Prepared {
        policy: Policy {
            budget_seconds: protocol.max_method_seconds(),
            jobs: request.jobs,
            core_sets,
            worker,
            limits,
            official: request.official,
            load: request.load,
            degraded,
            containment: request.containment,
        },
        protocol,
        loaded,
        methods,
        run,
        basename: request.basename.clone(),
        rung,
        inputs,
    })
}

/// What an official run lacks on this machine, with remedies.
pub(super) fn lacking(rung: Rung, isolation: &Isolation, limits: &ExecutionLimits) -> Vec<String> {
    let mut lacking = official::shortfalls(rung, isolation, limits);
    let holds = |mark| match mark {
        Mark::Holds(text) => Some(text),
        Mark::Over(_) => None,
    };
    lacking.extend(taint::marks(false).into_iter().filter_map(holds));
    lacking
}

fn inputs(request: &Request) -> Result<Vec<Input>, Error> {
    let mut inputs = Vec::new();
    for path in [&request.protocol, &request.methods] {
        // What cannot be read is refused in better words by whoever reads it.
        if let Ok(sha256) = regular::sha256(path) {
            let path = absolute(path)?;
            inputs.push(Input { path, sha256 });
        }
    }
    Ok(inputs)
}

/// The rung to use, and what a room on it has.
pub(super) fn containment(forced: Option<Rung>) -> Result<(Rung, Isolation), Error> {
    if let Some(rung) = forced {
        return match room::trial(rung) {
            Ok(isolation) => Ok((rung, isolation)),
            Err(reason) => Err(Error::input(format!(
                "--containment {rung}: this machine does not give it: {reason}; {}",
                room::remedy::for_rung(rung)
            ))),
        };
    }
    room::best().ok_or_else(|| {
        Error::Infrastructure(
            "this machine gives no room that can be emptied for sure; `proctor doctor` says why"
                .into(),
        )
    })
}

/// Refuses an official run for what it lacks.
///
/// # Errors
/// It lacks something.
pub fn refuse_degraded(lacking: &[String]) -> Result<(), Error> {
    if lacking.is_empty() {
        return Ok(());
    }
    Err(Error::input(format!(
        "nothing was started: --official demands what is missing here\n  {}\n--allow-degraded runs all the same and says so in the bundle",
        lacking.join("\n  ")
    )))
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
            "--only {}: {} has no method of that name; it has: {}",
            brief(name),
            file.display(),
            brief(&names.join(", "))
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

/// Refuses, all at once, what the worker's user could not read. Each file is named once, for the first method that
/// needs it.
pub(super) fn readable<'a>(
    methods: impl Iterator<Item = &'a Method>,
    worker: Option<&Path>,
) -> Result<(), Error> {
    let mut told: Vec<String> = Vec::new();
    let mut lines = String::new();
    for method in methods {
        for problem in worker::unreadable(method, worker) {
            if !told.contains(&problem) {
                let _ = write!(lines, "\n  {}: {}", brief(&method.name), plain(&problem));
                told.push(problem);
            }
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    Err(Error::input(format!(
        "nothing was started: the worker could not read what these methods need{lines}"
    )))
}

/// Refuses a directory that holds something.
///
/// # Errors
/// It is a file, cannot be read, or is not empty.
pub fn empty_or_absent(path: &Path, option: &str) -> Result<(), Error> {
    vacant(path, option, |_| false)
}

/// As [`empty_or_absent`], for a run: what was never finished is nothing, left by somebody who was killed over the first
/// file.
pub(crate) fn never_started(path: &Path) -> Result<(), Error> {
    vacant(path, "--output", |name| {
        name.starts_with(b".") && name.ends_with(b".part")
    })
}

fn vacant(path: &Path, option: &str, nothing: impl Fn(&[u8]) -> bool) -> Result<(), Error> {
    let refuse = |problem: &str| {
        let name = brief(&path.display().to_string());
        Err(Error::input(format!("{option} {name}: {problem}")))
    };
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => {}
        Ok(found) => {
            return refuse(&format!(
                "is {}; name a directory that is empty or does not exist",
                durable::kind(&found)
            ));
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return can_be_made(path, option);
        }
        Err(error) => return refuse(&error.to_string()),
    }
    match disk::list(path) {
        Ok(found)
            if found
                .iter()
                .all(|(name, _)| nothing(name.as_encoded_bytes())) =>
        {
            return Ok(());
        }
        Ok(_) => {}
        Err(error) => return refuse(&error.to_string()),
    }
    let hint = if path.join("run.json").exists() {
        "it holds a run already (`proctor status` shows it, `proctor resume` goes on with it)"
    } else {
        "it is not empty"
    };
    Err(Error::input(format!(
        "{option} {}: {hint}; name a directory that is empty or does not exist",
        path.display()
    )))
}

/// Tries to make a directory (of another name) where this one would be made, so that what is wrong with the place is
/// said before anything is read or run.
fn can_be_made(path: &Path, option: &str) -> Result<(), Error> {
    let mut folders = path.ancestors().skip(1);
    let there = folders.find(|folder| folder.exists());
    let there = there.unwrap_or(Path::new("."));
    let tried = tempfile::Builder::new()
        .prefix(".proctor-")
        .tempdir_in(there);
    tried.map(|_| ()).map_err(|error| {
        let name = brief(&path.display().to_string());
        // The kind alone: the whole error would name the directory of the trial.
        let cause = error.kind();
        let there = brief(&there.display().to_string());
        Error::input(format!(
            "{option} {name}: no directory can be made in {there}: {cause}"
        ))
    })
}

/// Bytes a labelled score row takes in a bundle, generously.
const SCORE_ROW_BYTES: u64 = 128;
/// Room for records, logs and pages.
const SPARE_BYTES: u64 = 64 << 20;

/// What parts take on the disk, generously.
pub(super) fn needed_bytes(protocol: &Protocol, parts: impl Iterator<Item = Part>) -> u64 {
    let items: u64 = parts
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

/// Refuses a run that cannot fit.
pub(super) fn check_space(path: &Path, needed: u64) -> Result<(), Error> {
    let there = path.ancestors().find(|folder| folder.exists());
    let free = durable::free_bytes(there.unwrap_or(Path::new("/")))?;
    if free >= needed {
        return Ok(());
    }
    Err(Error::input(format!(
        "{}: {} MiB are free where the run needs up to {} MiB; free some, or use another disk",
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
    let sha256 = regular::sha256(&path)
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
        assert!(empty_or_absent(&path.join("run.json/below"), "--output").is_err());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        let text = empty_or_absent(&link, "--output").unwrap_err().to_string();
        assert!(text.contains("symbolic link"), "{text}");
        empty_or_absent(&folder.path().join("a/b/c"), "--output").unwrap();
        // A run may use what somebody left who was killed before there was a plan.
        let begun = folder.path().join("begun");
        std::fs::create_dir(&begun).unwrap();
        std::fs::write(begun.join(".x1Y2.part"), "{").unwrap();
        never_started(&begun).unwrap();
        assert!(empty_or_absent(&begun, "--output").is_err());
        std::fs::write(begun.join("notes"), "").unwrap();
        assert!(never_started(&begun).is_err());
        assert!(!folder.path().join("a").exists());
    }

    #[test]
    fn a_place_where_no_directory_can_be_made_is_refused_with_the_cause() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = can_be_made(&file.join("a/b"), "--output").unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("not a directory") && !text.contains(".proctor-"),
            "{text}"
        );
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
