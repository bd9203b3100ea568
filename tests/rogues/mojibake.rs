//! Puts a byte that is no UTF-8 into an otherwise perfect line of scores.
//! Honest report: `protocol_error`, the line that is not UTF-8; no score.

use std::io::Write;

use proctor_tests::talk::{Talk, sleep_for_ever};

fn main() {
    let mut talk = Talk::open("mojibake");
    talk.next_dataset();
    let mut out = std::io::stdout().lock();
    let _ =
        out.write_all(b"{\"type\":\"scores\",\"start\":0,\"values\":[0.5],\"note\":\"\xff\"}\n");
    let _ = out.flush();
    drop(out);
    sleep_for_ever();
}
