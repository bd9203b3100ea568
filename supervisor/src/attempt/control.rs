//! Stopping an attempt from another thread or a signal handler.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use nix::sys::eventfd::{EfdFlags, EventFd};

/// Why an attempt was asked to stop. The first reason stays; `now` may be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    /// True when somebody cancelled this method; false when the run was interrupted.
    pub cancelled: bool,
    /// True when the grace period is to be left out.
    pub now: bool,
}

/// The handle to stop or pause an attempt from any thread. Those that stop it are also safe in a signal handler.
#[derive(Debug)]
pub struct Control {
    flags: AtomicU8,
    wake: EventFd,
    pausing: Mutex<Pausing>,
    answered: Condvar,
    nudge: EventFd,
}

/// What was asked of the attempt, and whether it did it.
#[derive(Debug, Default)]
struct Pausing {
    asked: bool,
    done: bool,
}

const INTERRUPT: u8 = 1;
const CANCEL: u8 = 2;
const NOW: u8 = 4;

impl Control {
    /// A handle that stops nothing yet.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn new() -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(Self {
            flags: AtomicU8::new(0),
            wake: EventFd::from_flags(flags)?,
            pausing: Mutex::default(),
            answered: Condvar::new(),
            nudge: EventFd::from_flags(flags)?,
        })
    }

    /// The run is being stopped: the attempt ends as `interrupted`, after its grace period.
    pub fn interrupt(&self) {
        self.raise(INTERRUPT, CANCEL);
    }

    /// This method is cancelled: the attempt ends as `cancelled`, after its grace period.
    pub fn cancel(&self) {
        self.raise(CANCEL, INTERRUPT);
    }

    /// As [`Control::interrupt`], without a grace period; also cuts short one under way.
    pub fn kill(&self) {
        self.raise(INTERRUPT, CANCEL);
        self.raise(NOW, 0);
    }

    /// What was asked so far.
    pub fn stop(&self) -> Option<Stop> {
        let flags = self.flags.load(Ordering::SeqCst);
        (flags != 0).then_some(Stop {
            cancelled: flags & CANCEL != 0,
            now: flags & NOW != 0,
        })
    }

    /// The supervisor is about to be stopped: the room is to stand still until [`Control::resume`].
    pub fn pause(&self) {
        *self.pausing() = Pausing {
            asked: true,
            done: false,
        };
        let _ = self.nudge.write(1);
    }

    /// The room is to go on.
    pub fn resume(&self) {
        *self.pausing() = Pausing::default();
        let _ = self.nudge.write(1);
    }

    /// Waits until the room stands still or the attempt is over, at most until `end`; whether it does.
    pub fn await_pause(&self, end: Instant) -> bool {
        let left = end.saturating_duration_since(Instant::now());
        let waited = self
            .answered
            .wait_timeout_while(self.pausing(), left, |pausing| !pausing.done);
        waited.unwrap_or_else(PoisonError::into_inner).0.done
    }

    /// Nothing of the attempt runs, be it that its room stands still or that it is over.
    pub fn stands_still(&self) {
        self.pausing().done = true;
        self.answered.notify_all();
    }

    /// True when the room is to stand still now.
    pub(super) fn pause_asked(&self) -> bool {
        self.pausing().asked
    }

    /// Becomes readable when [`Control::pause_asked`] may have changed.
    pub(super) fn nudge_fd(&self) -> BorrowedFd<'_> {
        self.nudge.as_fd()
    }

    /// Makes [`Control::nudge_fd`] quiet until the next change.
    pub(super) fn nudged(&self) {
        let _ = self.nudge.read();
    }

    fn pausing(&self) -> MutexGuard<'_, Pausing> {
        self.pausing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Becomes readable when something was asked; it is never read.
    pub(super) fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    fn raise(&self, flag: u8, unless: u8) {
        let _ = self
            .flags
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |flags| {
                (flags & unless == 0).then_some(flags | flag)
            });
        // A full counter is readable too, so a failed write loses nothing.
        let _ = self.wake.write(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_stays() {
        let control = Control::new().unwrap();
        assert_eq!(control.stop(), None);
        control.cancel();
        control.kill();
        let stop = Stop {
            cancelled: true,
            now: true,
        };
        assert_eq!(control.stop(), Some(stop));
    }

    #[test]
    fn a_pause_is_awaited_with_a_bound() {
        let control = Control::new().unwrap();
        control.pause();
        assert!(control.pause_asked());
        assert!(!control.await_pause(Instant::now()));
        control.stands_still();
        assert!(control.await_pause(Instant::now()));
        control.resume();
        assert!(!control.pause_asked());
        // The next pause is answered anew.
        control.pause();
        assert!(!control.await_pause(Instant::now()));
    }
}
