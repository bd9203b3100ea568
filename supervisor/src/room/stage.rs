//! The stage: this binary, started again, as the init or the guardian of a room.

/// Must be the first thing `main` does. Returns at once in a normal start; when this process was started as the stage
/// of a room, it does that work and never returns.
pub fn main_if_stage() {}
