//! What two parties must agree on: canonical JSON, datasets, protocols, methods, metrics, reports and bundles.
//!
//! This crate reads files it is given. It has no clock, process, network or environment, and it writes nothing.

pub mod bundle;
pub mod canonical;
mod coerce;
pub mod dataset;
pub mod freeze;
pub mod frozen;
pub mod input;
pub mod method;
pub mod metric;
pub mod outcome;
pub mod public_metadata;
pub mod report;

#[cfg(test)]
mod vectors;
