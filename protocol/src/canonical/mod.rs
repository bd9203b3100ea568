//! Our own strict, bounded JSON reader, the writers in Python's form, and the digest.

mod read;
mod value;
mod write;

pub use read::{Limits, ReadError, read, read_with};
pub use value::{Object, Value};
pub use write::{CanonicalError, canonical, digest, float_text, pretty, sha256_hex};
