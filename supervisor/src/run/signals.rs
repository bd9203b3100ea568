//! Ctrl-C and termination. Before anything is written a signal ends the command. After that the first stops the run cleanly, the second empties the rooms and publishes nothing,
//! the third leaves at once (the rooms die with us). Ctrl-Z first makes the rooms stand still, then stops this process.

use super::Stop;
use crate::error::Exit;
use nix::sys::signal::{SigSet, Signal};
use std::io;
use std::sync::Arc;

/// The signals that stop a run or pause it, and the one that ends a pause. Those that are ignored, as a hang-up is under
/// `nohup`, are left alone.
fn stop_signals() -> SigSet {
    let mut signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGCONT]
        .into_iter()
        .collect();
    for signal in [Signal::SIGHUP, Signal::SIGTSTP] {
        if !ignores(signal) {
            signals.add(signal);
        }
    }
    signals
}

/// Stops this process until it is told to go on. Where that was said already, while the rooms were coming to rest, it is
/// not stopped: nobody would say it again. The signal is the one that cannot be ignored, since the kernel ignores the other
/// one in a process group that no shell looks after, and a batch system's suspension would then be none.
fn stop_this_process() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !is_pending(Signal::SIGCONT, &status) {
        let _ = nix::sys::signal::raise(Signal::SIGSTOP);
    }
}

/// Whether a signal waits to be taken by a process with this `/proc/PID/status`.
fn is_pending(signal: Signal, status: &str) -> bool {
    in_mask("ShdPnd:", signal, status)
}

/// Whether this process was started so that it ignores a signal, as `nohup` does for a hang-up.
pub fn ignores(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    is_ignored(signal, &status)
}

/// Whether a process with this `/proc/PID/status` ignores a signal.
fn is_ignored(signal: Signal, status: &str) -> bool {
    in_mask("SigIgn:", signal, status)
}

fn in_mask(name: &str, signal: Signal, status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix(name));
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
            while let Ok(signal) = signals.wait() {
                match signal {
                    Signal::SIGTSTP => stop.pause(stop_this_process),
                    // What it ends was ended by the kernel.
                    Signal::SIGCONT => {}
                    _ if stop.signal() => {}
                    _ => std::process::exit(i32::from(Exit::Interrupted.code())),
                }
            }
        })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        let status = "Name:\tx\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000000002\n";
        assert!(is_ignored(Signal::SIGHUP, status));
        assert!(!is_ignored(Signal::SIGINT, status));
        assert!(!is_ignored(Signal::SIGHUP, ""));
        let status = "SigPnd:\t0000000000000000\nShdPnd:\t0000000000020000\n";
        assert!(is_pending(Signal::SIGCONT, status));
        assert!(!is_pending(Signal::SIGTSTP, status));
    }
}
