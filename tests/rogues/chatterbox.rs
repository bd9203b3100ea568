//! Writes 64 MiB to stderr and scores everything correctly.
//! Honest report: `completed`; the first and the last of what it said is kept, and how much is not.

use std::io::Write;

use proctor_tests::talk::Talk;

fn main() {
    let line = [b"chatter ".repeat(127).as_slice(), b"\n"].concat();
    let mut stderr = std::io::stderr().lock();
    for _ in 0..(64 << 20) / line.len() {
        stderr
            .write_all(&line)
            .expect("stderr takes what is written");
    }
    writeln!(stderr, "the last words").expect("stderr takes what is written");
    Talk::open("chatterbox").behave();
}
