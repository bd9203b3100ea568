//! Sleeps for ever, after as many datasets as its argument says.
//! Honest report: `timeout`; the datasets finished before count.

use proctor_tests::talk::{Talk, datasets_first, sleep_for_ever};

fn main() {
    if Talk::open("sleeper").behave_for(datasets_first()) {
        sleep_for_ever();
    }
}
