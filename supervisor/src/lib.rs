//! Everything that acts: rooms, clocks, run directories and commands.

pub mod attempt;
pub mod bundle;
pub mod cli;
pub mod command;
pub mod daemon;
pub mod error;
#[cfg(test)]
mod faults;
pub mod load;
pub mod measure;
pub mod merge;
pub mod render;
pub mod room;
pub mod run;
pub mod rundir;
pub mod schedule;
