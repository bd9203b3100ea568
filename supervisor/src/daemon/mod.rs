//! The daemon: a queue of runs, conducted by the same library as `run`, seen and steered over HTTP.

pub mod api;
pub mod auth;
pub mod client;
pub mod conduct;
pub mod confine;
pub mod listen;
pub mod metrics;
pub mod page;
pub mod places;
pub mod queue;
pub mod read;
pub mod remark;
pub mod schedule;
pub mod serve;
pub mod state;
pub mod steer;
pub mod submit;
pub mod view;
