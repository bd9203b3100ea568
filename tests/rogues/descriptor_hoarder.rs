//! Opens files until the system refuses, keeps them all, and scores everything correctly.
//! Honest report: `completed`; descriptors are its own affair.

use std::fs::File;

use proctor_tests::misdeed::tell;
use proctor_tests::talk::Talk;

fn main() {
    let mut kept = Vec::new();
    while kept.len() < 100_000 {
        match File::open("/dev/null") {
            Ok(file) => kept.push(file),
            Err(error) => {
                tell(&format!("refused: {error}"));
                break;
            }
        }
    }
    Talk::open("descriptor_hoarder").behave();
}
