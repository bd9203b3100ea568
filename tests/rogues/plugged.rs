//! Says hello and closes the pipe it should be asked through.
//! Honest report: `timeout`; no score, and the supervisor outlives its broken pipe.

use proctor_tests::talk::{Talk, sleep_for_ever};

fn main() {
    let _talk = Talk::open("plugged");
    nix::unistd::close(0).expect("stdin can be closed");
    sleep_for_ever();
}
