//! One method in one process: the serving loop and the built-in scorers.
//!
//! A worker reads messages of [`proctor_wire`] from its input, scores what it is asked and writes the scores. It sees
//! texts by number and nothing else: no file names, labels or dataset names. It depends on the wire alone.

pub mod corpus;
pub mod kernel;
pub mod metric;
pub mod parallel;
pub mod plan;
pub mod questions;
pub mod scorer;
pub mod serve;
pub mod simd;
pub mod text;

pub use scorer::Scorer;
pub use serve::serve;
