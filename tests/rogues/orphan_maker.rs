//! Makes a hundred orphans that end by themselves, and scores everything correctly.
//! Honest report: `completed`; no leaked process, and no dead one left for others to reap.

use std::io::Read;
use std::process::Stdio;

use proctor_tests::misdeed::{again, leave, part};
use proctor_tests::talk::Talk;

fn main() {
    match part().as_deref() {
        Some("parent") => {
            for _ in 0..25 {
                let mut orphan = again("orphan");
                orphan.stdout(Stdio::inherit());
                leave(orphan).expect("a child can be started");
            }
        }
        Some(_) => {}
        None => {
            for _ in 0..4 {
                let mut parent = again("parent")
                    .stdout(Stdio::piped())
                    .spawn()
                    .expect("a child can be started");
                // The orphans hold the pipe; its end is theirs.
                let mut pipe = parent.stdout.take().expect("it has a pipe");
                pipe.read_to_string(&mut String::new()).expect("they end");
                parent.wait().expect("it ends");
            }
            Talk::open("orphan_maker").behave();
        }
    }
}
