//! Rooms: where a worker sits. A room can be emptied completely, and says what it is.

mod adopted;
mod cgroup;
mod confine;
mod filter;
mod isolation;
mod kernel;
mod launch;
mod live;
mod means;
mod probe;
mod procfs;
pub mod remedy;
mod ruleset;
mod scratch;
mod slots;
mod spec;
pub mod stage;
mod sys;
mod talk;
mod trees;
mod user;
mod view;

pub use cgroup::{StaleRoom, sweep_stale_rooms};
pub use isolation::{Guard, Isolation, Rung, UnknownRung};
pub use kernel::{Honest, Kernel};
pub use launch::use_stage_program;
pub use live::Survivor;
pub(crate) use live::{Closed, Heard, Room};
pub use means::{Means, mask};
pub(crate) use probe::best_rung;
pub use probe::{Probe, probe, trial};
pub use scratch::remove_tree;
pub(crate) use slots::Counts;
pub use spec::{Confinement, Limits, RoomSpec, environment};
pub(crate) use sys::{boottime_ns, monotonic_ns, readable_bytes};
pub(crate) use talk::{Report, SETTLE};
