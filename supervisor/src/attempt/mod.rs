//! One attempt: one worker, one conversation, one verdict.

mod control;
mod counted;
mod ending;
mod exam;
mod feed;
mod machine;
mod pace;
mod shell;
mod stderr_log;

use std::time::Duration;

use proctor_protocol::outcome::Outcome;

pub use control::{Control, Stop};
pub use ending::{Ending, Facts, Pause, WaitStatus};
pub use exam::{Exam, Progress};

#[cfg(test)]
pub(crate) use stderr_log::StderrLog;

use crate::room::{Isolation, Room, RoomSpec, best_rung};

/// Runs one attempt: makes the room, puts the questions, empties the room, gives the verdict. Blocks until the room is
/// empty. `budget` runs from spawn to verdict.
///
/// Writing to a worker that closed its input relies on SIGPIPE being ignored in this process, which is what Rust
/// programs do unless they change it.
pub fn run(room: &RoomSpec, budget: Duration, exam: &mut dyn Exam, control: &Control) -> Ending {
    let not_started = |outcome| Ending::not_started(outcome, Isolation::none());
    if let Some(stop) = control.stop() {
        return not_started(if stop.cancelled {
            Outcome::Cancelled
        } else {
            Outcome::Interrupted
        });
    }
    let rung = match room.containment.map_or_else(best_rung, Ok) {
        Ok(rung) => rung,
        Err(reason) => return not_started(Outcome::Infrastructure(reason)),
    };
    match Room::open(room, rung) {
        Ok(stands) => shell::converse(stands, room, budget, exam, control),
        Err(error) => not_started(Outcome::Infrastructure(error.to_string())),
    }
}
