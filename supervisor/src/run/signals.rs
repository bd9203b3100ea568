//! Ctrl-C and termination. Before anything is written a signal ends the command. After that the first stops the run cleanly, the second empties the rooms and publishes nothing,
//! the third leaves at once (the rooms die with us).

use super::Stop;
use crate::error::Exit;
use nix::sys::signal::{SigSet, Signal};
use std::io;
use std::sync::Arc;

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
    fn the_mask_of_ignored_signals_is_read() {
        let status = "Name:\tx\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000000002\n";
        assert!(is_ignored(Signal::SIGHUP, status));
        assert!(!is_ignored(Signal::SIGINT, status));
        assert!(!is_ignored(Signal::SIGHUP, ""));
    }
}
