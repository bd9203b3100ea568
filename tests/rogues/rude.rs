//! Skips the greeting: its first line is a batch of scores.
//! Honest report: `protocol_error`, no hello; no score.

use proctor_tests::talk::{Talk, say_raw, sleep_for_ever};

fn main() {
    let _talk = Talk::listen();
    say_raw("{\"type\":\"scores\",\"start\":0,\"values\":[0.5]}\n");
    sleep_for_ever();
}
