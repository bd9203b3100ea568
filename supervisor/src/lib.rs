//! Everything that acts: rooms, clocks, run directories and commands.

pub mod attempt;
pub mod cli;
pub mod error;
pub mod room;
pub mod rundir;
pub mod schedule;
