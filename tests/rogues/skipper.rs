//! Leaves one item out, in the middle.
//! Honest report: `protocol_error`, the gap; no score.

use proctor_tests::talk::{Talk, sleep_for_ever};

fn main() {
    let mut talk = Talk::open("skipper");
    if let Some(asked) = talk.next_dataset() {
        asked.send(0..3);
        asked.send(4..asked.scores.len());
        asked.done();
        sleep_for_ever();
    }
}
