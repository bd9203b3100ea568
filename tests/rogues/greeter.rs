//! Says hello a second time, in the middle of its first dataset.
//! Honest report: `protocol_error`, hello came twice; no score.

use proctor_tests::talk::{Talk, say, sleep_for_ever};
use proctor_wire::{FromWorker, PROTOCOL_VERSION};

fn main() {
    let mut talk = Talk::open("greeter");
    talk.next_dataset();
    say(&FromWorker::Hello {
        protocol: PROTOCOL_VERSION,
        worker: "greeter, restarted".into(),
    });
    sleep_for_ever();
}
