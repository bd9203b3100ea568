//! Writes one line that never ends.
//! Honest report: `protocol_error`, the line that is too long; no score.

use proctor_tests::talk::{Talk, say_raw};

fn main() {
    let _talk = Talk::open("flood");
    let piece = "x".repeat(1 << 16);
    loop {
        say_raw(&piece);
    }
}
