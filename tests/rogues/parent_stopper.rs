//! Stops its parent, then scores everything.
//! Honest report: `completed` where the parent was not hit; otherwise a loss of the attempt, never a score.

use nix::sys::signal::{Signal, kill};
use nix::unistd::getppid;
use proctor_tests::misdeed::tried;
use proctor_tests::talk::Talk;

fn main() {
    let mut talk = Talk::open("parent_stopper");
    // Whoever starts it by hand asks nothing, and keeps a shell that answers.
    if let Some(asked) = talk.next_dataset() {
        tried("stop its parent", kill(getppid(), Signal::SIGSTOP));
        asked.answer();
    }
    talk.behave();
}
