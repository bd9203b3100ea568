//! Tries to read and list the places its arguments name, from the root on, then scores everything.
//! Honest report: `completed`; the answers and the run directory were not to be seen.

use proctor_tests::misdeed::tried;
use proctor_tests::talk::Talk;

fn main() {
    for place in std::env::args().skip(1) {
        let place = format!("/{place}");
        tried(&format!("read {place}"), std::fs::read(&place));
        let listed = std::fs::read_dir(&place).and_then(|mut entries| {
            entries
                .next()
                .unwrap_or_else(|| Err(std::io::Error::other("there is nothing in it")))
        });
        tried(&format!("list {place}"), listed);
    }
    Talk::open("spy").behave();
}
