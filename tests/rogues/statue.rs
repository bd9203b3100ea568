//! Stops a child of its and then itself with SIGSTOP.
//! Honest report: `timeout`; what is stopped can be killed like anything else.

use nix::sys::signal::{Signal, raise};
use proctor_tests::misdeed::{again, leave, part};
use proctor_tests::talk::{Talk, sleep_for_ever};

fn main() {
    if part().is_none() {
        leave(again("stand")).expect("a child can be started");
        let _talk = Talk::open("statue");
        raise(Signal::SIGSTOP).expect("it can stop itself");
        sleep_for_ever();
    }
    raise(Signal::SIGSTOP).expect("it can stop itself");
    sleep_for_ever();
}
