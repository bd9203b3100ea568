//! Gives one key twice in one line, so that two readers could see two different answers.
//! Honest report: `protocol_error`, the repeated key; no score.

use proctor_tests::talk::{Talk, say_raw, sleep_for_ever};

fn main() {
    let mut talk = Talk::open("repeater");
    talk.next_dataset();
    say_raw("{\"type\":\"scores\",\"start\":0,\"values\":[0.5],\"values\":[1.0]}\n");
    sleep_for_ever();
}
