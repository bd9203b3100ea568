//! Closes its stdout after as many datasets as its argument says, and works on in silence.
//! Honest report: `timeout`; the end of a pipe is not the end of a worker.

use proctor_tests::talk::{Talk, datasets_first, sleep_for_ever};

fn main() {
    if Talk::open("closer").behave_for(datasets_first()) {
        nix::unistd::close(1).expect("stdout can be closed");
        sleep_for_ever();
    }
}
