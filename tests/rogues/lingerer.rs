//! Answers everything, says `done` and never leaves.
//! Honest report: `timeout`; the last dataset does not count, for nothing shows a good end.

use proctor_tests::talk::{Talk, sleep_for_ever};

fn main() {
    Talk::open("lingerer").behave();
    sleep_for_ever();
}
