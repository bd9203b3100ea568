//! Scores everything correctly and writes down all it can see: what it received, its arguments, environment, working
//! directory, open descriptors and process status. It writes to stderr, the one place
//! that outlives every kind of room.
//! Honest report: `completed`, a score for everything.

use std::fmt::Write as _;
use std::io::Write as _;

use proctor_tests::talk::Talk;

fn main() {
    let mut talk = Talk::open("recorder");
    talk.behave();
    let mut seen = talk.received.concat();
    for (name, value) in std::env::vars() {
        writeln!(seen, "environment {name}={value}").expect("text can be written");
    }
    let here = std::env::current_dir().expect("there is a working directory");
    writeln!(seen, "working directory {}", here.display()).expect("text can be written");
    for entry in std::fs::read_dir(&here).into_iter().flatten().flatten() {
        writeln!(seen, "file {}", entry.path().display()).expect("text can be written");
    }
    for entry in std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
    {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        writeln!(
            seen,
            "descriptor {} {}",
            entry.file_name().display(),
            target.display()
        )
        .expect("text can be written");
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines() {
        writeln!(seen, "status {line}").expect("text can be written");
    }
    std::io::stderr()
        .write_all(seen.as_bytes())
        .expect("the record can be written");
}
