//! Kills everybody it may kill, then scores everything.
//! Honest report: `completed` where nobody was hit; otherwise a loss of the attempt, never a score.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proctor_tests::talk::Talk;

fn main() {
    let mut talk = Talk::open("all_killer");
    // Whoever starts it by hand asks nothing, and loses nobody.
    if let Some(asked) = talk.next_dataset() {
        // Linux answers success even when it refused for every single process.
        let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
        asked.answer();
    }
    talk.behave();
}
