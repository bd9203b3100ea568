//! Lets a library print its banner into the conversation.
//! Honest report: `protocol_error`, the banner with its line number; no score.

use proctor_tests::talk::{Talk, say_raw};

fn main() {
    let mut talk = Talk::open("printer");
    say_raw("Loading model weights... 100%\n");
    talk.behave();
}
