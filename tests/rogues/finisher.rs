//! Says `done` while the first dataset is still open, and exits with code 0.
//! Honest report: `protocol_error`, the `done` nobody asked for; no score.

use proctor_tests::talk::{Talk, say};
use proctor_wire::FromWorker;

fn main() {
    let mut talk = Talk::open("finisher");
    talk.next_dataset();
    say(&FromWorker::Done {});
}
