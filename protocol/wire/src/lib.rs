//! Messages between the supervisor and a worker.
//!
//! One JSON object a line, UTF-8, LF, at most [`limits::MAX_LINE_BYTES`] a line in both directions.
//! The conversation, in order:
//!
//! 1. supervisor: [`ToWorker::Hello`]; worker: [`FromWorker::Hello`].
//! 2. For each dataset the supervisor sends [`ToWorker::Dataset`], its texts, for pairs the items, then
//!    [`ToWorker::Score`]. The worker answers with [`FromWorker::Scores`] batches that cover the items in order
//!    without gaps, then [`FromWorker::DatasetDone`]; or with [`FromWorker::DatasetError`].
//!    The next dataset comes only when this one is durable.
//! 3. supervisor: [`ToWorker::Finish`]; worker: [`FromWorker::Done`], then it exits with code 0.
//!
//! This crate knows no labels, no file names and no dataset names; nothing that depends on it alone can leak one.

pub mod blind;
pub mod builtin;
pub mod limits;
pub mod line;
pub mod message;
pub mod order;

pub use blind::BlindDataset;
pub use message::{Family, FromWorker, ToWorker, WireError};
pub use order::Order;

/// The version of the conversation that this build speaks.
pub const PROTOCOL_VERSION: u32 = 1;
