//! Leaves a process behind that has no environment, another session, and a name made to mislead readers of `/proc`.
//! Honest report: `completed`; 1 leaked process, whatever it calls itself.

use proctor_tests::misdeed::{again, leave, part};
use proctor_tests::talk::{Talk, sleep_for_ever};

fn main() {
    if part().is_some() {
        let _ = nix::unistd::setsid();
        std::fs::write("/proc/self/comm", b"\xff) Z 1 \xfe").expect("a name can be chosen");
        sleep_for_ever();
    }
    let mut child = again("hide");
    child.env_clear();
    leave(child).expect("a child can be started");
    Talk::open("disguised").behave();
}
