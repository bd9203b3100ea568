//! Our own strict, bounded JSON reader, the writers in Python's form, and the digest.

mod python;
mod read;
mod share;
#[cfg(test)]
mod tests;
mod value;
mod write;

pub use python::{
    casefold, caseless, is_alnum, is_unseen, is_word_char, py_float, py_isspace, py_lower, py_strip,
};
pub use read::{Limits, ReadError, read, read_streaming, read_with};
pub use value::{Object, Value};
pub use write::{canonical, digest, float_text, hex, is_sha256, pretty, sha256_hex, write_pretty};
pub(crate) use write::{push_float, push_raw};
