//! Claims to have finished more items than there are, and scores everything correctly.
//! Honest report: `completed`; what it claims about itself counts for nothing.

use proctor_tests::talk::{Talk, say};
use proctor_wire::FromWorker;

fn main() {
    let mut talk = Talk::open("boaster");
    while let Some(asked) = talk.next_dataset() {
        say(&FromWorker::Progress { items: u64::MAX });
        asked.answer();
    }
    say(&FromWorker::Done {});
}
