//! Speaks a version of the protocol that does not exist yet.
//! Honest report: `protocol_error`, both versions; no score.

use proctor_tests::talk::{Talk, say, sleep_for_ever};
use proctor_wire::{FromWorker, PROTOCOL_VERSION};

fn main() {
    let _talk = Talk::listen();
    say(&FromWorker::Hello {
        protocol: PROTOCOL_VERSION + 1,
        worker: "anachronist".into(),
    });
    sleep_for_ever();
}
