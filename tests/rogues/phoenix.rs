//! Keeps a chain going in which each process starts the next one, in a session of its own, and ends.
//! Honest report: `timeout`; nobody survives, however fast it is born again.

use proctor_tests::misdeed::{again, leave, part};
use proctor_tests::talk::{Talk, sleep_for_ever};

fn main() {
    if part().is_some() {
        let _ = nix::unistd::setsid();
        let _ = leave(again("rise"));
        return;
    }
    leave(again("rise")).expect("a child can be started");
    let _talk = Talk::open("phoenix");
    sleep_for_ever();
}
