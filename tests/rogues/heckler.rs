//! Scores everything correctly, and a process it leaves behind goes on writing to stderr.
//! Honest report: `completed`; 1 leaked process, and a log that ends with the attempt.

use std::process::Stdio;

use proctor_tests::misdeed::{again, leave, part, tell};
use proctor_tests::talk::Talk;

fn main() {
    if part().is_some() {
        nix::unistd::setsid().expect("a new session");
        loop {
            tell("and another thing");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
    let mut child = again("heckle");
    child.stderr(Stdio::inherit());
    leave(child).expect("a child can be started");
    Talk::open("heckler").behave();
}
