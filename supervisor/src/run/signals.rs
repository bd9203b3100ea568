//! Ctrl-C and termination. Before anything is written a signal ends the command. After that the first stops the run cleanly, the second empties the rooms and publishes nothing,
//! the third leaves at once (the rooms die with us).

use crate::attempt::Control;
use crate::error::Exit;
use nix::sys::signal::{SigSet, Signal};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What was asked for by signals, and the attempts to tell.
#[derive(Debug, Default)]
pub struct Stop {
    begun: AtomicBool,
    asked: AtomicU8,
    running: Mutex<Vec<Arc<Control>>>,
}

impl Stop {
    /// Nothing asked.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// From here on there is something to stop cleanly.
    pub fn begin(&self) {
        self.begun.store(true, Ordering::SeqCst);
    }

    /// True after the first signal.
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst) > 0
    }

    /// True after the second signal.
    pub fn at_once(&self) -> bool {
        self.asked.load(Ordering::SeqCst) > 1
    }

    /// Puts an attempt under signals. One that comes too late is stopped right away.
    pub fn register(&self, control: &Arc<Control>) {
        self.lock().push(Arc::clone(control));
        self.pass_on(control);
    }

    /// Takes an attempt out again.
    pub fn release(&self, control: &Arc<Control>) {
        self.lock().retain(|other| !Arc::ptr_eq(other, control));
    }

    /// One more signal came; `false` when nothing is left to do but to leave.
    pub fn signal(&self) -> bool {
        let before = self.asked.fetch_add(1, Ordering::SeqCst);
        let running = self.lock();
        for control in running.iter() {
            self.pass_on(control);
        }
        let begun = self.begun.load(Ordering::SeqCst);
        begun && (before == 0 || (before == 1 && !running.is_empty()))
    }

    fn pass_on(&self, control: &Control) {
        match self.asked.load(Ordering::SeqCst) {
            0 => {}
            1 => control.interrupt(),
            _ => control.kill(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Control>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The signals that stop a run. A hang-up is left alone when it is ignored, as under `nohup`.
fn stop_signals() -> SigSet {
    let mut signals: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !is_ignored(Signal::SIGHUP, &status) {
        signals.add(Signal::SIGHUP);
    }
    signals
}

/// Whether a process with this `/proc/PID/status` ignores a signal.
fn is_ignored(signal: Signal, status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal as u32 - 1)) != 0)
}

/// Turns the stop signals of this process into calls of [`Stop::signal`]. Must come before any other thread is
/// started, since threads inherit what is blocked. Workers do not: a room resets what its processes inherit.
///
/// # Errors
/// The system refused.
pub fn listen(stop: &Arc<Stop>) -> io::Result<()> {
    let signals = stop_signals();
    signals.thread_block()?;
    let stop = Arc::clone(stop);
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            while signals.wait().is_ok() {
                if !stop.signal() {
                    std::process::exit(i32::from(Exit::Interrupted.code()));
                }
            }
        })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_anything_began_the_first_leaves() {
        assert!(!Stop::new().signal());
    }

    #[test]
    fn first_interrupts_second_kills_third_leaves() {
        let stop = Stop::new();
        stop.begin();
        let control = Arc::new(Control::new().unwrap());
        stop.register(&control);
        assert!(stop.signal());
        assert!(stop.asked() && !stop.at_once());
        assert!(control.stop().is_some_and(|stop| !stop.now));
        assert!(stop.signal());
        assert!(stop.at_once());
        assert!(control.stop().is_some_and(|stop| stop.now));
        assert!(!stop.signal());
    }

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        let status = "Name:\tx\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000000002\n";
        assert!(is_ignored(Signal::SIGHUP, status));
        assert!(!is_ignored(Signal::SIGINT, status));
        assert!(!is_ignored(Signal::SIGHUP, ""));
    }

    #[test]
    fn without_a_running_attempt_the_second_leaves() {
        let stop = Stop::new();
        stop.begin();
        assert!(stop.signal());
        assert!(!stop.signal());
    }

    #[test]
    fn an_attempt_that_starts_after_the_signal_is_stopped_at_once() {
        let stop = Stop::new();
        stop.signal();
        let control = Arc::new(Control::new().unwrap());
        stop.register(&control);
        assert!(control.stop().is_some());
        stop.release(&control);
        assert!(stop.lock().is_empty());
    }
}
