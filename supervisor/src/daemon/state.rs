//! The daemon's state directory: one small file for each run that is not over, one for each that is, and the run
//! directories. Readable by people, and all the memory there is.
//!
//! ```text
//! STATE/lock               held by the daemon that lives
//! STATE/queue/00000012.json   a run that waits or runs
//! STATE/ended/00000011.json   a run that is over; of a run in both places this is the true one
//! STATE/runs/00000012/        its run directory
//! ```

use super::view::Counts;
use crate::rundir::durable::{self, DiskError};
use crate::rundir::regular;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const SCHEMA: &str = "proctor.daemon-run/1";

/// The state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another daemon uses it.
    #[error(
        "--state {path}: another daemon uses this directory ({owner}); stop that one, or name another directory", path = path.display()
    )]
    InUse {
        /// The directory.
        path: PathBuf,
        /// What that daemon wrote about itself.
        owner: String,
    },
    /// Others could put runs into the queue.
    #[error("--state {path}: {problem}; whoever can write there can have this user run anything", path = path.display())]
    Unsafe {
        /// The directory.
        path: PathBuf,
        /// What is wrong and what to do.
        problem: String,
    },
    /// The system refused.
    #[error("could not {action} {path}: {source}", path = path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A durable write failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A file is not what it should be.
    #[error(
        "{path}: {problem}; the file was written by another version or changed by hand: mend it, or move it away", path = path.display()
    )]
    Record {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// What somebody asked to be cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancelled {
    /// The whole run.
    pub run: bool,
    /// These methods, by id.
    pub methods: Vec<String>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// When.
    pub utc: String,
    /// The exit code `proctor run` would have had.
    pub exit_code: u8,
    /// In one sentence.
    pub sentence: String,
    /// How its methods ended.
    pub methods: Counts,
}

/// All that is remembered of a run beside its run directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    schema: String,
    /// Its number.
    pub id: u64,
    /// Name of the benchmark.
    pub benchmark_id: String,
    /// The protocol.
    pub protocol_id: String,
    /// The files it was submitted with, for people.
    pub protocol_file: PathBuf,
    /// The methods file, for people.
    pub methods_file: PathBuf,
    /// How many methods it has.
    pub methods: u64,
    /// Higher goes first.
    pub priority: i32,
    /// True when nothing may run beside it.
    pub exclusive: bool,
    /// How many cores it is given.
    pub cores: usize,
    /// When it was submitted.
    pub submitted_utc: String,
    /// When it was first started.
    pub started_utc: Option<String>,
    /// What somebody asked to be cancelled.
    pub cancelled: Cancelled,
    /// How it ended.
    pub ended: Option<Ended>,
}

/// What a new [`Record`] is made of.
#[derive(Debug, Clone)]
pub struct Submitted {
    /// Name of the benchmark.
    pub benchmark_id: String,
    /// The protocol.
    pub protocol_id: String,
    /// The protocol file.
    pub protocol_file: PathBuf,
    /// The methods file.
    pub methods_file: PathBuf,
    /// How many methods it has.
    pub methods: u64,
    /// Higher goes first.
    pub priority: i32,
    /// True when nothing may run beside it.
    pub exclusive: bool,
    /// How many cores it is given.
    pub cores: usize,
    /// When it was submitted.
    pub submitted_utc: String,
}

impl Record {
    /// The record of a run that was submitted just now.
    pub fn new(id: u64, submitted: Submitted) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            id,
            benchmark_id: submitted.benchmark_id,
            protocol_id: submitted.protocol_id,
            protocol_file: submitted.protocol_file,
            methods_file: submitted.methods_file,
            methods: submitted.methods,
            priority: submitted.priority,
            exclusive: submitted.exclusive,
            cores: submitted.cores,
            submitted_utc: submitted.submitted_utc,
            started_utc: None,
            cancelled: Cancelled::default(),
            ended: None,
        }
    }

    fn read(path: &Path) -> Result<Self, StateError> {
        let bytes = regular::read(path).map_err(|source| StateError::Io {
            action: "read",
            path: path.to_path_buf(),
            source,
        })?;
        let wrong = |problem: String| StateError::Record {
            path: path.to_path_buf(),
            problem,
        };
        let record: Self =
            serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        if record.schema != SCHEMA {
            return Err(wrong(format!("field `schema` must be {SCHEMA}")));
        }
        if number_of(path) != Some(record.id) {
            return Err(wrong("field `id` must be the number in its name".into()));
        }
        Ok(record)
    }

    fn write(&self, path: &Path) -> Result<(), StateError> {
        let text = serde_json::to_vec_pretty(self).map_err(|error| StateError::Record {
            path: path.to_path_buf(),
            problem: error.to_string(),
        })?;
        Ok(durable::write_file(path, &text)?)
    }
}

/// The number in a name such as `00000012.json` or `00000012`.
fn number_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let digits = name.strip_suffix(".json").unwrap_or(name);
    let plain = digits.len() >= 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

/// An open state directory: no other daemon has it as long as this lives.
#[derive(Debug)]
pub struct StateDir {
    root: PathBuf,
    _lock: File,
}

/// What was found in a state directory.
#[derive(Debug, Default)]
pub struct Found {
    /// The runs that are not over, by number.
    pub queue: Vec<Record>,
    /// The numbers of those that are, ascending.
    pub ended: Vec<u64>,
    /// The first number that was never used.
    pub next_id: u64,
    /// Files that could not be read: their runs are left alone.
    pub problems: Vec<StateError>,
}

impl StateDir {
    /// Opens a state directory, and makes it where it is missing.
    ///
    /// # Errors
    /// Another daemon uses it, or the system refused.
    pub fn open(root: &Path) -> Result<Self, StateError> {
        let io = |action, path: &Path| {
            let path = path.to_path_buf();
            move |source| StateError::Io {
                action,
                path,
                source,
            }
        };
        let root = std::path::absolute(root).map_err(io("find", root))?;
        // Runs hold answers of methods and what they wrote: nobody else's business.
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&root)
            .map_err(io("create the directory", &root))?;
        check_owner(
            &root,
            &std::fs::metadata(&root).map_err(io("look at", &root))?,
        )?;
        let lock = lock(&root)?;
        for name in ["queue", "ended", "runs"] {
            durable::create_dir_all(&root.join(name))?;
        }
        durable::sync_dir(durable::parent(&root))?;
        Ok(Self { root, _lock: lock })
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The run directory of a run.
    pub fn run_dir(&self, id: u64) -> PathBuf {
        self.root.join("runs").join(format!("{id:08}"))
    }

    fn queue_file(&self, id: u64) -> PathBuf {
        self.root.join("queue").join(format!("{id:08}.json"))
    }

    fn ended_file(&self, id: u64) -> PathBuf {
        self.root.join("ended").join(format!("{id:08}.json"))
    }

    /// Reads what an earlier daemon left. A run that ended is in one place afterwards, and one that never was in the queue
    /// is gone.
    ///
    /// # Errors
    /// A folder cannot be read, or a leftover cannot be removed.
    pub fn find(&self) -> Result<Found, StateError> {
        // A daemon that was killed may not have got so far, and what is removed from the queue must be known here.
        durable::sync_dir(&self.root.join("ended"))?;
        let mut found = Found {
            ended: self.numbers("ended")?,
            ..Found::default()
        };
        let queued = self.numbers("queue")?;
        let runs = self.numbers("runs")?;
        let newest = [&found.ended, &queued, &runs]
            .into_iter()
            .filter_map(|numbers| numbers.last());
        found.next_id = newest.max().map_or(1, |newest| newest + 1);
        for id in &runs {
            let known = |numbers: &[u64]| numbers.binary_search(id).is_ok();
            let dir = self.run_dir(*id);
            // Nobody was told of it: the daemon was killed before it was in the queue.
            if !known(&queued) && !known(&found.ended) && !dir.join("methods").exists() {
                let _ = std::fs::remove_dir_all(dir);
            }
        }
        for id in queued {
            let path = self.queue_file(id);
            if found.ended.binary_search(&id).is_ok() {
                remove(&path)?;
                continue;
            }
            match Record::read(&path) {
                Ok(record) => found.queue.push(record),
                Err(problem) => found.problems.push(problem),
            }
        }
        Ok(found)
    }

    fn numbers(&self, folder: &str) -> Result<Vec<u64>, StateError> {
        let path = self.root.join(folder);
        let unreadable = |source| StateError::Io {
            action: "read the directory",
            path: path.clone(),
            source,
        };
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(&path).map_err(unreadable)? {
            numbers.extend(number_of(&entry.map_err(unreadable)?.path()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Writes the record of a run that waits or runs. Once this returns, a restart knows it.
    ///
    /// # Errors
    /// The system refused; what was known before is still there.
    pub fn keep(&self, record: &Record) -> Result<(), StateError> {
        record.write(&self.queue_file(record.id))
    }

    /// Writes the record of a run that is over.
    ///
    /// # Errors
    /// The system refused; the run is still known as one that is not over.
    pub fn end(&self, record: &Record) -> Result<(), StateError> {
        record.write(&self.ended_file(record.id))?;
        remove(&self.queue_file(record.id))
    }

    /// The record of a run that is over.
    ///
    /// # Errors
    /// There is none, or it cannot be used.
    pub fn ended(&self, id: u64) -> Result<Record, StateError> {
        Record::read(&self.ended_file(id))
    }
}

/// Refuses a directory that others can write to.
fn check_owner(root: &Path, found: &Metadata) -> Result<(), StateError> {
    let wrong = |problem: String| StateError::Unsafe {
        path: root.to_path_buf(),
        problem,
    };
    let uid = nix::unistd::geteuid().as_raw();
    if found.uid() != uid && found.uid() != 0 {
        return Err(wrong(format!(
            "belongs to user {}; name one of yours",
            found.uid()
        )));
    }
    if found.mode() & 0o022 != 0 {
        return Err(wrong(format!(
            "its mode is {:o}, so that others can write to it; chmod 700 it",
            found.mode() & 0o7777
        )));
    }
    Ok(())
}

/// Removes a file whose removal a restart would make up for, so that it need not be durable.
fn remove(path: &Path) -> Result<(), StateError> {
    std::fs::remove_file(path).map_err(|source| StateError::Io {
        action: "remove",
        path: path.to_path_buf(),
        source,
    })
}

/// Takes a lock file for as long as the file is open, and writes into it whose it is. The kernel gives it back however
/// this process ends.
fn lock(root: &Path) -> Result<File, StateError> {
    let path = root.join("lock");
    let failed = |action| {
        let path = path.clone();
        move |source| StateError::Io {
            action,
            path,
            source,
        }
    };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(failed("open"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut owner = String::new();
            let _ = file.take(200).read_to_string(&mut owner);
            return Err(StateError::InUse {
                path: root.to_path_buf(),
                owner: crate::render::brief(owner.trim()),
            });
        }
        Err(TryLockError::Error(source)) => return Err(failed("lock")(source)),
    }
    file.set_len(0).map_err(failed("write"))?;
    file.write_all(format!("process {}\n", std::process::id()).as_bytes())
        .map_err(failed("write"))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: u64) -> Record {
        Record::new(
            id,
            Submitted {
                benchmark_id: "b".into(),
                protocol_id: "p".into(),
                protocol_file: "/a/protocol.json".into(),
                methods_file: "/a/methods.json".into(),
                methods: 2,
                priority: -3,
                exclusive: true,
                cores: 2,
                submitted_utc: "2026-01-01T00:00:00Z".into(),
            },
        )
    }

    fn ended(id: u64) -> Record {
        Record {
            ended: Some(Ended {
                utc: "2026-01-01T00:00:09Z".into(),
                exit_code: 1,
                sentence: "1 of 2 methods failed".into(),
                methods: Counts {
                    total: 2,
                    running: 0,
                    ended: 2,
                    failed: 1,
                    without_result: 0,
                },
            }),
            ..record(id)
        }
    }

    #[test]
    fn a_second_daemon_is_refused_with_the_name_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let first = StateDir::open(folder.path()).unwrap();
        let text = StateDir::open(folder.path()).unwrap_err().to_string();
        let owner = format!("process {}", std::process::id());
        assert!(
            text.contains(&owner) && text.contains("another daemon"),
            "{text}"
        );
        drop(first);
        StateDir::open(folder.path()).unwrap();
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let with = |mode| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(folder.path(), mode).unwrap();
            StateDir::open(folder.path()).map_err(|error| error.to_string())
        };
        for mode in [0o777, 0o770, 0o1777] {
            let text = with(mode).unwrap_err();
            assert!(text.contains(&format!("mode is {mode:o}")), "{text}");
        }
        with(0o755).unwrap();
    }

    #[test]
    fn what_was_kept_is_found_and_numbers_are_not_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::open(folder.path()).unwrap();
        assert_eq!(state.find().unwrap().next_id, 1);
        let begun = Record {
            started_utc: Some("2026-01-01T00:00:05Z".into()),
            ..record(2)
        };
        state.keep(&record(1)).unwrap();
        state.keep(&begun).unwrap();
        state.keep(&record(3)).unwrap();
        state.end(&ended(3)).unwrap();
        for id in [3, 7, 8] {
            std::fs::create_dir(state.run_dir(id)).unwrap();
        }
        // Somebody's run is not ours to take away.
        std::fs::create_dir(state.run_dir(7).join("methods")).unwrap();
        let found = state.find().unwrap();
        let left = |id| state.run_dir(id).exists();
        assert!(left(3) && left(7) && !left(8));
        assert_eq!(found.queue, [record(1), begun]);
        assert_eq!((found.ended, found.next_id), (vec![3], 9));
        assert_eq!(state.ended(3).unwrap(), ended(3));
        assert!(state.ended(1).is_err());
    }

    #[test]
    fn a_run_that_ended_while_the_daemon_died_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::open(folder.path()).unwrap();
        state.end(&ended(1)).unwrap_err(); // There is no queue file to remove.
        state.keep(&record(1)).unwrap();
        let found = state.find().unwrap();
        assert!(found.queue.is_empty());
        assert_eq!(found.ended, [1]);
        assert!(!folder.path().join("queue/00000001.json").exists());
    }

    #[test]
    fn a_file_that_is_no_record_is_told_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::open(folder.path()).unwrap();
        for (id, bytes) in [(1, &[0; 40][..]), (2, b"{\"schema\": \"other\"}")] {
            std::fs::write(state.queue_file(id), bytes).unwrap();
        }
        state.keep(&record(3)).unwrap();
        std::fs::rename(state.queue_file(3), state.queue_file(4)).unwrap();
        std::fs::write(folder.path().join("queue/notes.json"), "").unwrap();
        let found = state.find().unwrap();
        assert_eq!((found.queue.len(), found.problems.len()), (0, 3));
        assert_eq!(found.next_id, 5);
        assert!(found.problems[2].to_string().contains("number in its name"));
        assert!(state.queue_file(1).exists());
    }
}
