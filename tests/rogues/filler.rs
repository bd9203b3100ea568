//! Writes one file after the other until the system refuses, and scores everything correctly.
//! Honest report: `completed` where the room has a disk of its own, and no more than its size was written; where it is
//! only watched, `resource_limit(disk)` when it was seen in time.

use proctor_tests::misdeed::tell;
use proctor_tests::talk::Talk;

/// So many files of a mebibyte at most, should nobody refuse.
const BOUND: u32 = 48;

fn main() {
    let block = vec![1_u8; 1 << 20];
    let places = ["/tmp", "/dev/shm", "."];
    let mut written = 0;
    for number in 0..BOUND {
        let wrote = places
            .iter()
            .any(|place| std::fs::write(format!("{place}/fill-{number}"), &block).is_ok());
        if !wrote {
            break;
        }
        written += 1;
    }
    tell(&format!("written: {written} MiB"));
    Talk::open("filler").behave();
}
