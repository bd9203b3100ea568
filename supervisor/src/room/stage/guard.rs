//! The protections the stage sets up before it starts the worker.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::stat::{Mode, umask};
use nix::unistd::Pid;

use super::super::sys;
use super::super::talk::Order;
use super::super::trees;
use super::mounts;

/// Ties this process's life to the supervisor's, before anything else.
pub(super) fn follow_supervisor(order: &Order) -> io::Result<()> {
    if order.rung.has_pid_namespace() {
        // Set once more: an exec that gains privileges clears what was set before it.
        sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong)
    } else if order.rung == super::super::Rung::K0 {
        Ok(())
    } else {
        sys::prctl(libc::PR_SET_CHILD_SUBREAPER, 1)
    }
}

/// Sets up what worker and stage share. Gives back the protections that could not be had, with the reason; what the
/// machine was seen to give before, and does not give now, is an error that names the step.
pub(super) fn set_up(order: &Order) -> Result<Vec<(String, String)>, String> {
    let mut missing = Vec::new();
    let mut try_out = |name: &str, result: Result<(), String>| {
        if let Err(reason) = result {
            missing.push((name.to_owned(), reason));
        }
    };
    if order.rung.has_pid_namespace() {
        mounts::make_private(order.view.is_some())?;
        try_out("private_proc", mounts::private_proc(order.user));
        if order.loopback {
            // Nobody but the room is there. A program that needs it and does not find it says so by itself.
            let _ = sys::raise_loopback();
        }
        // With a view, the rules are not about files.
        if let Some(ruleset) = order.ruleset.filter(|_| order.view.is_none()) {
            // The rules were made for the host's /proc; this one is another file system.
            File::open("/proc")
                .and_then(|proc| trees::allow_using(ruleset, proc.as_fd()))
                .map_err(|error| format!("the landlock rule for /proc: {error}"))?;
        }
        if let Some(view) = &order.view {
            mounts::apply(view, &order.scratch, order.user)?;
        }
    }
    if !order.cores.is_empty() {
        try_out("cpu_set", pin(&order.cores));
    }
    setrlimit(Resource::RLIMIT_CORE, 0, 0)
        .map_err(|error| format!("switching core dumps off: {error}"))?;
    sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1)
        .map_err(|error| format!("refusing new privileges: {error}"))?;
    umask(Mode::from_bits_truncate(0o077));
    Ok(missing)
}

fn pin(cores: &[usize]) -> Result<(), String> {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core)
            .map_err(|error| format!("core {core}: {error}"))?;
    }
    sched_setaffinity(Pid::from_raw(0), &set).map_err(|error| format!("cores {cores:?}: {error}"))
}

/// The cores a process may use, as the kernel says.
pub(super) fn cores_of(pid: i32) -> Option<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(pid)).ok()?;
    let all = 0..CpuSet::count();
    Some(
        all.filter(|core| set.is_set(*core).unwrap_or(false))
            .collect(),
    )
}
