//! One attempt of one method, from its directory to its terminal record.

use super::exam::MethodExam;
use super::live::Live;
use super::{Prepared, host, limits, scratch, taint, worker};
use crate::attempt::{self, Control, Ending, WaitStatus};
use crate::room::{self, Isolation, RoomSpec};
use crate::rundir::durable::{self, DiskError};
use crate::rundir::fields::RecordError;
use crate::rundir::plan::{Plan, WorkerBinary, datasets, parts};
use crate::rundir::record::{Answer, AttemptId, Checkpoint, Part, Started, Terminal};
use crate::rundir::reserve::Reserve;
use crate::rundir::{Supervisor, regular, state};
use proctor_protocol::canonical::{Value, digest, pretty};
use proctor_protocol::method::{Method, MethodKind};
use proctor_protocol::object;
use proctor_protocol::outcome::Outcome;
use std::fmt::Write;
use std::path::{Path, PathBuf};
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
    reserve: Reserve,
}

impl Desk {
    /// Makes the directory of the next attempt of a method, and says durably that it starts.
    ///
    /// # Errors
    /// The system refused, or another process makes the same attempt.
    pub fn open(
        prepared: &Prepared,
        plan: &Plan,
        method: &Method,
        cores: &[usize],
    ) -> Result<Self, AttemptError> {
        let earlier = state::attempts(&prepared.run, &method.id)?;
        let id = AttemptId::local(state::next_submission(&earlier));
        let reserve = Reserve::of(prepared.run.root());
        reserve.take();
        reserve.with(|| durable::create_dir_all(&prepared.run.attempts_dir(&method.id)))?;
        let dir = prepared.run.attempt_dir(&method.id, &id);
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
        };
        let text = pretty(&started.to_value());
        reserve.with(|| durable::write_file(&dir.join("started.json"), text.as_bytes()))?;
        Ok(Self { dir, id, reserve })
    }

    /// Runs the attempt to its end and writes its terminal record.
    ///
    /// # Errors
    /// A record cannot be written; the attempt then has no result.
    pub fn run(
        &self,
        prepared: &Prepared,
        plan: &Plan,
        method: &Method,
        cores: &[usize],
        live: &Live,
        control: &Control,
    ) -> Result<Terminal, AttemptError> {
        let parts = parts(&prepared.protocol, method);
        let mut exam = MethodExam::new(
            &prepared.protocol,
            &prepared.loaded,
            method,
            &parts,
            cores.len() as u32,
            live,
            &self.dir,
        )?;
        let room = RoomSpec {
            containment: Some(prepared.rung),
            hidden: answers(prepared),
            ..self.room(plan, method, cores)
        };
        let budget =
            Duration::try_from_secs_f64(plan.policy.budget_seconds).unwrap_or(Duration::MAX);
        let ending = match changed(method, &plan.policy.worker) {
            None => attempt::run(&room, budget, &mut exam, control),
            Some(reason) => Ending::not_started(Outcome::Infrastructure(reason), Isolation::none()),
        };
        let mut terminal = terminal(&ending);
        if !ending.facts.room_empty {
            let marked = taint::mark(&scratch::root(), &plan.run_id, &ending.unkillable);
            if let (Err(error), Outcome::Infrastructure(reason)) = (marked, &mut terminal.outcome) {
                let _ = write!(reason, "; the machine could not be marked: {error}");
            }
        }
        let log = regular::read(&self.dir.join("checkpoints.log")).unwrap_or_default();
        terminal.outcome = in_datasets(terminal.outcome, &parts, &Checkpoint::read_log(&log).0);
        let text = pretty(&terminal.to_value());
        let file = self.dir.join("terminal.json");
        self.reserve
            .with(|| durable::write_file(&file, text.as_bytes()))?;
        Ok(terminal)
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
    match outcome {
        Outcome::Incomplete { .. } => Outcome::Incomplete {
            done: count(&|dataset| dataset.iter().all(|part| answer(part).is_some())),
            total,
        },
        Outcome::DatasetErrors { .. } => Outcome::DatasetErrors {
            failed: count(&|dataset| {
                let failed = |found: &Checkpoint| matches!(found.answer, Answer::Failed { .. });
                dataset.iter().filter_map(answer).any(failed)
            }),
            total,
        },
        other => other,
    }
}

/// What no worker may see: the datasets with their gold, and the run directory with what other methods answered.
fn answers(prepared: &Prepared) -> Vec<PathBuf> {
    let mut hidden = vec![prepared.run.root().to_owned()];
    for entry in prepared.protocol.datasets() {
        hidden.extend(entry.path.clone());
        hidden.extend(entry.validation_path.clone());
        hidden.extend(entry.answer_files());
    }
    hidden
}

/// Why a method cannot be started any more as the plan has it: a file it is made of is not the one that was planned. The
/// files are read again right before they are used, since its id promises what ran.
fn changed(method: &Method, worker: &WorkerBinary) -> Option<String> {
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
            promised.extend(
                worker
                    .path
                    .as_deref()
                    .map(|path| (path, Some(worker.sha256.as_str()))),
            );
        }
    }
    promised.into_iter().find_map(|(path, sha256)| {
        let name = path.file_name().unwrap_or_default().display();
        match regular::sha256(path) {
            Ok(found) if Some(found.as_str()) == sha256 => None,
            Ok(_) => Some(format!("{name} was changed after the run was planned")),
            Err(error) => Some(format!("{name} cannot be read any more: {error}")),
        }
    })
}

fn terminal(ending: &Ending) -> Terminal {
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
