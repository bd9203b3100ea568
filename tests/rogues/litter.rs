//! Scores everything correctly and leaves twenty processes behind, each in a session of its own.
//! Honest report: `completed`; 20 leaked processes, none of which survives.

use proctor_tests::misdeed::{again, leave, part};
use proctor_tests::talk::{Talk, sleep_for_ever};

fn main() {
    if part().is_some() {
        let _ = nix::unistd::setsid();
        sleep_for_ever();
    }
    for _ in 0..20 {
        leave(again("stay")).expect("a child can be started");
    }
    Talk::open("litter").behave();
}
