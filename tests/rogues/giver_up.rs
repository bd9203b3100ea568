//! Says that it gives up, and why, and leaves with code 0.
//! Honest report: `incomplete`, 0 of 3, and the worker's own words.

use proctor_tests::talk::{Talk, say};
use proctor_wire::FromWorker;

fn main() {
    let mut talk = Talk::open("giver_up");
    talk.next_dataset();
    say(&FromWorker::WorkerError {
        error: "no model here".into(),
    });
}
