//! Sends signs of life as fast as it can, for ever.
//! Honest report: `resource_limit`, output; no score.

use proctor_tests::talk::{Talk, say_raw};

fn main() {
    let mut talk = Talk::open("rattle");
    talk.next_dataset();
    let lines = "{\"type\":\"progress\",\"items\":1}\n".repeat(2000);
    loop {
        say_raw(&lines);
    }
}
