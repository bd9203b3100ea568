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
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use super::sys::{self, Received};
use super::talk::{
    CGROUP_FD, CONTROL_FD, MAX_REPORT, ORDER_FD, Order, PROBE_WORD, Report, STAGE_WORD, Word,
};

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
    // SAFETY: the launcher placed these descriptors for us, and nothing else in this process owns them.
    let (control, mut order) = unsafe {
        (
            Control(OwnedFd::from_raw_fd(CONTROL_FD)),
            File::from_raw_fd(ORDER_FD),
        )
    };
    let mut bytes = Vec::new();
    let order = match order.read_to_end(&mut bytes) {
        Ok(_) => Order::decode(&bytes),
        Err(_) => None,
    };
    let Some(order) = order else {
        control.report(&Report::Failed {
            reason: "the stage got no order it can read".into(),
        });
        return 2;
    };
    // SAFETY: as above; only these rungs get that descriptor.
    let cgroup = (order.rung.has_cgroup()).then(|| unsafe { OwnedFd::from_raw_fd(CGROUP_FD) });
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
