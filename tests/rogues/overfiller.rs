//! Sends one score more than it was asked for.
//! Honest report: `protocol_error`, more scores than items; no score.

use proctor_tests::talk::{Talk, say, sleep_for_ever};
use proctor_wire::FromWorker;

fn main() {
    let mut talk = Talk::open("overfiller");
    if let Some(asked) = talk.next_dataset() {
        say(&FromWorker::Scores {
            start: 0,
            values: vec![0.5; asked.scores.len() + 1],
        });
        asked.done();
        sleep_for_ever();
    }
}
