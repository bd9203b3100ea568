//! proctor-worker.
fn main() {}
