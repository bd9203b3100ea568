//! Sends its argument as a score, spelled as it is; NaN, the way a careless JSON writer does it, when there is none.
//! Honest report: `protocol_error`, the line with the value that is no finite number; no score.

use proctor_tests::talk::{Talk, say_raw, sleep_for_ever};

fn main() {
    let mut talk = Talk::open("not_a_number");
    talk.next_dataset();
    let spelling = std::env::args().nth(1).unwrap_or_else(|| "NaN".into());
    say_raw(&format!(
        "{{\"type\":\"scores\",\"start\":0,\"values\":[0.5,{spelling}]}}\n"
    ));
    sleep_for_ever();
}
