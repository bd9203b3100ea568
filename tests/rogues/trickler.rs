//! Sends its answer one byte at a time, a few of them a second.
//! Honest report: `timeout`; no score of a line that never ended.

use std::time::Duration;

use proctor_tests::talk::{Talk, say_raw, sleep_for_ever};

fn main() {
    let mut talk = Talk::open("trickler");
    talk.next_dataset();
    let line = format!(
        "{{\"type\":\"scores\",\"start\":0,\"values\":[{}]}}\n",
        "0.5,".repeat(500)
    );
    for byte in line.chars() {
        say_raw(&byte.to_string());
        std::thread::sleep(Duration::from_millis(100));
    }
    sleep_for_ever();
}
