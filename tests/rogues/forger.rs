//! Claims a dataset is done without a single score, after as many honest ones as its argument says.
//! Honest report: `protocol_error`, the missing scores; the datasets finished before count.

use proctor_tests::talk::{Talk, datasets_first, sleep_for_ever};

fn main() {
    let mut talk = Talk::open("forger");
    if talk.behave_for(datasets_first())
        && let Some(asked) = talk.next_dataset()
    {
        asked.done();
        sleep_for_ever();
    }
}
