//! Stages that were started ahead, for rooms that come next: starting a program and making its namespaces takes half of
//! the time a room takes, and it is done when nobody waits.
//!
//! A prepared stage is the stage of one room only, in namespaces nobody else ever was in. Until it gets its order it waits
//! and does nothing. It dies with the supervisor as any stage does.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::launch::{Kind, Launched};
use super::sys;

/// How long the end of this process waits for one that is being prepared.
const BOUND: Duration = Duration::from_secs(1);

struct Prepared {
    /// The spawner whose it is.
    spawner: u64,
    kind: Kind,
    stage: Launched,
    /// The mount table as it was before: who sees another one must not get this stage.
    mounts: File,
}

/// Those that wait; `None` once this process is ending.
static READY: Mutex<Option<Vec<Prepared>>> = Mutex::new(Some(Vec::new()));
/// Held while one is being made.
static MAKING: Mutex<()> = Mutex::new(());

fn ready() -> MutexGuard<'static, Option<Vec<Prepared>>> {
    READY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the one that fits.
pub(super) fn take(spawner: u64, kind: Kind) -> Option<Launched> {
    loop {
        let found = {
            let mut ready = ready();
            let all = ready.as_mut()?;
            let fits = |one: &Prepared| one.spawner == spawner && one.kind == kind;
            let place = all.iter().position(fits)?;
            all.swap_remove(place)
        };
        if found.stage.waits() && !changed(&found.mounts) {
            return Some(found.stage);
        }
        found.stage.dismiss();
    }
}

/// Makes one, unless this spawner has one already. One of another kind is not wanted any more.
pub(super) fn make(spawner: u64, kind: Kind, launch: impl FnOnce() -> Option<Launched>) {
    dismiss_at_exit();
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut unwanted = Vec::new();
    {
        let mut ready = ready();
        let Some(all) = ready.as_mut() else { return };
        if all
            .iter()
            .any(|one| one.spawner == spawner && one.kind == kind)
        {
            return;
        }
        while let Some(place) = all.iter().position(|one| one.spawner == spawner) {
            unwanted.push(all.swap_remove(place));
        }
    }
    for one in unwanted {
        one.stage.dismiss();
    }
    let Ok(mounts) = File::open("/proc/self/mountinfo") else {
        return;
    };
    let Some(stage) = launch() else { return };
    match ready().as_mut() {
        Some(all) => all.push(Prepared {
            spawner,
            kind,
            stage,
            mounts,
        }),
        None => stage.dismiss(),
    }
}

/// The kernel says once for each opened mount table that it has changed.
fn changed(mounts: &File) -> bool {
    let mut look = [PollFd::new(mounts.as_fd(), PollFlags::POLLPRI)];
    poll(&mut look, PollTimeout::ZERO) != Ok(0)
}

/// Ends all that wait, when this process ends in order; nothing is prepared afterwards.
pub(super) fn dismiss_all() {
    let waiting = ready().take();
    for one in waiting.into_iter().flatten() {
        one.stage.dismiss();
    }
    // Who is making one sees that it is not wanted.
    let end = Instant::now() + BOUND;
    while MAKING.try_lock().is_err() && Instant::now() < end {
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn dismiss_at_exit() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| sys::at_exit(at_exit));
}

extern "C" fn at_exit() {
    dismiss_all();
}
