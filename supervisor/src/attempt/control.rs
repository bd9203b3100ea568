//! Stopping an attempt from another thread or a signal handler.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU8, Ordering};

use nix::sys::eventfd::{EfdFlags, EventFd};

/// Why an attempt was asked to stop. The first reason stays; `now` may be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    /// True when somebody cancelled this method; false when the run was interrupted.
    pub cancelled: bool,
    /// True when the grace period is to be left out.
    pub now: bool,
}

/// The handle to stop an attempt. Its methods are safe to call from any thread and from a signal handler.
#[derive(Debug)]
pub struct Control {
    flags: AtomicU8,
    wake: EventFd,
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
}
