//! Scores everything correctly, each dataset in as many milliseconds as its first argument says, and writes down on stderr what it
//! was asked: one line a dataset with a digest of its texts and items, which is the same whenever that dataset is asked.
//! Honest report: `completed`, a score for everything.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use proctor_tests::misdeed::tell;
use proctor_tests::talk::{Talk, datasets_first, say};
use proctor_wire::FromWorker;

fn main() {
    let milliseconds = datasets_first();
    let mut talk = Talk::open("plodder");
    let mut heard = talk.received.len();
    while let Some(asked) = talk.next_dataset() {
        let mut digest = DefaultHasher::new();
        for line in &talk.received[heard..] {
            // The number of the dataset differs from attempt to attempt.
            let number = format!("\"dataset\":{}", asked.dataset);
            line.replace(&number, "").hash(&mut digest);
        }
        heard = talk.received.len();
        tell(&format!("asked {:016x}", digest.finish()));
        std::thread::sleep(Duration::from_millis(u64::from(milliseconds)));
        asked.answer();
    }
    say(&FromWorker::Done {});
}
