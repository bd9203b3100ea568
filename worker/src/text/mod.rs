//! Everything a scorer needs of one text, made once: characters by number, preprocessing, tokens.

pub mod advanced;
pub mod alphabet;
pub mod class;
pub mod comments;
mod keywords;
pub mod preprocess;
pub mod tokens;

pub use alphabet::{Alphabet, Symbol};
pub use preprocess::preprocess;
