//! The real Matheel.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::skip;

/// The Python that has Matheel, if there is one; says what is skipped if not.
pub fn python(test: &str) -> Option<PathBuf> {
    let python = std::env::var_os("PROCTOR_MATHEEL_PYTHON").map(PathBuf::from);
    if python.is_none() {
        skip(
            test,
            "there is no Matheel (PROCTOR_MATHEEL_PYTHON is not set; ./test sets it)",
        );
    }
    python
}

/// Runs a script of ours with Matheel, arguments in `sys.argv`, and reads the JSON it prints.
pub fn ask(python: &Path, script: &str, arguments: &[OsString]) -> Value {
    let output = Command::new(python)
        .arg("-c")
        .arg(script)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("python can be started");
    assert!(
        output.status.success(),
        "{script}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("the script prints JSON")
}

/// Runs the `matheel` command.
pub fn command(python: &Path, arguments: &[OsString]) -> std::process::Output {
    Command::new(python.with_file_name("matheel"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("matheel can be started")
}
