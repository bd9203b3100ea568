//! Starts a process in a session of its own, and hangs.
//! Honest report: `timeout`; nobody survives.

use proctor_tests::misdeed::{again, leave, part};
use proctor_tests::talk::{Talk, sleep_for_ever};

fn main() {
    if part().is_some() {
        nix::unistd::setsid().expect("a new session");
        sleep_for_ever();
    }
    leave(again("stray")).expect("a child can be started");
    let _talk = Talk::open("stray");
    sleep_for_ever();
}
