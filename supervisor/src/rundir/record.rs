//! The records of an attempt: their names, their fields, and the seal that tells a whole record from a torn one.

use super::ancestry::Ancestry;
use super::fields::{Fields, RecordError};
use crate::rundir::Supervisor;
use proctor_protocol::canonical::{Value, canonical, read, sha256_hex};
use proctor_protocol::object;
use proctor_protocol::outcome::Outcome;
use std::fmt;
use std::path::Path;

/// The name of an attempt's directory: submission number, task, restart count. Later attempts compare greater.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AttemptId {
    /// Counts the times the method was put forward, from 1.
    pub submission: u32,
    /// How often an engine started this task again by itself; always 0 for a local run.
    pub restart: u32,
    /// The engine's word for the task; `local` for a run on this machine.
    pub task: String,
}

impl AttemptId {
    /// The local attempt number `submission`.
    pub fn local(submission: u32) -> Self {
        Self {
            submission,
            restart: 0,
            task: "local".into(),
        }
    }

    /// Reads a directory name; `None` when it is none of ours.
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('.');
        let (number, task, restart) = (parts.next()?, parts.next()?, parts.next()?);
        let plain =
            |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric());
        if parts.next().is_some() || number.len() < 4 || !plain(number) || !plain(task) {
            return None;
        }
        let id = Self {
            submission: number.parse().ok()?,
            restart: restart.strip_prefix('r')?.parse().ok()?,
            task: task.to_owned(),
        };
        // Another spelling would be the same attempt a second time.
        (id.to_string() == name).then_some(id)
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}.{}.r{}", self.submission, self.task, self.restart)
    }
}

/// A count as JSON; counts stay far below 2^63.
pub fn count(value: u64) -> Value {
    Value::Int(i64::try_from(value).unwrap_or(i64::MAX))
}

/// Which data of a dataset a worker was asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The data a threshold is chosen on.
    Validation,
    /// The data that is reported.
    Test,
}

impl Role {
    /// The word in records and file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }
}

/// One thing a worker is asked to score: the test or the validation data of a dataset of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// Position of the dataset in the protocol, from 0.
    pub dataset: usize,
    /// Which of its data.
    pub role: Role,
}

impl Part {
    /// The name in the order of items and in messages: `0/test`.
    pub fn label(self) -> String {
        format!("{}/{}", self.dataset, self.role.name())
    }

    /// The score file below the attempt's directory.
    pub fn score_file(self) -> String {
        format!("scores/{}-{}.f64", self.dataset, self.role.name())
    }
}

/// `started.json`: written before the worker starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Started {
    /// The run it belongs to.
    pub run_id: String,
    /// The run's nonce, so that a record of another run with the same paths is not taken for ours.
    pub nonce: String,
    /// The method.
    pub method_id: String,
    /// Wall-clock time, for people; durations never come from it.
    pub started_utc: String,
    /// Name of the machine.
    pub host: String,
    /// The kernel's id of this boot.
    pub boot_id: String,
    /// The supervisor, meaningful with `boot_id`.
    pub supervisor: Supervisor,
    /// Cores given to the room.
    pub cores: Vec<usize>,
    /// The budget, in seconds.
    pub budget_seconds: f64,
    /// What it has from the attempts before it.
    pub ancestry: Ancestry,
}

impl Started {
    /// As written.
    pub fn to_value(&self) -> Value {
        object! {
            "schema" => "proctor.attempt-started/1",
            "run_id" => self.run_id.as_str(),
            "nonce" => self.nonce.as_str(),
            "method_id" => self.method_id.as_str(),
            "started_utc" => self.started_utc.as_str(),
            "host" => self.host.as_str(),
            "boot_id" => self.boot_id.as_str(),
            "supervisor" => self.supervisor.to_value(),
            "cores" => self.cores.clone(),
            "budget_seconds" => self.budget_seconds,
            "ancestry" => self.ancestry.to_value(),
        }
    }

    /// Reads the file's value.
    ///
    /// # Errors
    /// A field is absent or of another type.
    pub fn from_value(value: &Value, file: &Path) -> Result<Self, RecordError> {
        let fields = Fields::new(value, file, "proctor.attempt-started/1")?;
        Ok(Self {
            run_id: fields.text("run_id")?,
            nonce: fields.text("nonce")?,
            method_id: fields.text("method_id")?,
            started_utc: fields.text("started_utc")?,
            host: fields.text("host")?,
            boot_id: fields.text("boot_id")?,
            supervisor: Supervisor::from_value(fields.value("supervisor")?, file)?,
            cores: fields.indexes("cores")?,
            budget_seconds: fields.number("budget_seconds")?,
            // Records of earlier versions have none: they were all first attempts.
            ancestry: match value.get("ancestry") {
                Some(ancestry) => Ancestry::from_value(ancestry, file)?,
                None => Ancestry::default(),
            },
        })
    }
}

/// One record of `checkpoints.log`.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// What was asked.
    pub part: Part,
    /// Seconds from the first byte of the data sent to the last accepted score.
    pub elapsed_seconds: f64,
    /// Seconds from the start of the worker until this was to be written: what an attempt that goes on from here is
    /// charged for.
    pub at_seconds: f64,
    /// What came of it.
    pub answer: Answer,
}

/// What a worker made of one part.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Every item has its score, in the file named by [`Part::score_file`].
    Scored {
        /// How many.
        items: u64,
        /// SHA-256 of the file.
        sha256: String,
    },
    /// The worker could not score it.
    Failed {
        /// Its own words.
        error: String,
    },
}

impl Checkpoint {
    /// The line, sealed with the digest of its own content.
    pub fn to_line(&self) -> String {
        let record = self.to_value();
        let sha256 = sha256_hex(canonical(&record).as_bytes());
        canonical(&object! { "record" => record, "sha256" => sha256 })
    }

    /// The record in a line.
    pub fn to_value(&self) -> Value {
        let mut record = object! {
            "dataset" => self.part.dataset,
            "role" => self.part.role.name(),
            "elapsed_seconds" => self.elapsed_seconds,
            "at_seconds" => self.at_seconds,
        };
        if let Some(object) = record.as_object_mut() {
            match &self.answer {
                Answer::Scored { items, sha256 } => {
                    object.insert("items", count(*items));
                    object.insert("scores_sha256", sha256.as_str());
                }
                Answer::Failed { error } => {
                    object.insert("error", error.as_str());
                }
            }
        }
        record
    }

    /// Reads one line; `None` when it is torn or is not what it claims to be.
    pub fn from_line(line: &[u8]) -> Option<Self> {
        let value = read(line).ok()?;
        let record = value.get("record")?;
        if value.get("sha256")?.as_str()? != sha256_hex(canonical(record).as_bytes()) {
            return None;
        }
        Self::from_value(record)
    }

    /// Reads the record in a line; `None` when it is none.
    pub fn from_value(record: &Value) -> Option<Self> {
        let role = match record.get("role")?.as_str()? {
            "test" => Role::Test,
            "validation" => Role::Validation,
            _ => return None,
        };
        let answer = if let Some(error) = record.get("error") {
            Answer::Failed {
                error: error.as_str()?.to_owned(),
            }
        } else {
            Answer::Scored {
                items: u64::try_from(record.get("items")?.as_int()?).ok()?,
                sha256: record.get("scores_sha256")?.as_str()?.to_owned(),
            }
        };
        Some(Self {
            part: Part {
                dataset: usize::try_from(record.get("dataset")?.as_int()?).ok()?,
                role,
            },
            elapsed_seconds: record.get("elapsed_seconds")?.as_number()?,
            // Records of earlier versions do not say it. Nothing of theirs can be gone on from.
            at_seconds: match record.get("at_seconds") {
                Some(at) => at.as_number()?,
                None => 0.0,
            },
            answer,
        })
    }

    /// The whole records of a log, and whether a torn tail was dropped behind them. A record that is there twice, the
    /// same, counts once.
    ///
    /// # Errors
    /// What is wrong before the end, where no crash can have torn it: a bad line with a whole record behind it, or two
    /// records that contradict each other.
    pub fn read_log(bytes: &[u8]) -> Result<(Vec<Self>, bool), String> {
        let mut checkpoints: Vec<Self> = Vec::new();
        let mut bad: Option<String> = None;
        let mut offset = 0;
        for (at, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
            let place = format!("line {} (byte {offset})", at + 1);
            offset += line.len();
            let whole = line.strip_suffix(b"\n").and_then(Self::from_line);
            match (whole, &bad) {
                (Some(_), Some(bad)) => {
                    return Err(format!(
                        "{bad} is damaged though a whole record follows at {place}; restore the file, or remove the attempt to have it run again"
                    ));
                }
                (None, _) => {
                    bad.get_or_insert(place);
                }
                (Some(found), None) => {
                    match checkpoints.iter().find(|known| known.part == found.part) {
                        None => checkpoints.push(found),
                        Some(known) if *known == found => {}
                        Some(_) => {
                            return Err(format!(
                                "{place} contradicts an earlier record of the same data; remove the attempt to have it run again"
                            ));
                        }
                    }
                }
            }
        }
        Ok((checkpoints, bad.is_some()))
    }
}

/// `terminal.json`: its presence ends the attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Terminal {
    /// How it ended.
    pub outcome: Outcome,
    /// Facts beside the outcome: leaked processes, leaked pipe, suspended seconds, late rows, cut output.
    pub facts: Value,
    /// What the room really was.
    pub isolation: Value,
    /// Seconds from spawn to verdict on the monotonic clock.
    pub wall_seconds: f64,
    /// The same on the clock that also counts while the machine is suspended.
    pub boottime_seconds: f64,
    /// Processor seconds of the whole room, where the machine can tell.
    pub cpu_seconds: Option<f64>,
    /// True when `cpu_seconds` counts every process of the room; false when it is a lower bound.
    pub cpu_exact: bool,
    /// The most memory the whole room used at the same time, in bytes, where the kernel counts that.
    pub peak_memory_bytes: Option<i64>,
    /// What was measured of the attempt and of the machine around it (docs/measurements.md); null in records of earlier
    /// versions.
    pub measured: Value,
    /// How the leader ended, as the kernel said: an exit code or a signal. `None` when the room was killed over it.
    pub ended_as: Option<Value>,
    /// What the worker called itself.
    pub worker: String,
    /// Wall-clock time, for people.
    pub ended_utc: String,
}

impl Terminal {
    /// As written.
    pub fn to_value(&self) -> Value {
        object! {
            "schema" => "proctor.attempt-terminal/1",
            "outcome" => self.outcome.to_value(),
            "facts" => self.facts.clone(),
            "isolation" => self.isolation.clone(),
            "wall_seconds" => self.wall_seconds,
            "boottime_seconds" => self.boottime_seconds,
            "cpu_seconds" => self.cpu_seconds,
            "cpu_exact" => self.cpu_exact,
            "peak_memory_bytes" => self.peak_memory_bytes,
            "measured" => self.measured.clone(),
            "ended_as" => self.ended_as.clone(),
            "worker" => self.worker.as_str(),
            "ended_utc" => self.ended_utc.as_str(),
        }
    }

    /// Reads the file's value.
    ///
    /// # Errors
    /// A field is absent or of another type.
    pub fn from_value(value: &Value, file: &Path) -> Result<Self, RecordError> {
        let fields = Fields::new(value, file, "proctor.attempt-terminal/1")?;
        Ok(Self {
            outcome: Outcome::from_value(fields.value("outcome")?)
                .ok_or_else(|| fields.wrong("outcome", "a known outcome"))?,
            facts: fields.value("facts")?.clone(),
            isolation: fields.value("isolation")?.clone(),
            wall_seconds: fields.number("wall_seconds")?,
            boottime_seconds: fields.number("boottime_seconds")?,
            cpu_seconds: fields.value("cpu_seconds")?.as_number(),
            cpu_exact: fields.value("cpu_exact")?.as_bool().unwrap_or(false),
            // Records of earlier versions do not have it, and nobody knows then.
            peak_memory_bytes: value.get("peak_memory_bytes").and_then(Value::as_int),
            measured: value.get("measured").cloned().unwrap_or(Value::Null),
            ended_as: Some(fields.value("ended_as")?.clone()).filter(|value| !value.is_null()),
            worker: fields.text("worker")?,
            ended_utc: fields.text("ended_utc")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(dataset: usize) -> Checkpoint {
        Checkpoint {
            part: Part {
                dataset,
                role: Role::Test,
            },
            elapsed_seconds: 0.25,
            at_seconds: 0.5,
            answer: Answer::Scored {
                items: 3,
                sha256: "ab".repeat(32),
            },
        }
    }

    #[test]
    fn attempt_names_read_back_and_sort_by_number_then_restart() {
        for name in ["0001.local.r0", "0012.7.r3", "12345.a.r1"] {
            assert_eq!(AttemptId::parse(name).unwrap().to_string(), name);
        }
        for bad in [
            ".0001.local.r0",
            "1.local.r0",
            "0001.local",
            "0001..r0",
            "0001.a.b.r0",
            "x001.a.r0",
            "0001.a.0",
            "00001.a.r0",
            "0001.a.r00",
            "0001.a.r+1",
        ] {
            assert_eq!(AttemptId::parse(bad), None, "{bad}");
        }
        let id = |name| AttemptId::parse(name).unwrap();
        assert!(id("0002.a.r0") > id("0001.z.r9"));
        assert!(id("0001.a.r2") > id("0001.z.r1"));
    }

    #[test]
    fn a_torn_tail_is_dropped_wherever_it_tears() {
        let whole = format!("{}\n{}\n", checkpoint(0).to_line(), checkpoint(1).to_line());
        let first = checkpoint(0).to_line().len() + 1;
        for cut in 0..whole.len() {
            let (kept, torn) = Checkpoint::read_log(&whole.as_bytes()[..cut]).unwrap();
            assert_eq!(kept.len(), usize::from(cut >= first));
            assert_eq!(torn, cut != 0 && cut != first, "cut at {cut}");
        }
        let (kept, torn) = Checkpoint::read_log(whole.as_bytes()).unwrap();
        assert_eq!(
            (kept.as_slice(), torn),
            ([checkpoint(0), checkpoint(1)].as_slice(), false)
        );
    }

    #[test]
    fn zeros_and_edits_are_not_records() {
        let line = checkpoint(0).to_line();
        let edited = line.replace("\"items\":3", "\"items\":4");
        assert_ne!(line, edited);
        assert_eq!(Checkpoint::from_line(edited.as_bytes()), None);
        assert_eq!(Checkpoint::read_log(&[0; 64]), Ok((vec![], true)));
    }

    #[test]
    fn damage_before_the_end_is_no_torn_tail() {
        let (one, two) = (checkpoint(0).to_line(), checkpoint(1).to_line());
        let damaged = one.replace("0.25", "0.35");
        let error = Checkpoint::read_log(format!("{damaged}\n{two}\n").as_bytes()).unwrap_err();
        assert!(error.starts_with("line 1 (byte 0) is damaged"), "{error}");
        // Torn behind a record, and then written on: what no writer of ours does.
        let half = &two[..20];
        let log = format!("{one}\n{half}{two}\n{two}\n");
        let error = Checkpoint::read_log(log.as_bytes()).unwrap_err();
        assert!(error.starts_with("line 2 (byte "), "{error}");
        // Several bad lines at the end are one torn tail.
        let log = format!("{one}\n{half}\n\0\0\n{half}");
        let read = Checkpoint::read_log(log.as_bytes());
        assert_eq!(read, Ok((vec![checkpoint(0)], true)));
    }

    #[test]
    fn a_record_that_is_there_twice_counts_once_and_never_as_two_answers() {
        let line = checkpoint(0).to_line();
        let read = Checkpoint::read_log(format!("{line}\n{line}\n").as_bytes());
        assert_eq!(read, Ok((vec![checkpoint(0)], false)));
        let other = Checkpoint {
            elapsed_seconds: 9.0,
            ..checkpoint(0)
        };
        let log = format!("{line}\n{}\n", other.to_line());
        let error = Checkpoint::read_log(log.as_bytes()).unwrap_err();
        assert!(
            error.contains("line 2 (byte ") && error.contains("contradicts"),
            "{error}"
        );
    }

    #[test]
    fn a_failed_part_keeps_the_workers_words() {
        let failed = Checkpoint {
            answer: Answer::Failed {
                error: "no \"parser\"\n".into(),
            },
            ..checkpoint(2)
        };
        assert_eq!(
            Checkpoint::from_line(failed.to_line().as_bytes()),
            Some(failed)
        );
    }
}
