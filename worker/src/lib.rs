//! One method in one process.
