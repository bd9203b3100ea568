//! Starts threads until the system refuses; then gives up with code 4.
//! Honest report: `resource_limit`, processes, where the kernel counts the refusals; `exit(4)` where it does not.

use proctor_tests::misdeed::tell;
use proctor_tests::talk::{Talk, sleep_for_ever};

/// So many at most, should nobody refuse.
const BOUND: u32 = 600;

fn main() {
    let _talk = Talk::open("thread_bomb");
    let start = || {
        std::thread::Builder::new()
            .stack_size(16 << 10)
            .spawn(|| sleep_for_ever())
    };
    let refused = (0..BOUND).find(|_| start().is_err());
    tell(&format!("refused after {refused:?}"));
    std::process::exit(4);
}
