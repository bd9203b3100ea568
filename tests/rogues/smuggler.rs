//! Hides fields of its own in an otherwise perfect line of scores.
//! Honest report: `protocol_error`, the unknown field; no score.

use proctor_tests::talk::{Talk, say_raw, sleep_for_ever};

fn main() {
    let mut talk = Talk::open("smuggler");
    talk.next_dataset();
    say_raw(
        "{\"type\":\"scores\",\"start\":0,\"values\":[0.5],\"outcome\":\"completed\",\"status\":\"ok\"}\n",
    );
    sleep_for_ever();
}
