//! What is asked of a room.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_protocol::method::SEARCH_PATH;

use super::{Honest, Kernel, Rung};

/// What a room may use. `None` sets no limit. What could not be enforced on this machine stands in the
/// [`super::Isolation`] of the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory of the whole room, what lies in its scratch directory included, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processes and threads in the room at the same time.
    pub processes: Option<u32>,
    /// Everything the room can write to disk together, in bytes; no single file can be larger either.
    pub scratch_bytes: Option<u64>,
    /// Standard output and standard error together, in bytes. Standard output has a limit of its own besides, which
    /// grows with the scores that are asked for.
    pub output_bytes: Option<u64>,
}

impl Default for Limits {
    /// No memory limit, 4096 processes, 4 GiB of scratch, no limit of output beyond the one of the conversation.
    fn default() -> Self {
        Self {
            memory_bytes: None,
            processes: Some(4096),
            scratch_bytes: Some(4 << 30),
            output_bytes: None,
        }
    }
}

/// Which protections are wanted beyond those that every room has. All are, unless somebody says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is chosen by itself")]
pub struct Confinement {
    /// No network, not even the host's own addresses.
    pub network: bool,
    /// Everything but the scratch directory is read-only, temporary directories are private, and what
    /// [`RoomSpec::hidden`] names cannot be seen.
    pub file_system: bool,
    /// No system calls that no method needs: new namespaces, kernel keys, `io_uring`, other processes' memory and so on.
    pub system_calls: bool,
    /// A user of its own. Only root can give one.
    pub user: bool,
}

impl Default for Confinement {
    /// Everything.
    fn default() -> Self {
        Self {
            network: true,
            file_system: true,
            system_calls: true,
            user: true,
        }
    }
}

/// The order for one room: what runs in it and what it may have. Everything else the room decides by itself, and
/// says what it did in an [`super::Isolation`].
#[derive(Debug, Clone)]
pub struct RoomSpec {
    /// The program, an absolute path or a path relative to the supervisor's directory, and its arguments.
    pub command: Vec<OsString>,
    /// The whole environment of the worker; nothing is inherited. [`super::environment`] makes the usual one.
    pub env: Vec<(OsString, OsString)>,
    /// The worker's private directory and its working directory. It is made with mode 0700 and must not
    /// exist before; it is removed with everything in it when the room is empty.
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
    /// What the room may use.
    pub limits: Limits,
    /// Which protections are wanted.
    pub confinement: Confinement,
    /// Files and directories the worker must not see: gold data, the run directory. What does not exist is left out.
    pub hidden: Vec<PathBuf>,
    /// Files and directories the worker must be able to read, wherever they lie: the executable's prefix, declared files.
    /// They are read-only. Without this, what lies in a temporary directory, or in one the worker's user cannot enter, is
    /// not there. The program itself is always visible.
    pub visible: Vec<PathBuf>,
    /// The kernel whose answers the room believes; another than [`Honest`] only in tests.
    pub kernel: &'static dyn Kernel,
}

impl RoomSpec {
    /// 256 KiB of standard error are kept unless the caller says otherwise.
    pub const DEFAULT_STDERR_CAP: u64 = 256 << 10;

    /// A room with the defaults: empty environment, no core restriction, best rung, no grace, the usual limits, every
    /// protection, nothing hidden but temporary directories.
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
            limits: Limits::default(),
            confinement: Confinement::default(),
            hidden: Vec::new(),
            visible: Vec::new(),
            kernel: &Honest,
        }
    }
}

/// The usual environment of a worker: a fixed search path, C locale in UTF-8, home and temporary files in its scratch
/// directory, and those variables of our own that `passed` names.
pub fn environment(scratch: &Path, passed: &[String]) -> Vec<(OsString, OsString)> {
    let scratch = scratch.as_os_str();
    let search_path = SEARCH_PATH.join(":");
    let fixed: [(&str, &OsStr); 6] = [
        ("PATH", OsStr::new(&search_path)),
        ("LANG", OsStr::new("C.UTF-8")),
        ("LC_ALL", OsStr::new("C.UTF-8")),
        ("TZ", OsStr::new("UTC")),
        ("HOME", scratch),
        ("TMPDIR", scratch),
    ];
    let mut env: Vec<(OsString, OsString)> = fixed
        .into_iter()
        .filter(|(name, _)| !passed.iter().any(|other| other == name))
        .map(|(name, value)| (name.into(), value.to_owned()))
        .collect();
    for name in passed {
        if let Some(value) = std::env::var_os(name) {
            env.push((name.into(), value));
        }
    }
    env
}

impl RoomSpec {
    /// The file to execute: an absolute path, or where the worker's search path has it.
    pub(super) fn program(&self) -> Result<PathBuf, String> {
        let name = self.command.first().ok_or("the command is empty")?;
        if name.as_bytes().contains(&b'/') {
            return std::path::absolute(name)
                .map_err(|error| format!("{}: {error}", name.display()));
        }
        let path = self
            .env
            .iter()
            .find(|(variable, _)| variable == "PATH")
            .map_or_else(|| SEARCH_PATH.join(":").into(), |(_, value)| value.clone());
        std::env::split_paths(&path)
            .map(|directory| directory.join(name))
            .find(|file| file.is_file())
            .ok_or_else(|| format!("{}: not found in {}", name.display(), path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_an_allow_list() {
        let env = environment(Path::new("/s"), &["CARGO".into(), "SURELY_NOT_SET".into()]);
        let of = |name: &str| {
            env.iter()
                .filter(|(variable, _)| variable == name)
                .map(|(_, value)| value.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(of("HOME"), ["/s"]);
        assert_eq!(
            of("CARGO").len(),
            usize::from(std::env::var_os("CARGO").is_some())
        );
        assert!(of("SURELY_NOT_SET").is_empty());
        assert!(of("CARGO_MANIFEST_DIR").is_empty());
    }

    #[test]
    fn a_bare_name_is_looked_up_in_the_path_of_the_worker() {
        let mut spec = RoomSpec::new(vec!["sh".into()], "/s", "/l", "r");
        assert!(spec.program().unwrap().ends_with("sh"));
        spec.env = vec![("PATH".into(), "/nowhere".into())];
        assert!(spec.program().is_err());
        spec.command = vec!["/any/thing".into()];
        assert_eq!(spec.program(), Ok("/any/thing".into()));
        spec.command.clear();
        assert!(spec.program().is_err());
    }
}
