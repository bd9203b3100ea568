//! Where a daemon keeps its state and listens, and where clients look for it, when nobody says.

use crate::error::Error;
use std::path::{Path, PathBuf};

/// The name of the socket.
const SOCKET: &str = "proctor.sock";

fn variable(name: &str) -> Option<PathBuf> {
    let value = PathBuf::from(std::env::var_os(name)?);
    value.is_absolute().then_some(value)
}

/// The state directory: as named, or `proctor` in `XDG_STATE_HOME` or `~/.local/state`.
///
/// # Errors
/// Nothing tells where.
pub fn state(named: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(named) = named {
        return Ok(named.to_path_buf());
    }
    let home = variable("HOME").map(|home| home.join(".local/state"));
    let base = variable("XDG_STATE_HOME").or(home);
    base.map(|base| base.join("proctor")).ok_or_else(|| {
        Error::input("--state DIR: name the state directory; neither XDG_STATE_HOME nor HOME tells")
    })
}

/// Where a daemon listens: as named by `--socket` or `PROCTOR_SOCKET`, or in the state directory where one is named, or
/// where clients look.
///
/// # Errors
/// Nothing tells where.
pub fn daemon_socket(named: Option<&Path>, state: Option<&Path>) -> Result<PathBuf, Error> {
    let said = named.map(Path::to_path_buf).or_else(said);
    match (said, state) {
        (Some(socket), _) => Ok(socket),
        (None, Some(state)) => Ok(state.join(SOCKET)),
        (None, None) => usual(),
    }
}

/// Where a client looks: as named by `--socket` or `PROCTOR_SOCKET`, or in `XDG_RUNTIME_DIR`, or in the usual state
/// directory.
///
/// # Errors
/// Nothing tells where.
pub fn client_socket(named: Option<&Path>) -> Result<PathBuf, Error> {
    match named.map(Path::to_path_buf).or_else(said) {
        Some(socket) => Ok(socket),
        None => usual(),
    }
}

fn said() -> Option<PathBuf> {
    let said = std::env::var_os("PROCTOR_SOCKET").filter(|said| !said.is_empty());
    said.map(PathBuf::from)
}

fn usual() -> Result<PathBuf, Error> {
    match variable("XDG_RUNTIME_DIR") {
        Some(runtime) => Ok(runtime.join(SOCKET)),
        None => Ok(state(None)?.join(SOCKET)),
    }
}
