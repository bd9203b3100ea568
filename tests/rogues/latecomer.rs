//! Answers one score every tenth of a second, so that its rows are still coming when the budget is used up.
//! Honest report: `timeout`; the dataset under way does not count.

use std::time::Duration;

use proctor_tests::talk::Talk;

fn main() {
    let mut talk = Talk::open("latecomer");
    while let Some(asked) = talk.next_dataset() {
        for item in 0..asked.scores.len() {
            std::thread::sleep(Duration::from_millis(100));
            asked.send(item..item + 1);
        }
        asked.done();
    }
}
