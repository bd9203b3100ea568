//! The stage: this binary, started again, as the init or the guardian of a room.
//!
//! It is single-threaded. As init of a pid namespace it is killed with the supervisor, and the kernel then kills the
//! rest. As a guardian it sees the supervisor's end of the sockets close, and empties the room itself. Either way it
//! starts the worker, reaps what is orphaned, and reports the worker's own wait status.
#![allow(
    unsafe_code,
    reason = "descriptors by number, and the child of a vfork"
)]

mod guard;
mod mounts;
mod still;
mod sweep;
mod worker;

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::handover;
use super::sys::{self, Received};
use super::talk::{CONTROL_FD, MAX_REPORT, Order, PROBE_WORD, Report, STAGE_WORD, Word};

/// Must be the first thing `main` does. Returns at once in a normal start; when this process was started as the stage
/// of a room, it does that work and never returns.
pub fn main_if_stage() {
    let word = std::env::args_os().nth(1);
    if word.as_ref().is_some_and(|word| word == STAGE_WORD) {
        std::process::exit(stage());
    }
    if word.is_some_and(|word| word == PROBE_WORD) {
        loop {
            std::thread::park();
        }
    }
}

/// The stage's end of the sockets.
struct Control(OwnedFd);

impl Control {
    /// Tells the supervisor; a report that cannot be sent has nobody to read it.
    fn report(&self, report: &Report) {
        let _ = sys::send(self.0.as_fd(), &report.encode());
    }

    /// What the supervisor said, if anything; `Err` when it is gone.
    fn hear(&self) -> Result<Option<Word>, Gone> {
        let mut buffer = [0; MAX_REPORT];
        match sys::receive(self.0.as_fd(), &mut buffer) {
            Received::Message(length) => Ok(Word::decode(&buffer[..length])),
            Received::Nothing => Ok(None),
            Received::Closed => Err(Gone),
        }
    }
}

/// The supervisor is gone.
struct Gone;

fn stage() -> i32 {
    // SAFETY: the launcher placed this descriptor for us, and nothing else in this process owns it.
    let control = Control(unsafe { OwnedFd::from_raw_fd(CONTROL_FD) });
    // A worker of the same user must not trace us or open our descriptors.
    if let Err(error) = sys::prctl(libc::PR_SET_DUMPABLE, 0) {
        control.report(&Report::Failed {
            reason: format!("shutting the stage to others: {error}"),
        });
        return 2;
    }
    // It may take long until there is a room for us, or there never is one.
    let (order, cgroup, _ruleset) = match handed(&control) {
        Ok(Some(handed)) => handed,
        Ok(None) => return 0,
        Err(reason) => {
            control.report(&Report::Failed { reason });
            return 2;
        }
    };
    // The signal is set before the look at the sockets: if the supervisor died before, its end is closed by now; if it
    // dies after, the signal comes.
    if let Err(error) = guard::follow_supervisor(&order) {
        control.report(&Report::Failed {
            reason: format!("following the supervisor: {error}"),
        });
        return 2;
    }
    if control.hear().is_err() {
        return 0;
    }
    let started = guard::set_up(&order)
        .map_err(worker::NotStarted::Ours)
        .and_then(|missing| Ok((missing, worker::start(&order, cgroup.as_ref())?)));
    match started {
        Ok((missing, worker)) => {
            control.report(&Report::Started {
                pid: worker.pid,
                cores: guard::cores_of(worker.pid),
                missing,
            });
            sweep::watch(&control, &order, &worker)
        }
        Err(not_started) => {
            control.report(&match not_started {
                worker::NotStarted::Ours(reason) => Report::Failed { reason },
                worker::NotStarted::Program(reason) => Report::NotExecutable { reason },
            });
            2
        }
    }
}

/// The order, and what came with it: the room's cgroup2 and the landlock rules.
type Handed = (Order, Option<OwnedFd>, Option<OwnedFd>);

/// Waits for the order. The worker's pipes come with it and are put in their places. Nothing when the supervisor is gone.
fn handed(control: &Control) -> Result<Option<Handed>, String> {
    let descriptors = handover::take(control.0.as_fd())
        .map_err(|error| format!("what the stage is to get did not come: {error}"))?;
    if descriptors.is_empty() {
        return Ok(None);
    }
    let mut descriptors = descriptors.into_iter();
    let mut next = || descriptors.next().ok_or("the stage got too little");
    let pipes = [next()?, next()?, next()?];
    dup2_stdin(&pipes[0])
        .and_then(|()| dup2_stdout(&pipes[1]))
        .and_then(|()| dup2_stderr(&pipes[2]))
        .map_err(|error| format!("placing the worker's pipes: {error}"))?;
    drop(pipes);
    let mut bytes = Vec::new();
    let read = File::from(next()?).read_to_end(&mut bytes);
    let order = read.ok().and_then(|_| Order::decode(&bytes));
    let mut order = order.ok_or("the stage got no order it can read")?;
    let cgroup = order.rung.has_cgroup().then(&mut next).transpose()?;
    let ruleset = order.ruleset.map(|_| next()).transpose()?;
    // Until now it was the supervisor's number.
    order.ruleset = ruleset.as_ref().map(AsRawFd::as_raw_fd);
    Ok(Some((order, cgroup, ruleset)))
}
