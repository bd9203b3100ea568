//! Sends the right scores and closes a dataset nobody opened.
//! Honest report: `protocol_error`, the foreign number; no score.

use proctor_tests::talk::{Talk, say, sleep_for_ever};
use proctor_wire::FromWorker;

fn main() {
    let mut talk = Talk::open("stranger");
    if let Some(asked) = talk.next_dataset() {
        asked.send(0..asked.scores.len());
        say(&FromWorker::DatasetDone { dataset: 41 });
        sleep_for_ever();
    }
}
