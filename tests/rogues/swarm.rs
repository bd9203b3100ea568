//! Starts two hundred processes, in ten sessions, and hangs.
//! Honest report: `timeout`; nobody survives.

use proctor_tests::misdeed::{again, leave, part};
use proctor_tests::talk::{Talk, sleep_for_ever};

fn main() {
    match part().as_deref() {
        Some("queen") => {
            nix::unistd::setsid().expect("a new session");
            for _ in 0..19 {
                let _ = leave(again("bee"));
            }
            sleep_for_ever();
        }
        Some(_) => sleep_for_ever(),
        None => {
            for _ in 0..10 {
                leave(again("queen")).expect("a child can be started");
            }
            let _talk = Talk::open("swarm");
            sleep_for_ever();
        }
    }
}
