//! Sends a terminal sequence without a line feed, which glues itself to the next message.
//! Honest report: `protocol_error`, the line with its control characters made harmless; no score.

use proctor_tests::talk::{Talk, say_raw};

fn main() {
    let mut talk = Talk::open("painter");
    say_raw("\x1b]0;completed\x07\x1b[2J");
    talk.behave();
}
