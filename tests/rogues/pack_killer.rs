//! Kills the process groups of its parent and of that one's parent, then scores everything.
//! Honest report: `completed` where nobody was hit; otherwise a loss of the attempt, never a score.

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgid, getppid};
use proctor_tests::misdeed::{grandparent, tried};
use proctor_tests::talk::Talk;

fn main() {
    let mut talk = Talk::open("pack_killer");
    // Whoever starts it by hand asks nothing, and loses no shell.
    if let Some(asked) = talk.next_dataset() {
        let above = [Some(getppid().as_raw()), grandparent()];
        for pid in above.into_iter().flatten().filter(|pid| *pid > 0) {
            let pack = getpgid(Some(Pid::from_raw(pid))).map_or(pid, Pid::as_raw);
            // Zero is a group outside of what it can see, and would mean its own.
            if pack > 0 {
                let killed = kill(Pid::from_raw(-pack), Signal::SIGKILL);
                tried(&format!("kill the group {pack}"), killed);
            }
        }
        asked.answer();
    }
    talk.behave();
}
