//! Answers as many datasets as its argument says, and all the others only when it is told to end.
//! Honest report: `timeout`; what comes after the deadline is a late row and no score.

use nix::sys::signal::{SigSet, Signal};
use proctor_tests::talk::{Talk, datasets_first, sleep_for_ever};

fn main() {
    let mut polite = SigSet::empty();
    polite.add(Signal::SIGTERM);
    polite.thread_block().expect("signals can be blocked");
    let mut talk = Talk::open("deathbed");
    if talk.behave_for(datasets_first())
        && let Some(asked) = talk.next_dataset()
    {
        polite.wait().expect("a signal can be waited for");
        asked.answer();
        sleep_for_ever();
    }
}
