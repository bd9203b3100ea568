//! Leaves politely when it is told to end, and leaves a child behind that ignores the request. With `stopped` it has
//! stopped itself before, so that it hears the request only when it is let go on.
//! Honest report: `timeout` at the deadline, exit code 0 of the worker itself, nothing alive, and no wait for the rest of
//! the grace period.

use std::process::{Command, Stdio};

use nix::sys::signal::{SigSet, Signal, raise};
use proctor_tests::talk::{Talk, sleep_for_ever};

fn main() {
    let mut polite = SigSet::empty();
    polite.add(Signal::SIGTERM);
    polite.thread_block().expect("signals can be blocked");
    let role = std::env::args().nth(1);
    if role.as_deref() == Some("deaf") {
        // As a method of its own it has one already.
        let _ = nix::unistd::setsid();
        sleep_for_ever();
    }
    Talk::open("heir").behave_for(0);
    let child = Command::new(std::env::current_exe().expect("this program has a path"))
        .arg("deaf")
        .stdin(Stdio::null())
        .spawn();
    drop(child.expect("a child can be started"));
    if role.as_deref() == Some("stopped") {
        raise(Signal::SIGSTOP).expect("it can stop itself");
    }
    polite.wait().expect("a signal can be waited for");
}
