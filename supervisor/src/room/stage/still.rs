//! Making the processes of a room stand still by signals, where no control group can do it.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::super::procfs::Process;
use super::super::sys;

/// How long it may take until every process was seen to be stopped.
const BOUND: Duration = Duration::from_millis(500);

/// Which processes of the room had stopped by themselves; those stay stopped.
#[derive(Debug, Default)]
pub(super) struct Stillness {
    /// Number and start of each.
    before: Vec<(i32, u64)>,
}

impl Stillness {
    /// Stops what `members` gives, again until nothing else is seen; false when that took too long, and then all go on.
    /// The init of a pid namespace can do it at one blow, and knows without looking.
    pub(super) fn begin(&mut self, init: bool, members: impl Fn() -> Option<Vec<Process>>) -> bool {
        let end = Instant::now() + BOUND;
        let at_first = members();
        self.before = at_first
            .iter()
            .flatten()
            .filter(|process| stopped(process))
            .map(|process| (process.pid, process.started))
            .collect();
        if init {
            let _ = kill(Pid::from_raw(-1), Signal::SIGSTOP);
        }
        loop {
            let Some(all) = members() else {
                return init;
            };
            let going: Vec<Process> = all.into_iter().filter(|one| !stopped(one)).collect();
            if going.is_empty() {
                return true;
            }
            if Instant::now() >= end {
                self.end(members);
                return false;
            }
            for process in going {
                send(&process, libc::SIGSTOP);
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Lets everything go on but what had stopped by itself.
    pub(super) fn end(&mut self, members: impl Fn() -> Option<Vec<Process>>) {
        let before = std::mem::take(&mut self.before);
        let Some(all) = members() else {
            let _ = kill(Pid::from_raw(-1), Signal::SIGCONT);
            return;
        };
        for process in all {
            if !before.contains(&(process.pid, process.started)) {
                send(&process, libc::SIGCONT);
            }
        }
    }
}

/// Stopped by a signal or by a tracer.
fn stopped(process: &Process) -> bool {
    matches!(process.state, 'T' | 't')
}

/// Sends a signal to this process, and to no other that got its number meanwhile.
fn send(process: &Process, signal: i32) {
    let Ok(pidfd) = sys::pidfd_open(process.pid) else {
        return;
    };
    if Process::read(process.pid).is_some_and(|now| now.started == process.started) {
        let _ = sys::pidfd_kill(pidfd.as_fd(), signal);
    }
}
