//! The writers in Python's form (specs/matheel.md section 0) and the digest.

use super::Value;

/// A value that has no canonical form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalError {
    /// NaN or an infinity.
    #[error("a number that is not finite has no canonical form")]
    NotFinite,
}

/// The canonical text: sorted keys, no spaces, non-ASCII raw.
pub fn canonical(_value: &Value) -> String {
    String::new()
}

/// The lower-case hex SHA-256 of the canonical text.
pub fn digest(_value: &Value) -> String {
    String::new()
}

/// The text Python's `json.dumps(value, indent=2, sort_keys=True)` gives: ASCII-escaped, no final newline.
pub fn pretty(_value: &Value) -> String {
    String::new()
}

/// Python's `repr` of a finite double.
pub fn float_text(_value: f64) -> String {
    String::new()
}

/// Lower-case hex SHA-256 of bytes.
pub fn sha256_hex(_bytes: &[u8]) -> String {
    String::new()
}
