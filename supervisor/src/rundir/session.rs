//! The records of sessions: who drove a run, when, and what it set out to do. Of those who want to drive a run at the
//! same time exactly one makes the next record.
//!
//! ```text
//! RUN_DIR/submissions/<NNNN>/request.json    made exclusively, before anything of the session starts
//! RUN_DIR/submissions/<NNNN>/heartbeat       for those who cannot see the process: rewritten while it goes on
//! RUN_DIR/submissions/<NNNN>/ended.json      when nothing of it runs any more
//! ```

use super::disk;
use super::durable::{self, DiskResult};
use super::fields::{Fields, RecordError};
use super::regular;
use super::supervisor::Supervisor;
use super::{RunDir, numbered};
use proctor_protocol::canonical::{Value, pretty, read};
use proctor_protocol::object;
use std::io;
use std::path::{Path, PathBuf};

const SCHEMA: &str = "proctor.session/1";
const ENDED: &str = "proctor.session-ended/1";

/// How a session treats methods that ended through no fault of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The first session of a run: there are none.
    Run,
    /// They go on from their durable checkpoints.
    Continue,
    /// They begin anew, with the whole budget.
    Restart,
}

impl Mode {
    /// The word in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Continue => "continue",
            Self::Restart => "restart",
        }
    }
}

/// `request.json`: what a session set out to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The run it belongs to.
    pub run_id: String,
    /// The run's nonce.
    pub nonce: String,
    /// Wall-clock time, for people.
    pub created_utc: String,
    /// Name of the machine.
    pub host: String,
    /// The kernel's id of this boot.
    pub boot_id: String,
    /// The process, meaningful with `boot_id`.
    pub supervisor: Supervisor,
    /// Version of this program.
    pub version: String,
    /// SHA-256 of this program's file.
    pub binary_sha256: String,
    /// How it treats methods that are run again.
    pub mode: Mode,
    /// Whether methods that failed by their own fault get one more attempt.
    pub retry_failed: bool,
    /// The disjoint core sets it runs methods on.
    pub core_sets: Vec<Vec<usize>>,
    /// Ids of the methods it makes an attempt of.
    pub methods: Vec<String>,
}

impl Request {
    /// As written.
    pub fn to_value(&self) -> Value {
        object! {
            "schema" => SCHEMA,
            "run_id" => self.run_id.as_str(),
            "nonce" => self.nonce.as_str(),
            "created_utc" => self.created_utc.as_str(),
            "host" => self.host.as_str(),
            "boot_id" => self.boot_id.as_str(),
            "supervisor" => self.supervisor.to_value(),
            "proctor" => object! {
                "version" => self.version.as_str(),
                "sha256" => self.binary_sha256.as_str(),
            },
            "mode" => self.mode.name(),
            "retry_failed" => self.retry_failed,
            "core_sets" => self.core_sets.clone(),
            "methods" => self.methods.clone(),
        }
    }
}

/// What a reader needs to know of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// Its number; its attempts have it too.
    pub number: u32,
    /// Name of the machine.
    pub host: String,
    /// The kernel's id of that boot.
    pub boot_id: String,
    /// The process.
    pub supervisor: Supervisor,
    /// Wall-clock time of its start, for people.
    pub created_utc: String,
    /// How it treats methods that are run again, in the word of the record.
    pub mode: String,
    /// Whether it ended in an orderly way.
    pub ended: bool,
    dir: PathBuf,
}

/// Whether a session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// It ended, or its process does not run any more.
    Over {
        /// False when it was cut off.
        orderly: bool,
    },
    /// Its process runs.
    Alive,
    /// Its process cannot be seen from here: another machine, or another pid namespace.
    Hidden,
}

impl Session {
    /// Whether it goes on, as seen from a machine of this name and boot.
    pub fn liveness(&self, host: &str, boot_id: &str) -> Liveness {
        if self.ended {
            Liveness::Over { orderly: true }
        } else if self.boot_id == boot_id && self.supervisor.is_visible() {
            if self.supervisor.is_gone() {
                Liveness::Over { orderly: false }
            } else {
                Liveness::Alive
            }
        } else if self.host == host && self.boot_id != boot_id {
            Liveness::Over { orderly: false }
        } else {
            Liveness::Hidden
        }
    }

    /// What its heartbeat says now; it changes while the session goes on.
    pub fn beat(&self) -> Option<Vec<u8>> {
        regular::read(&self.dir.join("heartbeat")).ok()
    }
}

/// The right to write results of a session. It is lost when a later session begins: somebody took this one for dead, on another
/// machine for one.
#[derive(Debug, Clone)]
pub struct Lease {
    next: PathBuf,
}

impl Lease {
    /// True when a later session began.
    pub fn is_lost(&self) -> bool {
        self.next.exists()
    }
}

impl RunDir {
    /// The lease of session `number`.
    pub fn lease(&self, number: u32) -> Lease {
        Lease {
            next: self
                .session_dir(number.saturating_add(1))
                .join("request.json"),
        }
    }

    /// Where the records of sessions lie.
    pub fn sessions_dir(&self) -> PathBuf {
        self.root().join("submissions")
    }

    fn session_dir(&self, number: u32) -> PathBuf {
        self.sessions_dir().join(format!("{number:04}"))
    }

    /// Makes the record of session `number`. Of several callers exactly one succeeds.
    ///
    /// # Errors
    /// Somebody else made it (kind `AlreadyExists`), or the system refused.
    pub fn claim_session(&self, number: u32, request: &Request) -> DiskResult<()> {
        let dir = self.session_dir(number);
        durable::create_dir_all(&dir)?;
        let text = pretty(&request.to_value());
        durable::claim_file(&dir.join("request.json"), text.as_bytes())
    }

    /// Says that session `number` goes on. Not durable: losing it loses nothing.
    ///
    /// # Errors
    /// The system refused.
    pub fn beat_session(&self, number: u32, count: u64) -> DiskResult<()> {
        let file = self.session_dir(number).join("heartbeat");
        durable::replace_quickly(&file, count.to_string().as_bytes())
    }

    /// Says durably that nothing of session `number` runs any more.
    ///
    /// # Errors
    /// The system refused.
    pub fn end_session(&self, number: u32, ended_utc: &str) -> DiskResult<()> {
        let text = pretty(&object! { "schema" => ENDED, "ended_utc" => ended_utc });
        let file = self.session_dir(number).join("ended.json");
        durable::write_file(&file, text.as_bytes())
    }

    /// The sessions of the run in order. A folder without a record is nobody's.
    ///
    /// # Errors
    /// A record is there but cannot be used.
    pub fn sessions(&self) -> Result<Vec<Session>, RecordError> {
        let folder = self.sessions_dir();
        let entries = disk::list_if_there(&folder).map_err(|source| RecordError::Unreadable {
            path: folder.clone(),
            source,
        })?;
        let mut sessions = Vec::new();
        for (name, _) in entries {
            let Some(number) = name.to_str().and_then(numbered) else {
                continue;
            };
            sessions.extend(read_session(number, folder.join(name))?);
        }
        sessions.sort_by_key(|session| session.number);
        Ok(sessions)
    }
}

fn read_session(number: u32, dir: PathBuf) -> Result<Option<Session>, RecordError> {
    let file = dir.join("request.json");
    let bytes = match regular::read(&file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(RecordError::Unreadable { path: file, source }),
    };
    // Zeros after a power loss: somebody took the number, and is gone with the power.
    let Ok(value) = read(&bytes) else {
        return Ok(Some(Session {
            number,
            host: String::new(),
            boot_id: String::new(),
            supervisor: Supervisor {
                namespace: 0,
                pid: 0,
                started: 0,
            },
            created_utc: String::new(),
            mode: String::new(),
            ended: true,
            dir,
        }));
    };
    let fields = Fields::new(&value, &file, SCHEMA)?;
    Ok(Some(Session {
        number,
        host: fields.text("host")?,
        boot_id: fields.text("boot_id")?,
        supervisor: Supervisor::from_value(fields.value("supervisor")?, &file)?,
        created_utc: fields.text("created_utc")?,
        mode: fields.text("mode")?,
        ended: has_ended(&dir),
        dir,
    }))
}

fn has_ended(dir: &Path) -> bool {
    let ended = regular::read(&dir.join("ended.json"));
    ended.is_ok_and(|bytes| read(&bytes).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(supervisor: Supervisor, boot_id: &str) -> Request {
        Request {
            run_id: "r".into(),
            nonce: "n".into(),
            created_utc: "2026-01-01T00:00:00Z".into(),
            host: "h".into(),
            boot_id: boot_id.into(),
            supervisor,
            version: "1".into(),
            binary_sha256: "b".into(),
            mode: Mode::Continue,
            retry_failed: true,
            core_sets: vec![vec![0], vec![1]],
            methods: vec!["m".into()],
        }
    }

    #[test]
    fn of_many_who_claim_a_session_one_wins_and_an_empty_folder_is_nobodys() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::new(folder.path());
        assert!(run.sessions().unwrap().is_empty());
        let wins: usize = std::thread::scope(|scope| {
            let claim = || {
                let claimed = run.claim_session(1, &request(Supervisor::this(), "b"));
                usize::from(claimed.is_ok())
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(claim)).collect();
            threads.into_iter().map(|one| one.join().unwrap()).sum()
        });
        assert_eq!(wins, 1);
        std::fs::create_dir(run.sessions_dir().join("0002")).unwrap();
        assert!(!run.lease(1).is_lost());
        let sessions = run.sessions().unwrap();
        assert_eq!(sessions.len(), 1);
        assert_eq!(sessions[0].mode, "continue");
        assert!(!sessions[0].ended);
        run.end_session(1, "2026-01-01T00:00:01Z").unwrap();
        assert!(run.sessions().unwrap()[0].ended);
        // A number that was taken when the power went stays taken.
        let file = run.sessions_dir().join("0002/request.json");
        std::fs::write(file, [0; 40]).unwrap();
        assert!(run.lease(1).is_lost() && !run.lease(2).is_lost());
        assert_eq!(run.sessions().unwrap()[1].number, 2);
    }

    #[test]
    fn folders_of_other_names_are_nobodys() {
        let names = ["0001", "9999", "10000", "4294967295"];
        let numbers = names.map(numbered);
        assert_eq!(
            numbers,
            [Some(1), Some(9999), Some(10_000), Some(4_294_967_295)]
        );
        for name in ["1", "+001", "00001", "0001.bak", "4294967296", ""] {
            assert_eq!(numbered(name), None, "{name}");
        }
    }

    #[test]
    fn whether_a_session_goes_on_is_seen_from_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::new(folder.path());
        let this = Supervisor::this();
        let gone = Supervisor {
            started: this.started - 1,
            ..this
        };
        let elsewhere = Supervisor {
            namespace: 1,
            ..this
        };
        run.claim_session(1, &request(this, "b")).unwrap();
        run.claim_session(2, &request(gone, "b")).unwrap();
        run.claim_session(3, &request(elsewhere, "b")).unwrap();
        let seen = |host: &str, boot: &str| -> Vec<Liveness> {
            let sessions = run.sessions().unwrap();
            let states = sessions.iter().map(|session| session.liveness(host, boot));
            states.collect()
        };
        let cut_off = Liveness::Over { orderly: false };
        assert_eq!(seen("h", "b"), [Liveness::Alive, cut_off, Liveness::Hidden]);
        // The machine was started again since, or this is another machine.
        assert_eq!(seen("h", "c"), [cut_off; 3]);
        assert_eq!(seen("g", "c"), [Liveness::Hidden; 3]);
        run.end_session(3, "2026-01-01T00:00:01Z").unwrap();
        assert_eq!(seen("g", "c")[2], Liveness::Over { orderly: true });
    }
}
