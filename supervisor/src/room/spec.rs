//! What is asked of a room.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::Rung;

/// The order for one room: what runs in it and what it may have. Everything else the room decides by itself, and
/// says what it did in an [`super::Isolation`].
#[derive(Debug, Clone)]
pub struct RoomSpec {
    /// The program, an absolute path or a path relative to the supervisor's directory, and its arguments.
    pub command: Vec<OsString>,
    /// The whole environment of the worker; nothing is inherited. [`super::environment`] makes the usual one.
    pub env: Vec<(OsString, OsString)>,
    /// The worker's private directory and its working directory. It is made with mode 0700 when absent, and removed
    /// with everything in it when the room is empty.
    pub scratch: PathBuf,
    /// The file that gets the worker's standard error.
    pub stderr_log: PathBuf,
    /// How many bytes of standard error are kept: the first half of it and the last half.
    pub stderr_cap: u64,
    /// The cores the worker may use; empty for no restriction.
    pub cores: Vec<usize>,
    /// The run this room belongs to. It is part of the names of control groups, so that what a dead supervisor left
    /// is found again; only ASCII letters, digits, `-` and `_` of it are used there.
    pub run_id: String,
    /// The containment rung, or `None` for the best one of this machine.
    pub containment: Option<Rung>,
    /// Time between SIGTERM and SIGKILL at the deadline. Zero sends no SIGTERM.
    pub grace: Duration,
}

impl RoomSpec {
    /// 256 KiB of standard error are kept unless the caller says otherwise.
    pub const DEFAULT_STDERR_CAP: u64 = 256 << 10;

    /// A room with the defaults: empty environment, no core restriction, best rung, no grace.
    pub fn new(
        command: Vec<OsString>,
        scratch: impl Into<PathBuf>,
        stderr_log: impl Into<PathBuf>,
        run_id: impl Into<String>,
    ) -> Self {
        Self {
            command,
            env: Vec::new(),
            scratch: scratch.into(),
            stderr_log: stderr_log.into(),
            stderr_cap: Self::DEFAULT_STDERR_CAP,
            cores: Vec::new(),
            run_id: run_id.into(),
            containment: None,
            grace: Duration::ZERO,
        }
    }
}
