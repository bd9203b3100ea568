//! Tries to read the memory, the environment and the open files of its parent and that one's parent, then scores
//! everything.
//! Honest report: `completed`; every attempt was refused.

use std::fs;

use nix::unistd::getppid;
use proctor_tests::misdeed::{grandparent, tried};
use proctor_tests::talk::Talk;

fn main() {
    let above = [Some(getppid().as_raw()), grandparent()];
    for pid in above.into_iter().flatten().filter(|pid| *pid > 0) {
        tried(
            &format!("memory of {pid}"),
            fs::File::open(format!("/proc/{pid}/mem")),
        );
        tried(
            &format!("environment of {pid}"),
            fs::File::open(format!("/proc/{pid}/environ")),
        );
        for descriptor in 0..16 {
            let name = format!("/proc/{pid}/fd/{descriptor}");
            tried(
                &format!("descriptor {descriptor} of {pid}"),
                fs::File::open(name),
            );
        }
    }
    Talk::open("memory_reader").behave();
}
