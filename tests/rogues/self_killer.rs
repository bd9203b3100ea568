//! Kills itself with SIGKILL, after as many datasets as its argument says.
//! Honest report: `signal(9)`, not a `timeout` and not out of memory; the datasets finished before count.

use nix::sys::signal::{Signal, raise};
use proctor_tests::talk::{Talk, datasets_first};

fn main() {
    if Talk::open("self_killer").behave_for(datasets_first()) {
        raise(Signal::SIGKILL).expect("a signal can be raised");
    }
}
