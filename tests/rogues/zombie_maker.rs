//! Scores everything correctly beside a hundred children that ended and were never waited for.
//! Honest report: `completed`; no leaked process, for the dead are not alive.

use std::io::Read;
use std::process::Stdio;

use proctor_tests::misdeed::{again, part};
use proctor_tests::talk::Talk;

fn main() {
    if part().is_some() {
        return;
    }
    let mut all = Vec::new();
    for _ in 0..100 {
        let mut child = again("die")
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child can be started");
        let mut pipe = child.stdout.take().expect("it has a pipe");
        pipe.read_to_string(&mut String::new()).expect("it ends");
        all.push(child);
    }
    Talk::open("zombie_maker").behave();
    std::process::exit(0);
}
