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

/// Takes the one that fits. One that does not is ended: it would count in the control groups of the room that comes.
pub(super) fn take(spawner: u64, kind: Kind) -> Option<Launched> {
    loop {
        let found = next(spawner)?;
        if found.kind == kind && found.stage.waits() && !changed(&found.mounts) {
            return Some(found.stage);
        }
        found.stage.dismiss();
    }
}

/// Ends those of one spawner.
pub(super) fn dismiss(spawner: u64) {
    while let Some(found) = next(spawner) {
        found.stage.dismiss();
    }
}

/// Takes any of one spawner.
fn next(spawner: u64) -> Option<Prepared> {
    let mut ready = ready();
    let all = ready.as_mut()?;
    let place = all.iter().position(|one| one.spawner == spawner)?;
    Some(all.swap_remove(place))
}

/// Makes one, unless this spawner has one already. One of another kind is not wanted any more.
pub(super) fn make(spawner: u64, kind: Kind, launch: impl FnOnce() -> Option<Launched>) {
    dismiss_at_exit();
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    {
        let mut ready = ready();
        let Some(all) = ready.as_mut() else { return };
        if all
            .iter()
            .any(|one| one.spawner == spawner && one.kind == kind)
        {
            return;
        }
    }
    dismiss(spawner);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    /// A stage that waits: for its spawner, a process that sleeps is as good.
    fn sleeping(spawner: u64, kind: Kind) -> (Child, std::os::fd::OwnedFd) {
        let child = Command::new("sleep")
            .arg("60")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let (control, theirs) = sys::message_sockets().unwrap();
        make(spawner, kind, || {
            Some(Launched {
                child: sys::Child {
                    pid,
                    pidfd: sys::pidfd_open(pid).unwrap(),
                },
                control,
            })
        });
        (child, theirs)
    }

    fn ended(child: &Child) -> bool {
        !std::path::Path::new(&format!("/proc/{}", child.id())).exists()
    }

    #[test]
    fn one_of_another_kind_does_not_stay_beside_the_room_that_comes() {
        let kind = |die_with_us| Kind {
            namespaces: 0,
            die_with_us,
        };
        // Numbers that no spawner of this process has.
        let (one, other) = (u64::MAX, u64::MAX - 1);
        let (first, _control) = sleeping(one, kind(true));
        let (second, _its_control) = sleeping(other, kind(true));
        assert!(take(one, kind(false)).is_none());
        assert!(ended(&first));
        assert!(!ended(&second));
        assert!(take(one, kind(true)).is_none());
        let taken = take(other, kind(true)).unwrap();
        assert!(!ended(&second));
        taken.dismiss();
        assert!(ended(&second));
    }
}
