//! Exits with code 137, which shells use for a process that was killed.
//! Honest report: `exit(137)`, not a signal and not out of memory.

use proctor_tests::talk::{Talk, datasets_first};

fn main() {
    if Talk::open("impostor").behave_for(datasets_first()) {
        std::process::exit(137);
    }
}
