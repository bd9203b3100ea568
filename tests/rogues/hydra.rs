//! Ends at the first polite signal, while a child of its in another session does not listen to any.
//! Honest report: `timeout`; the child does not outlive its leader's good manners.

use nix::sys::signal::SigSet;
use proctor_tests::misdeed::{again, leave, part};
use proctor_tests::talk::{Talk, sleep_for_ever};

fn main() {
    if part().is_some() {
        SigSet::all()
            .thread_block()
            .expect("signals can be blocked");
        nix::unistd::setsid().expect("a new session");
        sleep_for_ever();
    }
    leave(again("head")).expect("a child can be started");
    let _talk = Talk::open("hydra");
    sleep_for_ever();
}
