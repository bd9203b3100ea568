//! Says the whole conversation in one breath, before anything was asked, and leaves well.
//! Honest report: `protocol_error`, scores nobody asked for; no score.

use proctor_tests::talk::say_raw;
use proctor_wire::PROTOCOL_VERSION;

fn main() {
    let hello =
        format!("{{\"type\":\"hello\",\"protocol\":{PROTOCOL_VERSION},\"worker\":\"eager\"}}\n");
    let answer = |dataset: u32| {
        let scores = "{\"type\":\"scores\",\"start\":0,\"values\":[1.0]}";
        format!("{scores}\n{{\"type\":\"dataset_done\",\"dataset\":{dataset}}}\n")
    };
    let answers: String = (0..3).map(answer).collect();
    say_raw(&format!("{hello}{answers}{{\"type\":\"done\"}}\n"));
}
