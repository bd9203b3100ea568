//! One attempt: one worker, one conversation, one verdict.

mod control;
mod ending;
mod exam;

use std::time::Duration;

use proctor_protocol::outcome::Outcome;

pub use control::{Control, Stop};
pub use ending::{Ending, Facts, WaitStatus};
pub use exam::{Exam, Progress};

use crate::room::{Isolation, RoomSpec};

/// Runs one attempt: makes the room, puts the questions, empties the room, gives the verdict. Blocks until the room is
/// empty. `budget` runs from spawn to verdict.
pub fn run(room: &RoomSpec, budget: Duration, exam: &mut dyn Exam, control: &Control) -> Ending {
    let _ = (room, budget, exam.count(), control.stop());
    Ending::not_started(
        Outcome::Infrastructure("rooms are not built yet".into()),
        Isolation::none(),
    )
}
