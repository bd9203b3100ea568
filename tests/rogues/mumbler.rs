//! Answers everything, but its last line, `done`, has no line feed.
//! Honest report: `incomplete`, 2 of 3: a line without an end was not said.

use proctor_tests::talk::{Talk, say_raw};

fn main() {
    let mut talk = Talk::open("mumbler");
    while let Some(asked) = talk.next_dataset() {
        asked.answer();
    }
    say_raw("{\"type\":\"done\"}");
}
