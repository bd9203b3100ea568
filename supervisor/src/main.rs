//! proctor.
fn main() {}
