//! Dies of SIGSEGV, after as many datasets as its argument says.
//! Honest report: `signal(11)`; the datasets finished before count.

use nix::sys::signal::{Signal, raise};
use proctor_tests::talk::{Talk, datasets_first};

fn main() {
    if Talk::open("crasher").behave_for(datasets_first()) {
        // The first one is caught by the handler that Rust installs against stack overflows; it steps aside and the
        // next one kills.
        for _ in 0..2 {
            raise(Signal::SIGSEGV).expect("a signal can be raised");
        }
    }
}
