//! Methods: the methods file, effective configurations, identities and eligibility.

use std::path::{Path, PathBuf};

use crate::canonical::Value;
use crate::frozen::{DatasetEntry, Protocol};
use crate::input::InputError;

/// Why a methods file is refused.
pub type MethodError = InputError;

/// A method: one identified configuration under a display name.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    /// The display name; not part of the identity.
    pub name: String,
    /// The method id: SHA-256 of `configuration`.
    pub id: String,
    /// The effective configuration that is hashed.
    pub configuration: Value,
    /// The row of a bundle's `manifest.algorithms`; `algorithm_path` is null in it.
    pub manifest_entry: Value,
    /// What runs it.
    pub kind: MethodKind,
}

/// What runs a method.
#[derive(Debug, Clone, PartialEq)]
pub enum MethodKind {
    /// The built-in worker.
    Builtin,
    /// A program of the user.
    Program(Program),
    /// Identified, but nothing here can run it; the reason.
    Unsupported(String),
}

/// A program as a method (design section 8).
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// The command with absolute paths for the executable and for every argument that is a declared file.
    pub command: Vec<String>,
    /// The executable, absolute; links are not followed, since an interpreter may find its home by its own path.
    pub executable: PathBuf,
    /// The declared files, absolute, in the order declared.
    pub files: Vec<PathBuf>,
    /// Options for the worker.
    pub options: Value,
    /// Names of environment variables to pass on.
    pub env: Vec<String>,
}

/// Reads a methods file: a list, or an object with `algorithms`.
///
/// # Errors
/// The file cannot be read, is not JSON, or breaks a rule of specs/matheel.md section c or design section 8.
pub fn load_methods(path: &Path) -> Result<Vec<Method>, MethodError> {
    let _ = path;
    Ok(Vec::new())
}

impl Method {
    /// Why the method is declared not to apply to a dataset; `None` when it applies.
    pub fn exclusion(&self, dataset: &DatasetEntry) -> Option<String> {
        let _ = dataset;
        None
    }

    /// Checks what a methods file says of a protocol: excluded datasets must exist.
    ///
    /// # Errors
    /// An exclusion that names no dataset of the protocol.
    pub fn check_against(&self, protocol: &Protocol) -> Result<(), MethodError> {
        let _ = protocol;
        Ok(())
    }
}
