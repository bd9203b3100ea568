//! The state of a run, read from its files alone. There is no other memory: status, merge and every later start of
//! the supervisor read this and nothing else.

use super::RunDir;
use super::ancestry::Inherited;
use super::disk;
use super::fields::RecordError;
use super::record::count;
use super::record::{Answer, AttemptId, Checkpoint, Part, Started, Terminal};
use super::regular;
use proctor_protocol::canonical::{Value, read};
use proctor_protocol::object;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// What the files say of one attempt.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Its name.
    pub id: AttemptId,
    /// Its directory.
    pub dir: PathBuf,
    /// How it began; an attempt without it never started a worker.
    pub started: Option<Started>,
    /// Its durable checkpoints, in order.
    pub checkpoints: Vec<Checkpoint>,
    /// True when the log ended in something that is not a whole record.
    pub torn_tail: bool,
    /// How it ended; absent while it goes on, and for ever if the supervisor was lost.
    pub terminal: Option<Terminal>,
}

/// A durable answer, and whose it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found<'a> {
    /// The answer.
    pub checkpoint: &'a Checkpoint,
    /// The earlier attempt that gave it; `None` when it is this attempt's own.
    pub from: Option<&'a AttemptId>,
}

impl Attempt {
    /// What it has from earlier attempts.
    pub fn inherited(&self) -> &[Inherited] {
        let started = self.started.as_ref();
        started.map_or(&[], |started| &started.ancestry.inherited)
    }

    /// Seconds of the budget that earlier attempts used.
    pub fn earlier_seconds(&self) -> f64 {
        let started = self.started.as_ref();
        started.map_or(0.0, |started| started.ancestry.earlier_seconds)
    }

    /// Those of the method's `parts` that this attempt was asked for, in the order it was.
    pub fn asked<'a>(&'a self, parts: &'a [Part]) -> impl DoubleEndedIterator<Item = Part> + 'a {
        let inherited = |part: &Part| {
            self.inherited()
                .iter()
                .any(|one| one.checkpoint.part == *part)
        };
        parts.iter().copied().filter(move |part| !inherited(part))
    }

    /// The durable answer for one of the method's `parts`, if it counts. The last one asked for does only when the
    /// attempt has a terminal record and the method answers for how it ended (design section 6): otherwise nothing
    /// here proves that the worker came to a good end in time.
    pub fn answer(&self, parts: &[Part], part: Part) -> Option<Found<'_>> {
        let mut inherited = self.inherited().iter();
        if let Some(one) = inherited.find(|one| one.checkpoint.part == part) {
            return Some(Found {
                checkpoint: &one.checkpoint,
                from: Some(&one.from),
            });
        }
        let settled = |terminal: &Terminal| terminal.outcome.charged();
        let last = self.asked(parts).next_back();
        if last == Some(part) && !self.terminal.as_ref().is_some_and(settled) {
            return None;
        }
        let mut own = self.checkpoints.iter();
        let own = own.find(|checkpoint| checkpoint.part == part);
        own.map(|checkpoint| Found {
            checkpoint,
            from: None,
        })
    }

    /// Datasets of which everything asked for is scored. Validation data is part of its dataset.
    pub fn finished(&self, parts: &[Part]) -> usize {
        let scored = |part: &Part| {
            let answer = self.answer(parts, *part);
            answer.is_some_and(|found| matches!(found.checkpoint.answer, Answer::Scored { .. }))
        };
        let whole = parts.chunk_by(|one, other| one.dataset == other.dataset);
        whole.filter(|dataset| dataset.iter().all(scored)).count()
    }

    /// The file that holds the end of the method's stderr.
    pub fn stderr_log(&self) -> PathBuf {
        self.dir.join("stderr")
    }
}

/// The longest log of checkpoints that is read: a hundred thousand lines.
const LOG_BYTES: u64 = 64 << 20;

/// A file's bytes; `None` when there is no such file.
fn if_there(read: io::Result<Vec<u8>>, path: &Path) -> Result<Option<Vec<u8>>, RecordError> {
    match read {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RecordError::Unreadable {
            path: path.to_path_buf(),
            source,
        }),
    }
}

/// A record; a file that is no JSON (zeros after a power loss, a foreign writer's half) counts as absent.
fn record<T>(
    path: &Path,
    parse: impl FnOnce(&Value, &Path) -> Result<T, RecordError>,
) -> Result<Option<T>, RecordError> {
    let Some(bytes) = if_there(regular::read(path), path)? else {
        return Ok(None);
    };
    let Ok(value) = read(&bytes) else {
        return Ok(None);
    };
    parse(&value, path).map(Some)
}

/// The checkpoints of an attempt, and whether a torn tail was dropped behind them.
///
/// # Errors
/// The log cannot be read, or is damaged before its end.
pub fn read_log(dir: &Path) -> Result<(Vec<Checkpoint>, bool), RecordError> {
    let path = dir.join("checkpoints.log");
    let log = if_there(regular::read_at_most(&path, LOG_BYTES), &path)?.unwrap_or_default();
    Checkpoint::read_log(&log).map_err(|problem| RecordError::Damaged { path, problem })
}

/// Reads one attempt.
///
/// # Errors
/// A record is there but cannot be used.
pub fn read_attempt(id: AttemptId, dir: PathBuf) -> Result<Attempt, RecordError> {
    // The terminal record is looked for first: when it is there, everything it refers to is there too.
    let terminal = record(&dir.join("terminal.json"), Terminal::from_value)?;
    let started = record(&dir.join("started.json"), Started::from_value)?;
    let (checkpoints, torn_tail) = read_log(&dir)?;
    Ok(Attempt {
        id,
        dir,
        started,
        checkpoints,
        torn_tail,
        terminal,
    })
}

/// The attempts of a method, oldest first. A method that was never put forward has none.
///
/// # Errors
/// A record is there but cannot be used.
pub fn attempts(run: &RunDir, method_id: &str) -> Result<Vec<Attempt>, RecordError> {
    let folder = run.attempts_dir(method_id);
    let entries = disk::list_if_there(&folder).map_err(|source| RecordError::Unreadable {
        path: folder.clone(),
        source,
    })?;
    let attempt = |name: OsString| Some((AttemptId::parse(name.to_str()?)?, folder.join(name)));
    let mut found: Vec<_> = entries
        .into_iter()
        .filter_map(|(name, _)| attempt(name))
        .collect();
    found.sort();
    found
        .into_iter()
        .map(|(id, dir)| read_attempt(id, dir))
        .collect()
}

/// As [`attempts`], of the run with this nonce.
///
/// # Errors
/// As [`attempts`], or an attempt belongs to another run or method.
pub fn own_attempts(
    run: &RunDir,
    nonce: &str,
    method_id: &str,
) -> Result<Vec<Attempt>, RecordError> {
    let attempts = attempts(run, method_id)?;
    let foreign = |started: &Started| started.nonce != nonce || started.method_id != method_id;
    match attempts
        .iter()
        .find(|one| one.started.as_ref().is_some_and(foreign))
    {
        None => Ok(attempts),
        Some(attempt) => Err(RecordError::Damaged {
            path: attempt.dir.join("started.json"),
            problem: "the attempt belongs to another run or method; move its directory out of here"
                .into(),
        }),
    }
}

/// The attempt that counts: the newest that started. Never the best.
pub fn counting(attempts: &[Attempt]) -> Option<&Attempt> {
    attempts
        .iter()
        .rev()
        .find(|attempt| attempt.started.is_some())
}

/// What a running attempt last said of itself, for `status` alone. Not durable and never part of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Heartbeat {
    /// Seconds since the worker was started.
    pub elapsed_seconds: f64,
    /// Which part it works on, as position among the parts asked for.
    pub part: u64,
    /// Items of that part answered.
    pub items: u64,
    /// Items of that part asked for.
    pub total: u64,
}

impl Heartbeat {
    /// As written.
    pub fn to_value(&self) -> Value {
        object! {
            "elapsed_seconds" => self.elapsed_seconds,
            "part" => count(self.part),
            "items" => count(self.items),
            "total" => count(self.total),
        }
    }

    /// The heartbeat of an attempt, if it has a readable one.
    pub fn read(dir: &Path) -> Option<Self> {
        let value = read(&regular::read(&dir.join("heartbeat")).ok()?).ok()?;
        let count = |field: &str| u64::try_from(value.get(field)?.as_int()?).ok();
        Some(Self {
            elapsed_seconds: value.get("elapsed_seconds")?.as_number()?,
            part: count("part")?,
            items: count("items")?,
            total: count("total")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rundir::durable;
    use crate::rundir::{Ancestry, Supervisor};
    use proctor_protocol::canonical::pretty;
    use proctor_protocol::outcome::Outcome;

    fn started() -> Started {
        Started {
            run_id: "r".into(),
            nonce: "n".into(),
            method_id: "m".into(),
            started_utc: "2026-01-01T00:00:00Z".into(),
            host: "h".into(),
            boot_id: "b".into(),
            supervisor: Supervisor {
                namespace: 1,
                pid: 1,
                started: 1,
            },
            cores: vec![0],
            budget_seconds: 5.0,
            ancestry: Ancestry::default(),
        }
    }

    fn terminal(outcome: Outcome) -> Terminal {
        Terminal {
            outcome,
            facts: object! {},
            isolation: object! {},
            wall_seconds: 1.0,
            boottime_seconds: 1.0,
            measured: Value::Null,
            cpu_seconds: None,
            cpu_exact: false,
            peak_memory_bytes: Some(4096),
            ended_as: None,
            worker: "w".into(),
            ended_utc: "2026-01-01T00:00:01Z".into(),
        }
    }

    fn attempt(run: &RunDir, name: &str, begun: bool, end: Option<&[u8]>) {
        let dir = run.attempt_dir("m", &AttemptId::parse(name).unwrap());
        durable::create_dir_all(&dir).unwrap();
        if begun {
            let text = pretty(&started().to_value());
            durable::write_file(&dir.join("started.json"), text.as_bytes()).unwrap();
        }
        if let Some(bytes) = end {
            durable::write_file(&dir.join("terminal.json"), bytes).unwrap();
        }
    }

    #[test]
    fn the_newest_started_attempt_counts_and_never_the_best() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::new(folder.path());
        assert!(attempts(&run, "m").unwrap().is_empty());
        let good = pretty(&terminal(Outcome::Completed).to_value());
        let late = pretty(&terminal(Outcome::Timeout).to_value());
        attempt(&run, "0001.local.r0", true, Some(good.as_bytes()));
        attempt(&run, "0002.local.r0", true, Some(late.as_bytes()));
        attempt(&run, "0003.local.r0", false, None);
        let all = attempts(&run, "m").unwrap();
        assert_eq!(all.len(), 3);
        let newest = counting(&all).unwrap();
        assert_eq!(newest.id.to_string(), "0002.local.r0");
        assert_eq!(newest.terminal, Some(terminal(Outcome::Timeout)));
    }

    #[test]
    fn a_file_of_zeros_is_absent_and_a_foreign_record_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::new(folder.path());
        attempt(&run, "0001.local.r0", true, Some(&[0; 300]));
        assert_eq!(attempts(&run, "m").unwrap()[0].terminal, None);
        attempt(
            &run,
            "0001.local.r0",
            true,
            Some(b"{\"schema\":\"other/9\"}"),
        );
        assert!(matches!(
            attempts(&run, "m"),
            Err(RecordError::Field { .. })
        ));
    }

    #[test]
    fn nothing_is_built_on_an_attempt_of_another_run_or_method() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::new(folder.path());
        attempt(&run, "0001.local.r0", true, None);
        assert_eq!(own_attempts(&run, "n", "m").unwrap().len(), 1);
        let refused = own_attempts(&run, "other", "m").unwrap_err().to_string();
        assert!(refused.contains("another run"), "{refused}");
        std::fs::rename(run.root().join("methods/m"), run.root().join("methods/k")).unwrap();
        assert!(own_attempts(&run, "n", "k").is_err());
    }

    #[test]
    fn a_heartbeat_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let beat = Heartbeat {
            elapsed_seconds: 1.5,
            part: 1,
            items: 10,
            total: 20,
        };
        assert_eq!(Heartbeat::read(folder.path()), None);
        let text = pretty(&beat.to_value());
        durable::replace_quickly(&folder.path().join("heartbeat"), text.as_bytes()).unwrap();
        assert_eq!(Heartbeat::read(folder.path()), Some(beat));
    }
}
