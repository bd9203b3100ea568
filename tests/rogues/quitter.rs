//! Exits with code 0 in the middle of a dataset, after as many whole ones as its argument says.
//! Honest report: `incomplete`, with the datasets finished before.

use proctor_tests::talk::{Talk, datasets_first};

fn main() {
    let mut talk = Talk::open("quitter");
    if talk.behave_for(datasets_first())
        && let Some(asked) = talk.next_dataset()
    {
        asked.send(0..asked.scores.len() / 2);
    }
}
