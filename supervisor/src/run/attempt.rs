//! One attempt of one method, from its directory to its terminal record.

use super::exam::MethodExam;
use super::live::Live;
use super::{Prepared, host, worker};
use crate::attempt::{self, Control, Ending, WaitStatus};
use crate::room::{self, RoomSpec};
use crate::rundir::durable::{self, DiskError};
use crate::rundir::fields::RecordError;
use crate::rundir::plan::{Plan, parts};
use crate::rundir::record::{AttemptId, Started, Terminal};
use crate::rundir::state;
use proctor_protocol::canonical::{digest, pretty};
use proctor_protocol::method::Method;
use proctor_protocol::object;
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
        durable::create_dir_all(&prepared.run.attempts_dir(&method.id))?;
        let dir = prepared.run.attempt_dir(&method.id, &id);
        durable::create_dir(&dir)?;
        durable::create_dir(&dir.join("scores"))?;
        let started = Started {
            run_id: plan.run_id.clone(),
            nonce: plan.nonce.clone(),
            method_id: method.id.clone(),
            started_utc: host::now_utc(),
            host: host::machine().host,
            boot_id: host::boot_id(),
            supervisor_pid: i64::from(std::process::id()),
            cores: cores.to_vec(),
            budget_seconds: plan.policy.budget_seconds,
        };
        let text = pretty(&started.to_value());
        durable::write_file(&dir.join("started.json"), text.as_bytes())?;
        Ok(Self { dir, id })
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
        let room = self.room(plan, method, cores);
        let budget =
            Duration::try_from_secs_f64(plan.policy.budget_seconds).unwrap_or(Duration::MAX);
        let ending = attempt::run(&room, budget, &mut exam, control);
        let terminal = terminal(&ending);
        let text = pretty(&terminal.to_value());
        durable::write_file(&self.dir.join("terminal.json"), text.as_bytes())?;
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
        let scratch = scratch_root().join(format!("proctor-{}", &name[..16]));
        RoomSpec {
            env: room::environment(&scratch, worker::passed_on(method)),
            cores: cores.to_vec(),
            ..RoomSpec::new(
                worker::command(method, plan.policy.worker.path.as_deref()),
                scratch,
                self.dir.join("stderr"),
                plan.run_id.clone(),
            )
        }
    }
}

fn scratch_root() -> PathBuf {
    std::path::absolute(std::env::temp_dir()).unwrap_or_else(|_| PathBuf::from("/tmp"))
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
        ended_as: ending.wait_status.map(WaitStatus::to_value),
        worker: ending.worker.clone(),
        ended_utc: host::now_utc(),
    }
}
