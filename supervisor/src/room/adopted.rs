//! Orphans of a guardian that was killed.
//!
//! Without a pid namespace a worker of the same user can kill its guardian. What the guardian had adopted then becomes a
//! child of this process, which sweeps it. While such a room is open, this process must start children only through
//! [`begin`]: any other child that began after the room is taken for an orphan once the room's guardian was killed.

use std::collections::HashSet;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use super::procfs::{self, Process};
use super::sys;

/// Children that this process started itself and that were not reaped yet.
static STARTED: Mutex<Option<HashSet<i32>>> = Mutex::new(None);

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

fn with_started<T>(act: impl FnOnce(&mut HashSet<i32>) -> T) -> T {
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    act(started.get_or_insert_with(HashSet::new))
}

/// Starts a child that is no orphan. It is noted before anybody can look for orphans again: between the start and the note
/// another room's sweep would kill it.
///
/// # Errors
/// What `start` says.
pub(crate) fn begin<C>(
    start: impl FnOnce() -> io::Result<C>,
    pid: impl FnOnce(&C) -> i32,
) -> io::Result<C> {
    with_started(|started| {
        let child = start()?;
        started.insert(pid(&child));
        Ok(child)
    })
}

/// Notes that a child was reaped.
pub(crate) fn forget(child: i32) {
    with_started(|started| started.remove(&child));
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
    // Looked at after the processes: whoever was seen among them is noted by now.
    with_started(|started| {
        all.iter()
            .filter(|process| process.parent == own && !started.contains(&process.pid))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn sleeper() -> io::Result<Child> {
        Command::new("sleep").arg("60").spawn()
    }

    #[test]
    fn a_child_of_ours_is_no_orphan_from_its_first_instant_on() {
        let since = sys::monotonic_ns();
        // Somebody who looks for orphans at any time, also just after a child was started.
        let (started, seen) = std::sync::mpsc::channel();
        let pid = |child: &Child| i32::try_from(child.id()).unwrap();
        let looking = std::thread::spawn(move || {
            let pid: i32 = seen.recv().unwrap();
            (pid, orphans(since).contains(&pid))
        });
        let start = || {
            let child = sleeper()?;
            started.send(pid(&child)).unwrap();
            // Long enough to be seen before it is noted, were that possible.
            std::thread::sleep(Duration::from_millis(50));
            Ok(child)
        };
        let mut child = begin(start, pid).unwrap();
        let (number, orphan) = looking.join().unwrap();
        assert_eq!(number, pid(&child));
        assert!(!orphan);
        child.kill().unwrap();
        child.wait().unwrap();
        forget(number);
        // One that nobody noted is.
        let mut stray = sleeper().unwrap();
        assert!(orphans(since).contains(&pid(&stray)));
        stray.kill().unwrap();
        stray.wait().unwrap();
    }
}
