//! Where the tests find vectors made with the real systems; they are not part of this repository.
#![allow(clippy::print_stdout, reason = "a test that skips says so")]

use std::path::{Path, PathBuf};

use crate::canonical::{Value, read};

/// A file or folder of the vectors: below `PROCTOR_SHARED`, else below `shared` beside the repository. `None`, with a
/// line that says so, when it is not there.
pub(crate) fn shared(relative: &str) -> Option<PathBuf> {
    let base = std::env::var_os("PROCTOR_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        PathBuf::from,
    );
    let path = base.join(relative);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: no {} (set PROCTOR_SHARED)", path.display());
    None
}

/// A JSON document of the vectors.
pub(crate) fn shared_json(relative: &str) -> Option<Value> {
    let path = shared(relative)?;
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Some(read(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}
