//! What the end-to-end tests and the misbehaving workers of `rogues/` share.

pub mod misdeed;
pub mod talk;
