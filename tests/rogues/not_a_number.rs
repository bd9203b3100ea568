//! Sends NaN as a score, the way a careless JSON writer does.

use proctor_tests::talk::{Talk, say_raw, sleep_for_ever};

fn main() {
    let mut talk = Talk::open("not_a_number");
    talk.next_dataset();
    say_raw("{\"type\":\"scores\",\"start\":0,\"values\":[0.5,NaN]}\n");
    sleep_for_ever();
}
