//! Scores everything correctly and leaves a process behind that holds stdout open.
//! Honest report: `completed`; 1 leaked process and a leaked pipe, and no waiting for either.
#![allow(
    clippy::zombie_processes,
    reason = "what is left behind is the misdeed"
)]

use std::process::{Command, Stdio};

use proctor_tests::talk::{Talk, sleep_for_ever};

fn main() {
    if std::env::args().nth(1).as_deref() == Some("hold") {
        sleep_for_ever();
    }
    Command::new(std::env::current_exe().expect("this program has a path"))
        .arg("hold")
        .stdin(Stdio::null())
        .spawn()
        .expect("a child can be started");
    Talk::open("holder").behave();
}
