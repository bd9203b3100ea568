//! Says hello and never reads a byte of what it is asked.
//! Honest report: `timeout`; no score.

use proctor_tests::talk::{say, sleep_for_ever};
use proctor_wire::{FromWorker, PROTOCOL_VERSION};

fn main() {
    say(&FromWorker::Hello {
        protocol: PROTOCOL_VERSION,
        worker: "deaf".into(),
    });
    sleep_for_ever();
}
