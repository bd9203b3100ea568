//! Burns four cores with four processes, as many as it was not given, and hangs.
//! Honest report: `timeout`; nobody goes on burning beside the next method.

use proctor_tests::misdeed::{again, leave, part};
use proctor_tests::talk::Talk;

fn main() {
    if part().is_none() {
        for _ in 0..3 {
            leave(again("burn")).expect("a child can be started");
        }
        let _talk = Talk::open("burners");
    }
    loop {
        std::hint::spin_loop();
    }
}
