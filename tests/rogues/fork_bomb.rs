//! Starts children, each of which starts two more, until the system refuses; then gives up with code 4.
//! Honest report: `resource_limit`, processes, where the kernel counts the refusals; `exit(4)` where it does not.

use proctor_tests::misdeed::{again, leave, part, tell};
use proctor_tests::talk::{Talk, sleep_for_ever};

/// So many at most, should nobody refuse.
const BOUND: u32 = 150;

fn main() {
    if let Some(part) = part() {
        let _ = nix::unistd::setsid();
        for _ in 0..if part == "bomb" { 2 } else { 0 } {
            let _ = leave(again("splinter"));
        }
        sleep_for_ever();
    }
    let _talk = Talk::open("fork_bomb");
    let refused = (0..BOUND).find(|_| leave(again("bomb")).is_err());
    tell(&format!("refused after {refused:?}"));
    std::process::exit(4);
}
