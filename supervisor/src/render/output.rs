//! Writing to stdout. A reader who leaves early (`proctor status ... | head -1`) ends the output, not the command.

use crate::error::Error;
use proctor_protocol::canonical::{Value, pretty};
use std::io::{self, Write};

/// Writes text to stdout.
///
/// # Errors
/// Writing failed for another reason than a closed pipe.
pub fn print(text: &str) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Output(error)),
        _ => Ok(()),
    }
}

/// Writes a JSON document to stdout: two-space indent, sorted keys, a final newline.
///
/// # Errors
/// As [`print()`].
pub fn print_json(value: &Value) -> Result<(), Error> {
    print(&(pretty(value) + "\n"))
}

/// Writes a line to stderr. Nothing can be done when even that fails.
pub fn tell(line: &str) {
    let mut text = line.to_owned();
    text.push('\n');
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
