//! Scores everything correctly, and a process it leaves behind sends better scores when it is gone.
//! Honest report: `completed` with the first scores; 1 leaked process, a leaked pipe, 2 late rows.

use std::process::Stdio;

use proctor_tests::misdeed::{again, leave, part, wait_for_the_starter_to_go};
use proctor_tests::talk::{Talk, say_raw, sleep_for_ever};

fn main() {
    if part().is_some() {
        nix::unistd::setsid().expect("a new session");
        wait_for_the_starter_to_go();
        say_raw("{\"type\":\"scores\",\"start\":0,\"values\":[1.0,1.0]}\n");
        sleep_for_ever();
    }
    let mut ghost = again("ghost");
    ghost.stdout(Stdio::inherit());
    leave(ghost).expect("a child can be started");
    Talk::open("ghostwriter").behave();
}
