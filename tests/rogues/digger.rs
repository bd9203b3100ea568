//! Answers with arrays inside arrays, a hundred thousand deep, within one line.
//! Honest report: `protocol_error`, the line that is no message, and no stack overflow of ours; no score.

use proctor_tests::talk::{Talk, say_raw, sleep_for_ever};

fn main() {
    let mut talk = Talk::open("digger");
    talk.next_dataset();
    say_raw("{\"type\":\"scores\",\"start\":0,\"values\":");
    say_raw(&"[".repeat(100_000));
    say_raw(&"]".repeat(100_000));
    say_raw("}\n");
    sleep_for_ever();
}
