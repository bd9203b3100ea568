//! Pads its lines with NUL bytes, as a program that writes whole buffers does.
//! Honest report: `protocol_error`, the line with the NUL bytes; no score.

use proctor_tests::talk::{Talk, say_raw, sleep_for_ever};

fn main() {
    let mut talk = Talk::open("nuller");
    talk.next_dataset();
    say_raw("{\"type\":\"scores\",\"start\":0,\"values\":[0.5]}\0\0\0\0\n");
    sleep_for_ever();
}
