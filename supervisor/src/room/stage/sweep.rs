//! The stage's watch over the worker: reaping, reporting, and emptying the room.

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;

use super::super::cgroup;
use super::super::procfs::{self, Process};
use super::super::talk::{Order, Report, SETTLE, Word};
use super::super::{Rung, sys};
use super::still::Stillness;
use super::worker::Worker;
use super::{Control, Gone};

/// How long a guardian whose supervisor is dead goes on trying to empty the room.
const PATIENCE: Duration = Duration::from_secs(30);

/// Watches until the room is empty or nobody is left to tell.
pub(super) fn watch(control: &Control, order: &Order, worker: &Worker) -> i32 {
    let mut watch = Watch {
        control,
        order,
        worker: Pid::from_raw(worker.pid),
        ended: None,
        told_left: false,
        stillness: Stillness::default(),
    };
    watch.run()
}

struct Watch<'a> {
    control: &'a Control,
    order: &'a Order,
    worker: Pid,
    /// When the worker itself ended.
    ended: Option<Instant>,
    told_left: bool,
    stillness: Stillness,
}

impl Watch<'_> {
    fn run(&mut self) -> i32 {
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let Ok(signals) = SignalFd::with_flags(&mask, flags) else {
            return 2;
        };
        loop {
            self.reap();
            if self.tell_left() == Some(Left::Nobody) && self.order.rung.adopts_all() {
                self.control.report(&Report::Empty);
                return 0;
            }
            let wait = if self.ended.is_some() && !self.told_left {
                PollTimeout::from(2_u8)
            } else {
                PollTimeout::NONE
            };
            let mut ready = [
                PollFd::new(self.control.0.as_fd(), PollFlags::POLLIN),
                PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            ];
            let _ = poll(&mut ready, wait);
            while let Ok(Some(_)) = signals.read_signal() {}
            match self.control.hear() {
                Ok(None) => {}
                Ok(Some(Word::Terminate)) => self.terminate(),
                Ok(Some(Word::Freeze)) => {
                    let all = self.stand_still();
                    self.control.report(&Report::Frozen(all));
                }
                Ok(Some(Word::Thaw)) => self.go_on(),
                Ok(Some(Word::Kill)) => {
                    self.empty(None);
                    self.control.report(&Report::Empty);
                    return 0;
                }
                // The kernel kills the rest of a pid namespace with its init.
                Err(Gone) if self.order.rung.has_pid_namespace() => return 0,
                Err(Gone) => {
                    self.empty(Some(PATIENCE));
                    if !self.order.cgroup.as_os_str().is_empty() {
                        let _ = cgroup::remove(&self.order.cgroup);
                    }
                    return 0;
                }
            }
        }
    }

    /// Takes note of everything that ended.
    fn reap(&mut self) -> Reaped {
        let mut any = false;
        loop {
            let mut status = 0;
            // SAFETY: `status` is a valid place for the answer. The raw status is wanted as the kernel gives it.
            let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WALL) };
            match pid {
                1.. => {
                    any = true;
                    if pid == self.worker.as_raw() && self.ended.is_none() {
                        self.ended = Some(Instant::now());
                        let at = sys::monotonic_ns();
                        self.control.report(&Report::Ended { status, at });
                    }
                }
                0 => return if any { Reaped::Some } else { Reaped::Nothing },
                _ => match Errno::last() {
                    Errno::EINTR => {}
                    Errno::ECHILD => return Reaped::NoChild,
                    _ => return Reaped::Nothing,
                },
            }
        }
    }

    /// Tells how many processes outlived the worker, as soon as it is none, or after they had time to leave. Gives back
    /// who is left when it was told now.
    fn tell_left(&mut self) -> Option<Left> {
        let ended = self.ended?;
        if self.told_left {
            return None;
        }
        let left = self.left();
        if left != Left::Nobody && ended.elapsed() < SETTLE {
            return None;
        }
        self.told_left = true;
        self.control.report(&Report::Left {
            processes: match left {
                Left::Nobody => Some(0),
                Left::Some(number) => Some(number),
                Left::Somebody => None,
            },
            cpu_ns: cpu_ns(),
            full: self.full(),
        });
        Some(left)
    }

    /// Whether the file system of the scratch directory is full, where it is the room's own.
    fn full(&self) -> Option<bool> {
        self.order.view.as_ref()?;
        let found = nix::sys::statvfs::statvfs(&self.order.scratch).ok()?;
        Some(found.blocks_free() == 0 || found.files_free() == 0)
    }

    /// Living processes of the room, the stage left out. Only the kernel's word that there is no child makes it nobody
    /// where every orphan becomes a child; what /proc shows may be less than there is.
    fn left(&self) -> Left {
        let children = self.order.rung != Rung::K0 && self.has_children();
        if self.order.rung.adopts_all() && !children {
            return Left::Nobody;
        }
        match self.count() {
            Some(0) if children => Left::Somebody,
            Some(0) => Left::Nobody,
            Some(number) => Left::Some(number),
            None => Left::Somebody,
        }
    }

    fn stand_still(&mut self) -> bool {
        let mut stillness = std::mem::take(&mut self.stillness);
        let init = self.order.rung.has_pid_namespace();
        let all = stillness.begin(init, || self.members());
        self.stillness = stillness;
        all
    }

    fn go_on(&mut self) {
        let mut stillness = std::mem::take(&mut self.stillness);
        stillness.end(|| self.members());
    }

    /// Living processes of the room that /proc shows; `None` when it does not show the room.
    fn count(&self) -> Option<u32> {
        self.members().map(|members| members.len() as u32)
    }

    /// The processes themselves.
    fn members(&self) -> Option<Vec<Process>> {
        let own = procfs::own_pid();
        Some(match self.order.rung {
            Rung::K4 | Rung::K3a if own == 1 && own_proc() => {
                alive(procfs::processes(), |process| process.pid != own)
            }
            // This /proc is not of our own pid namespace.
            Rung::K4 | Rung::K3a => return None,
            Rung::K3b => {
                let mut members = Vec::new();
                cgroup::collect_members(&self.order.cgroup, &mut members);
                let members: HashSet<i32> = members.into_iter().collect();
                alive(
                    members.into_iter().filter_map(Process::read).collect(),
                    |_| true,
                )
            }
            Rung::K1 => alive(procfs::descendants(own, &procfs::processes()), |_| true),
            Rung::K0 => {
                let session = self.worker.as_raw();
                alive(procfs::processes(), |process| process.session == session)
            }
        })
    }

    /// True while a child of ours has not been reaped.
    #[expect(clippy::unused_self, reason = "reads as a question about the watch")]
    fn has_children(&self) -> bool {
        !matches!(
            nix::sys::wait::waitid(
                nix::sys::wait::Id::All,
                nix::sys::wait::WaitPidFlag::WEXITED
                    | nix::sys::wait::WaitPidFlag::WNOHANG
                    | nix::sys::wait::WaitPidFlag::WNOWAIT
            ),
            Err(Errno::ECHILD)
        )
    }

    fn terminate(&self) {
        if self.ended.is_none() {
            let _ = killpg(self.worker, Signal::SIGTERM);
            let _ = killpg(self.worker, Signal::SIGCONT);
        }
    }

    /// Kills until nothing is left, or until `patience` is over.
    fn empty(&mut self, patience: Option<Duration>) {
        let begun = Instant::now();
        loop {
            self.strike();
            let reaped = self.reap();
            let done = match self.order.rung {
                Rung::K3b => {
                    matches!(reaped, Reaped::NoChild) && cgroup::is_empty(&self.order.cgroup)
                }
                Rung::K0 => self.ended.is_some(),
                _ => matches!(reaped, Reaped::NoChild),
            };
            if done || patience.is_some_and(|patience| begun.elapsed() > patience) {
                return;
            }
            // The supervisor may have died meanwhile; the work stays the same, but it then has an end.
            if patience.is_none() && self.control.hear().is_err() {
                return self.empty(Some(PATIENCE));
            }
            if matches!(reaped, Reaped::Nothing) {
                std::thread::sleep(Duration::from_micros(500));
            }
        }
    }

    fn strike(&self) {
        match self.order.rung {
            Rung::K4 | Rung::K3a => {
                let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
            }
            Rung::K3b => {
                let _ = cgroup::kill(&self.order.cgroup);
                self.strike_children();
            }
            Rung::K1 => self.strike_children(),
            Rung::K0 => {
                let _ = killpg(self.worker, Signal::SIGKILL);
            }
        }
    }

    /// Kills every child. What they leave behind becomes our child in turn, and is killed in the next round. Only children
    /// are struck: their numbers stay theirs until we reap them, so nobody else is ever hit.
    #[expect(clippy::unused_self, reason = "reads as an act of the watch")]
    fn strike_children(&self) {
        for child in procfs::children_of_self() {
            let _ = kill(Pid::from_raw(child), Signal::SIGKILL);
        }
    }
}

/// Who is left in the room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Nobody,
    /// So many, which is not zero.
    Some(u32),
    /// Some that cannot be counted.
    Somebody,
}

enum Reaped {
    Some,
    Nothing,
    NoChild,
}

fn alive(mut processes: Vec<Process>, wanted: impl Fn(&Process) -> bool) -> Vec<Process> {
    processes.retain(|process| process.alive() && wanted(process));
    processes
}

/// True when /proc shows our own pid namespace.
fn own_proc() -> bool {
    std::fs::read_link("/proc/self").is_ok_and(|link| link.as_os_str() == "1")
}

/// CPU time of every descendant that ended and was reaped.
fn cpu_ns() -> Option<u64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    let total = usage.user_time() + usage.system_time();
    u64::try_from(total.num_nanoseconds()).ok()
}
