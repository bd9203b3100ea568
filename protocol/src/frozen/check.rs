//! Re-validation of a protocol, in the order of specs/matheel.md section b.

use std::path::Path;

use super::{Protocol, ProtocolError};
use crate::canonical::Value;
use crate::input::Refusal;

pub(super) fn check(value: &Value, base: Option<&Path>) -> Result<Protocol, ProtocolError> {
    let _ = base;
    Err(Refusal::new("", format!("is {}, not a protocol", value.type_name())).into())
}
