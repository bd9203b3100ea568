//! Scores everything correctly and leaves one process behind: in a session of its own, its parent gone, every
//! inherited descriptor closed.
//! Honest report: `completed`; 1 leaked process, which does not survive.
#![allow(
    clippy::zombie_processes,
    reason = "what is left behind is the misdeed"
)]

use std::process::{Command, Stdio};

use proctor_tests::talk::{Talk, sleep_for_ever};

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("leave") => {
            nix::unistd::setsid().expect("a new session");
            // Its parent leaves without waiting for it: that makes it a daemon.
            drop(start("stay"));
        }
        Some("stay") => sleep_for_ever(),
        _ => {
            let mut parent = start("leave");
            parent.wait().expect("the first child ends");
            Talk::open("daemon").behave();
        }
    }
}

fn start(role: &str) -> std::process::Child {
    Command::new(std::env::current_exe().expect("this program has a path"))
        .arg(role)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child can be started")
}
