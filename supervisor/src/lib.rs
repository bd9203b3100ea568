//! Everything that acts: rooms, clocks, run directories and commands.

pub mod attempt;
pub mod room;
