//! Rooms: where a worker sits. A room can be emptied completely, and says what it is.

mod isolation;
mod probe;
mod spec;
pub mod stage;

pub use isolation::{Guard, Isolation, Rung, UnknownRung};
pub use probe::{Probe, probe};
pub use spec::RoomSpec;
