//! Answers everything, says `done`, and then sends better scores.
//! Honest report: `completed` with the first scores, and 2 late rows that count for nothing.

use proctor_tests::talk::{Talk, say_raw};

fn main() {
    Talk::open("afterthought").behave();
    say_raw("{\"type\":\"scores\",\"start\":0,\"values\":[1.0,1.0]}\n");
    say_raw("{\"type\":\"dataset_done\",\"dataset\":2}\n");
}
