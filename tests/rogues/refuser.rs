//! Cannot score its first dataset, says so, and scores the others.
//! Honest report: `dataset_errors`, 1 of 3, with its own words; the others count.

use proctor_tests::talk::{Talk, say};
use proctor_wire::FromWorker;

fn main() {
    let mut talk = Talk::open("refuser");
    if let Some(asked) = talk.next_dataset() {
        say(&FromWorker::DatasetError {
            dataset: asked.dataset,
            error: "ValueError: these texts are not for me".into(),
        });
    }
    talk.behave();
}
