//! Orphans of a guardian that was killed.
//!
//! Without a pid namespace a worker of the same user can kill its guardian. What the guardian had adopted then becomes a
//! child of this process, which sweeps it. While such a room is open, this process must start children only through
//! rooms: any other child that began after the room is taken for an orphan once the room's guardian was killed.

use std::collections::HashSet;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use super::procfs::{self, Process};
use super::sys;

/// Stages that run now.
static STAGES: Mutex<Option<HashSet<i32>>> = Mutex::new(None);

/// While one lives, workers of the same user cannot trace this process, and it adopts orphans where they are to be
/// swept. It also cannot make user namespaces meanwhile, which a room without a pid namespace does not need.
pub(super) struct Adopting(());

impl Adopting {
    /// Starts it.
    pub(super) fn begin(orphans: bool) -> io::Result<Self> {
        if orphans {
            sys::prctl(libc::PR_SET_CHILD_SUBREAPER, 1)?;
        }
        let mut count = ADOPTING.lock().unwrap_or_else(PoisonError::into_inner);
        sys::prctl(libc::PR_SET_DUMPABLE, 0)?;
        *count += 1;
        Ok(Self(()))
    }
}

impl Drop for Adopting {
    fn drop(&mut self) {
        let mut count = ADOPTING.lock().unwrap_or_else(PoisonError::into_inner);
        *count -= 1;
        if *count == 0 {
            let _ = sys::prctl(libc::PR_SET_DUMPABLE, 1);
        }
    }
}

/// How many [`Adopting`] live.
static ADOPTING: Mutex<u32> = Mutex::new(0);

fn with_stages<T>(act: impl FnOnce(&mut HashSet<i32>) -> T) -> T {
    let mut stages = STAGES.lock().unwrap_or_else(PoisonError::into_inner);
    act(stages.get_or_insert_with(HashSet::new))
}

/// Notes a stage that was started.
pub(super) fn register(stage: i32) {
    with_stages(|stages| stages.insert(stage));
}

/// Notes that a stage has ended.
pub(super) fn forget(stage: i32) {
    with_stages(|stages| stages.remove(&stage));
}

/// Kills and reaps what this process adopted since `since` (monotonic), until nothing is left or `end` has come. True
/// when nothing is left.
pub(super) fn sweep(since: u64, end: Instant) -> bool {
    loop {
        let orphans = orphans(since);
        if orphans.is_empty() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        for orphan in orphans {
            let pid = Pid::from_raw(orphan);
            let _ = kill(pid, Signal::SIGKILL);
            let _ = waitpid(pid, Some(WaitPidFlag::WNOHANG));
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

fn orphans(since: u64) -> Vec<i32> {
    let own = procfs::own_pid();
    let all: Vec<Process> = procfs::processes();
    with_stages(|stages| {
        all.iter()
            .filter(|process| process.parent == own && !stages.contains(&process.pid))
            .filter(|process| began_after(process, since))
            .map(|process| process.pid)
            .collect()
    })
}

/// /proc counts a hundredth of a second on the boot-time clock; the comparison allows one tick.
fn began_after(process: &Process, since: u64) -> bool {
    let suspended = sys::boottime_ns().saturating_sub(sys::monotonic_ns());
    let began = process.started.saturating_mul(10_000_000);
    began + 10_000_000 >= since.saturating_add(suspended)
}
