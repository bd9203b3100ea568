//! Sends its first batch of scores twice.
//! Honest report: `protocol_error`, the repetition; no score.

use proctor_tests::talk::{Talk, sleep_for_ever};

fn main() {
    let mut talk = Talk::open("duplicator");
    if let Some(asked) = talk.next_dataset() {
        asked.send(0..2);
        asked.send(0..2);
        sleep_for_ever();
    }
}
