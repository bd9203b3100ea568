//! One attempt of one method, from its directory to its terminal record.

use super::exam::MethodExam;
use super::live::Live;
use super::session::Session;
use super::{host, limits, scratch, taint, unchanged, worker};
use crate::attempt::{self, Control, Ending, WaitStatus};
use crate::measure::{Files, Watch};
use crate::room::{self, Isolation, RoomSpec};
use crate::rundir::durable::{self, DiskError};
use crate::rundir::fields::RecordError;
use crate::rundir::plan::{Plan, WorkerBinary, datasets, parts};
use crate::rundir::record::{Answer, AttemptId, Checkpoint, Part, Role, Started, Terminal};
use crate::rundir::reserve::Reserve;
use crate::rundir::session::Lease;
use crate::rundir::{Ancestry, Supervisor, state};
use proctor_protocol::canonical::{Value, digest, pretty};
use proctor_protocol::method::{FileHashes, Method, MethodKind};
use proctor_protocol::object;
use proctor_protocol::outcome::Outcome;
use std::path::PathBuf;
use std::time::Duration;

/// Our side could not keep its records.
#[derive(Debug, thiserror::Error)]
pub enum AttemptError {
    /// A durable write failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Earlier records cannot be used.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Somebody took this session for dead and began the next one.
    #[error(
        "a later session took the run over; what {method} did in this one is kept and does not count"
    )]
    Superseded {
        /// The method.
        method: String,
    },
    /// The thread that ran the attempt panicked.
    #[error("the supervision of {method} broke down; this is a bug in proctor, please report it")]
    Bug {
        /// The method.
        method: String,
    },
}

/// The directory of a new attempt, made and owned by this process.
#[derive(Debug)]
pub struct Desk {
    /// The directory.
    pub dir: PathBuf,
    /// Which attempt it is.
    pub id: AttemptId,
    /// How it came through the load gate; null without one.
    pub admission: Value,
    ancestry: Ancestry,
    method: String,
    lease: Lease,
    reserve: Reserve,
}

impl Desk {
    /// Makes the directory of an attempt of a method, and says durably that it starts.
    ///
    /// # Errors
    /// The system refused, or another process makes the same attempt.
    pub fn open(
        session: &Session,
        method: &Method,
        ancestry: Ancestry,
        cores: &[usize],
    ) -> Result<Self, AttemptError> {
        let (run, plan) = (&session.run, &session.plan);
        let id = AttemptId::local(session.number);
        let reserve = Reserve::of(run.root());
        reserve.take();
        reserve.with(|| durable::create_dir_all(&run.attempts_dir(&method.id)))?;
        let dir = run.attempt_dir(&method.id, &id);
        reserve.with(|| durable::create_dir(&dir))?;
        reserve.with(|| durable::create_dir(&dir.join("scores")))?;
        let started = Started {
            run_id: plan.run_id.clone(),
            nonce: plan.nonce.clone(),
            method_id: method.id.clone(),
            started_utc: host::now_utc(),
            host: host::machine().host,
            boot_id: host::boot_id(),
            supervisor: Supervisor::this(),
            cores: cores.to_vec(),
            budget_seconds: plan.policy.budget_seconds,
            ancestry,
        };
        let text = pretty(&started.to_value());
        reserve.with(|| durable::write_file(&dir.join("started.json"), text.as_bytes()))?;
        Ok(Self {
            dir,
            id,
            admission: Value::Null,
            ancestry: started.ancestry,
            method: method.name.clone(),
            lease: run.lease(session.number),
            reserve,
        })
    }

    /// Runs the attempt to its end and writes its terminal record. The worker is asked for `asked`.
    ///
    /// # Errors
    /// A record cannot be written; the attempt then has no result.
    pub fn run(
        &self,
        session: &Session,
        method: &Method,
        asked: &[Part],
        cores: &[usize],
        live: &Live,
        control: &Control,
    ) -> Result<Terminal, AttemptError> {
        let plan = &session.plan;
        let mut exam = self.exam(session, method, asked, cores.len() as u32, live)?;
        let room = RoomSpec {
            containment: Some(session.rung),
            hidden: answers(session),
            ..self.room(plan, method, cores)
        };
        let left = plan.policy.budget_seconds - self.ancestry.earlier_seconds;
        let budget = Duration::try_from_secs_f64(left.max(0.0)).unwrap_or(Duration::MAX);
        let changed = changed(method, &plan.policy.worker);
        // After the files were hashed once more, so that the page cache is as the worker finds it.
        let watch = Watch::begin(cores, &files(plan, method, asked));
        let ending = match changed {
            None => attempt::run(&room, budget, &mut exam, control),
            Some(reason) => Ending::not_started(Outcome::Infrastructure(reason), Isolation::none()),
        };
        let measured = watch.end(&ending, self.admission.clone());
        self.close(session, method, &ending, measured)
    }

    /// The questions of this attempt, and where its answers go.
    pub(crate) fn exam<'a>(
        &self,
        session: &'a Session,
        method: &'a Method,
        asked: &'a [Part],
        cores: u32,
        live: &'a Live,
    ) -> Result<MethodExam<'a>, DiskError> {
        let lease = self.lease.clone();
        MethodExam::new(session, method, asked, cores, live, &self.dir, lease)
    }

    /// Ends the attempt as its worker did.
    pub(crate) fn close(
        &self,
        session: &Session,
        method: &Method,
        ending: &Ending,
        measured: Value,
    ) -> Result<Terminal, AttemptError> {
        let plan = &session.plan;
        let mut terminal = terminal(ending, measured);
        taint::note(
            &scratch::root(),
            &plan.run_id,
            ending,
            &mut terminal.outcome,
        );
        terminal.outcome = match state::read_log(&self.dir) {
            Ok((mut log, _)) => {
                let inherited = self.ancestry.inherited.iter();
                log.extend(inherited.map(|one| one.checkpoint.clone()));
                in_datasets(terminal.outcome, &parts(&plan.protocol, method), &log)
            }
            Err(error) => Outcome::Infrastructure(error.to_string()),
        };
        self.end(&terminal)?;
        Ok(terminal)
    }

    /// Ends the attempt with an outcome that is known without a worker.
    ///
    /// # Errors
    /// The record cannot be written; the attempt then has no result.
    pub fn settle(&self, outcome: Outcome, measured: Value) -> Result<Terminal, AttemptError> {
        let ending = Ending::not_started(outcome, Isolation::none());
        let terminal = terminal(&ending, measured);
        self.end(&terminal)?;
        Ok(terminal)
    }

    fn end(&self, terminal: &Terminal) -> Result<(), AttemptError> {
        let text = pretty(&terminal.to_value());
        let superseded = self.lease.is_lost();
        let name = if superseded {
            "superseded.json"
        } else {
            "terminal.json"
        };
        let file = self.dir.join(name);
        self.reserve
            .with(|| durable::write_file(&file, text.as_bytes()))?;
        if superseded {
            return Err(AttemptError::Superseded {
                method: self.method.clone(),
            });
        }
        Ok(())
    }

    fn room(&self, plan: &Plan, method: &Method, cores: &[usize]) -> RoomSpec {
        // Outside the run directory, and under a name that says nothing: from where it sits a worker must not find the
        // files of other methods, nor learn who it is or whether it was tried before.
        let name = digest(&object! {
            "nonce" => plan.nonce.as_str(),
            "method" => method.id.as_str(),
            "attempt" => self.id.to_string(),
        });
        let scratch = scratch::root().join(format!("{}{}", scratch::prefix(), &name[..16]));
        RoomSpec {
            env: room::environment(&scratch, worker::passed_on(method)),
            cores: cores.to_vec(),
            visible: worker::shown(method),
            limits: limits::of_room(&plan.policy.limits),
            grace: limits::grace(&plan.policy.limits),
            ..RoomSpec::new(
                worker::command(method, plan.policy.worker.path.as_deref()),
                scratch,
                self.dir.join("stderr"),
                plan.run_id.clone(),
            )
        }
    }
}

/// The outcome with its numbers in datasets. On the wire validation data is a dataset of its own, which nobody but the
/// worker counts so.
fn in_datasets(outcome: Outcome, parts: &[Part], log: &[Checkpoint]) -> Outcome {
    let answer = |part: &Part| log.iter().find(|found| found.part == *part);
    let count = |holds: &dyn Fn(&[Part]) -> bool| {
        let whole = parts.chunk_by(|one, other| one.dataset == other.dataset);
        whole.filter(|dataset| holds(dataset)).count() as u32
    };
    let total = datasets(parts) as u32;
    let failed = count(&|dataset| {
        let failed = |found: &Checkpoint| matches!(found.answer, Answer::Failed { .. });
        dataset.iter().filter_map(answer).any(failed)
    });
    match outcome {
        Outcome::Incomplete { .. } => Outcome::Incomplete {
            done: count(&|dataset| dataset.iter().all(|part| answer(part).is_some())),
            total,
        },
        Outcome::DatasetErrors { .. } => Outcome::DatasetErrors { failed, total },
        // What an earlier attempt said of the rest still holds.
        Outcome::Completed if failed > 0 => Outcome::DatasetErrors { failed, total },
        other => other,
    }
}

/// What no worker may see: the datasets with their gold, and the run directory with what other methods answered.
fn answers(session: &Session) -> Vec<PathBuf> {
    let mut hidden = vec![session.run.root().to_owned()];
    for entry in session.plan.protocol.datasets() {
        hidden.extend(entry.path.clone());
        hidden.extend(entry.validation_path.clone());
        hidden.extend(entry.answer_files());
    }
    hidden
}

/// Why a method cannot be started any more as the plan has it. Its files are read again right before they are used.
fn changed(method: &Method, worker: &WorkerBinary) -> Option<String> {
    let difference = unchanged::of_method(method, worker, &mut FileHashes::default())?;
    let name = difference.path.file_name().unwrap_or_default().display();
    Some(match &difference.found {
        Ok(_) => format!("{name} was changed after the run was planned"),
        Err(error) => format!("{name} cannot be read any more: {error}"),
    })
}

/// The files an attempt has to do with, for the record of what of them was in memory.
fn files(plan: &Plan, method: &Method, asked: &[Part]) -> Files {
    let (method, worker) = match &method.kind {
        MethodKind::Program(program) => (program.files.clone(), Some(&program.executable)),
        MethodKind::Builtin | MethodKind::Unsupported(_) => {
            (Vec::new(), plan.policy.worker.path.as_ref())
        }
    };
    let datasets = asked.iter().filter_map(|part| {
        let entry = &plan.protocol.datasets()[part.dataset];
        match part.role {
            Role::Test => entry.path.clone(),
            Role::Validation => entry.validation_path.clone(),
        }
    });
    Files {
        method,
        worker: worker.into_iter().cloned().collect(),
        datasets: datasets.collect(),
    }
}

fn terminal(ending: &Ending, measured: Value) -> Terminal {
    Terminal {
        outcome: ending.outcome.clone(),
        facts: ending.facts.to_value(),
        isolation: ending.isolation.to_value(),
        wall_seconds: ending.wall_seconds,
        boottime_seconds: ending.boottime_seconds,
        cpu_seconds: ending.cpu_seconds,
        cpu_exact: ending.cpu_exact,
        peak_memory_bytes: ending
            .peak_memory_bytes
            .and_then(|bytes| i64::try_from(bytes).ok()),
        measured,
        ended_as: ending.wait_status.map(WaitStatus::to_value),
        worker: ending.worker.clone(),
        ended_utc: host::now_utc(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctor_protocol::method::load_methods;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn validation_data_is_counted_with_its_dataset() {
        use crate::rundir::Role::{Test, Validation};
        let part = |dataset, role| Part { dataset, role };
        let parts = [
            part(0, Validation),
            part(0, Test),
            part(2, Validation),
            part(2, Test),
        ];
        let checkpoint = |at: usize, failed: bool| Checkpoint {
            part: parts[at],
            elapsed_seconds: 0.1,
            at_seconds: 0.2,
            answer: if failed {
                Answer::Failed { error: "x".into() }
            } else {
                Answer::Scored {
                    items: 1,
                    sha256: String::new(),
                }
            },
        };
        let log = [
            checkpoint(0, false),
            checkpoint(1, true),
            checkpoint(2, true),
        ];
        let wire = Outcome::Incomplete { done: 3, total: 4 };
        assert_eq!(
            in_datasets(wire, &parts, &log),
            Outcome::Incomplete { done: 1, total: 2 }
        );
        let wire = Outcome::DatasetErrors {
            failed: 2,
            total: 4,
        };
        assert_eq!(
            in_datasets(wire, &parts, &log),
            Outcome::DatasetErrors {
                failed: 2,
                total: 2
            }
        );
        assert_eq!(
            in_datasets(Outcome::Completed, &parts, &log),
            Outcome::DatasetErrors {
                failed: 2,
                total: 2
            }
        );
        assert_eq!(
            in_datasets(Outcome::Timeout, &parts, &log),
            Outcome::Timeout
        );
    }

    #[test]
    fn a_file_that_was_changed_since_the_plan_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["program", "model"] {
            std::fs::write(path(name), "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let text = r#"[{"name": "p", "command": ["./program"], "files": ["model"]}, "GST"]"#;
        std::fs::write(path("methods.json"), text).unwrap();
        let methods = load_methods(&path("methods.json")).unwrap();
        let worker = WorkerBinary {
            path: Some(path("worker")),
            sha256: proctor_protocol::canonical::sha256_hex(b"worker"),
        };
        std::fs::write(path("worker"), "worker").unwrap();
        for method in &methods {
            assert_eq!(changed(method, &worker), None, "{}", method.name);
        }
        for (name, method) in [("model", 0), ("program", 0), ("worker", 1)] {
            let before = std::fs::read(path(name)).unwrap();
            std::fs::write(path(name), "two").unwrap();
            let reason = changed(&methods[method], &worker).unwrap();
            assert_eq!(
                reason,
                format!("{name} was changed after the run was planned")
            );
            std::fs::write(path(name), before).unwrap();
        }
        std::fs::remove_file(path("model")).unwrap();
        let reason = changed(&methods[0], &worker).unwrap();
        assert!(reason.starts_with("model cannot be read"), "{reason}");
    }
}
