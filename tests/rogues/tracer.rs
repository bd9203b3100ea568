//! Tries to trace its parent and that one's parent, which would freeze them, then scores everything.
//! Honest report: `completed`; every attempt was refused.

use nix::unistd::getppid;
use proctor_tests::misdeed::{grandparent, system_call, tried};
use proctor_tests::talk::Talk;

fn main() {
    let above = [Some(getppid().as_raw()), grandparent()];
    for pid in above.into_iter().flatten().filter(|pid| *pid > 0) {
        for (name, request) in [
            ("attach to", libc::PTRACE_ATTACH),
            ("seize", libc::PTRACE_SEIZE),
        ] {
            let result = system_call(libc::SYS_ptrace, [request.into(), pid.into(), 0, 0]);
            tried(&format!("{name} {pid}"), result);
        }
    }
    Talk::open("tracer").behave();
}
