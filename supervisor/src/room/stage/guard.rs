//! The protections the stage sets up before it starts the worker.

use std::io;

use nix::mount::{MsFlags, mount};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::stat::{Mode, umask};
use nix::unistd::Pid;

use super::super::sys;
use super::super::talk::Order;

/// Ties this process's life to the supervisor's, before anything else.
pub(super) fn follow_supervisor(order: &Order) -> io::Result<()> {
    // A worker of the same user must not trace us or open our descriptors.
    sys::prctl(libc::PR_SET_DUMPABLE, 0)?;
    if order.rung.has_pid_namespace() {
        // Set once more: an exec that gains privileges clears what was set before it.
        sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong)
    } else if order.rung == super::super::Rung::K0 {
        Ok(())
    } else {
        sys::prctl(libc::PR_SET_CHILD_SUBREAPER, 1)
    }
}

/// Sets up what worker and stage share, and names what could not be had with the reason.
pub(super) fn set_up(order: &Order) -> Vec<(String, String)> {
    let mut missing = Vec::new();
    let mut try_out = |name: &str, result: Result<(), String>| {
        if let Err(reason) = result {
            missing.push((name.to_owned(), reason));
        }
    };
    if order.rung.has_pid_namespace() {
        try_out("private_proc", private_proc());
    }
    if !order.cores.is_empty() {
        try_out("cpu_set", pin(&order.cores));
    }
    try_out(
        "core_dumps",
        setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(|error| error.to_string()),
    );
    try_out(
        "no_new_privileges",
        sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1).map_err(|error| error.to_string()),
    );
    umask(Mode::from_bits_truncate(0o077));
    missing
}

/// A /proc that shows the room and nothing else.
fn private_proc() -> Result<(), String> {
    let none: Option<&str> = None;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(none, "/", none, private, none).map_err(|error| format!("private mounts: {error}"))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, none)
        .map_err(|error| format!("mount /proc: {error}"))
}

fn pin(cores: &[usize]) -> Result<(), String> {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core)
            .map_err(|error| format!("core {core}: {error}"))?;
    }
    sched_setaffinity(Pid::from_raw(0), &set).map_err(|error| format!("cores {cores:?}: {error}"))
}
