//! The daemon: a queue of runs, conducted by the same library as `run`, seen and steered over HTTP.

pub mod page;
pub mod view;
