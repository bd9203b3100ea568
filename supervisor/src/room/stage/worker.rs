//! Starting the worker from the stage.

use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::super::launch::{close_from, drop_capabilities};
use super::super::sys::{self, ChildStack};
use super::super::talk::Order;

/// The worker, started.
pub(super) struct Worker {
    /// Its number in the stage's pid namespace; also its session and process group.
    pub(super) pid: i32,
    /// True when it holds no capability.
    pub(super) without_capabilities: bool,
}

struct Plan {
    program: CString,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    errno: c_int,
    dropped: bool,
}

/// Starts the worker in a session of its own. Afterwards the stage no longer holds the worker's pipes, so that their
/// other ends see when the worker lets go of them.
pub(super) fn start(order: &Order, cgroup: Option<&OwnedFd>) -> Result<Worker, String> {
    std::env::set_current_dir(&order.scratch)
        .map_err(|error| format!("{}: {error}", order.scratch.display()))?;
    let (mut arguments, mut environment) = (Vec::new(), Vec::new());
    for argument in &order.arguments {
        arguments.push(c_string(argument)?);
    }
    for (name, value) in &order.env {
        let mut variable = OsString::from(name);
        variable.push("=");
        variable.push(value);
        environment.push(c_string(&variable)?);
    }
    let mut plan = Plan {
        program: c_string(order.program.as_os_str())?,
        arguments: pointers(&arguments),
        environment: pointers(&environment),
        errno: 0,
        dropped: false,
    };
    let mut stack = ChildStack::new().map_err(|error| format!("a stack: {error}"))?;
    // SAFETY: `child_main` ends in execve or _exit and makes only plain system calls on `plan`, which outlives the call.
    let child = unsafe {
        sys::start_child(
            0,
            cgroup.map(AsFd::as_fd),
            &mut stack,
            child_main,
            (&raw mut plan).cast(),
        )
    };
    let child = child.map_err(|error| format!("clone: {error}"))?;
    if plan.errno != 0 {
        let error = io::Error::from_raw_os_error(plan.errno);
        return Err(format!("{}: {error}", order.program.display()));
    }
    let let_go = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
        .and_then(|null| {
            dup2_stdin(&null)?;
            dup2_stdout(&null)?;
            Ok(dup2_stderr(&null)?)
        });
    if let_go.is_err() {
        for fd in 0..3 {
            // SAFETY: nothing in this process uses its standard descriptors.
            unsafe { libc::close(fd) };
        }
    }
    Ok(Worker {
        pid: child.pid,
        without_capabilities: plan.dropped,
    })
}

fn c_string(text: impl AsRef<OsStr>) -> Result<CString, String> {
    CString::new(text.as_ref().as_bytes()).map_err(|error| error.to_string())
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts
        .iter()
        .map(|text| text.as_ptr())
        .chain([ptr::null()])
        .collect()
}

/// The child between clone and exec. It shares the stage's memory: no allocation, no lock, no unwinding.
extern "C" fn child_main(plan: *mut c_void) -> c_int {
    // SAFETY: the parent passed its plan and waits, so we are its only user. All calls are plain system calls on it.
    unsafe {
        let plan = &mut *plan.cast::<Plan>();
        libc::setsid();
        // An exec keeps ignored signals ignored. The library refuses its own two signals, so the kernel is asked directly;
        // all zero is the default action.
        let default = [0_u64; 4];
        let nowhere = ptr::null_mut::<c_void>();
        for signal in 1..=64 {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                nowhere,
                size_of::<u64>(),
            );
        }
        plan.dropped = drop_capabilities();
        close_from(3);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        libc::execve(
            plan.program.as_ptr(),
            plan.arguments.as_ptr(),
            plan.environment.as_ptr(),
        );
        plan.errno = *libc::__errno_location();
        libc::_exit(127)
    }
}
