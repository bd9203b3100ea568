//! Kills its parent and that one's parent, then scores everything.
//! Honest report: `completed` where nobody was hit; otherwise a loss of the attempt, never a score.

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid};
use proctor_tests::misdeed::{grandparent, tried};
use proctor_tests::talk::Talk;

fn main() {
    let mut talk = Talk::open("parent_killer");
    // Whoever starts it by hand asks nothing, and loses no shell.
    if let Some(asked) = talk.next_dataset() {
        let above = grandparent();
        tried("kill its parent", kill(getppid(), Signal::SIGKILL));
        if let Some(above) = above.filter(|pid| *pid > 1) {
            tried(
                "kill the supervisor",
                kill(Pid::from_raw(above), Signal::SIGKILL),
            );
        }
        asked.answer();
    }
    talk.behave();
}
