//! Starting the worker from the stage.

use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_void};
use std::fs::OpenOptions;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use nix::errno::Errno;
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::super::filter::INSTRUCTION_BYTES;
use super::super::launch::{close_from, drop_capabilities, write_file};
use super::super::sys::{self, ChildStack};
use super::super::talk::Order;

/// The worker, started.
pub(super) struct Worker {
    /// Its number in the stage's pid namespace; also its session and process group.
    pub(super) pid: i32,
}

/// Why there is no worker.
pub(super) enum NotStarted {
    /// The machine or the room did not let it start.
    Ours(String),
    /// Its file or its command cannot be started anywhere like this.
    Program(String),
}

impl From<String> for NotStarted {
    fn from(reason: String) -> Self {
        Self::Ours(reason)
    }
}

/// The step in which the kernel starts the program.
const EXECUTING: &CStr = c"starting it";

/// What the kernel said when it was to start the program, and whose fault it is.
fn not_executed(order: &Order, error: Errno) -> NotStarted {
    let program = &order.program;
    let name = program.file_name().unwrap_or(program.as_os_str());
    let said = |hint: &str| format!("{}: execve: {}{hint}", name.display(), error.desc());
    match error {
        Errno::ENOEXEC | Errno::EINVAL | Errno::ELIBBAD => NotStarted::Program(said(
            "; it is neither a program for this machine nor a script with a #! line",
        )),
        Errno::E2BIG => NotStarted::Program(said("; its arguments and environment are too long")),
        Errno::ELOOP => NotStarted::Program(said("; its interpreters call each other")),
        // The file itself is there, so it is what it asks to be run by that is not. The room may be what hides it.
        Errno::ENOENT if program.exists() => {
            let hint = "; the interpreter or loader it names is not there";
            match order.view {
                None => NotStarted::Program(said(hint)),
                Some(_) => NotStarted::Ours(said(&format!("{hint}, or not shown to the room"))),
            }
        }
        _ => NotStarted::Ours(said("")),
    }
}

struct Plan {
    program: CString,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    user: Option<u32>,
    rlimits: Vec<(u32, libc::rlimit)>,
    filters: Vec<libc::sock_fprog>,
    ruleset: Option<c_int>,
    expendable: bool,
    failed_step: Option<&'static CStr>,
    errno: c_int,
}

/// Starts the worker in a session of its own. Afterwards the stage no longer holds the worker's pipes, so that their
/// other ends see when the worker lets go of them.
pub(super) fn start(order: &Order, cgroup: Option<&OwnedFd>) -> Result<Worker, NotStarted> {
    std::env::set_current_dir(&order.scratch)
        .map_err(|error| format!("{}: {error}", order.scratch.display()))?;
    let filters: Vec<Vec<libc::sock_filter>> =
        order.filters.iter().map(|bytes| filter(bytes)).collect();
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
        user: order.user,
        rlimits: order.rlimits.iter().map(rlimit).collect(),
        filters: filters
            .iter()
            .map(|filter| libc::sock_fprog {
                len: filter.len() as u16,
                filter: filter.as_ptr().cast_mut(),
            })
            .collect(),
        ruleset: order.ruleset,
        expendable: order.expendable,
        failed_step: None,
        errno: 0,
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
    if let Some(step) = plan.failed_step {
        let error = Errno::from_raw(plan.errno);
        if step == EXECUTING {
            return Err(not_executed(order, error));
        }
        let (program, step) = (order.program.display(), step.to_string_lossy());
        return Err(format!("{program}: {step}: {}", error.desc()).into());
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
    Ok(Worker { pid: child.pid })
}

fn c_string(text: impl AsRef<OsStr>) -> Result<CString, String> {
    CString::new(text.as_ref().as_bytes()).map_err(|error| error.to_string())
}

fn rlimit((resource, value): &(u32, u64)) -> (u32, libc::rlimit) {
    let limit = libc::rlimit {
        rlim_cur: *value,
        rlim_max: *value,
    };
    (*resource, limit)
}

/// The instructions of a filter.
fn filter(bytes: &[u8]) -> Vec<libc::sock_filter> {
    bytes
        .chunks_exact(INSTRUCTION_BYTES)
        .map(|i| libc::sock_filter {
            code: u16::from_ne_bytes([i[0], i[1]]),
            jt: i[2],
            jf: i[3],
            k: u32::from_ne_bytes([i[4], i[5], i[6], i[7]]),
        })
        .collect()
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
    // SAFETY: the parent passed its plan and waits, so we are its only user.
    let plan = unsafe { &mut *plan.cast::<Plan>() };
    let step = prepare(plan).err().unwrap_or_else(|| {
        // SAFETY: program, arguments and environment are C strings in arrays that end with null.
        unsafe {
            libc::execve(
                plan.program.as_ptr(),
                plan.arguments.as_ptr(),
                plan.environment.as_ptr(),
            )
        };
        EXECUTING
    });
    // SAFETY: errno is this thread's own while the parent waits.
    plan.errno = unsafe { *libc::__errno_location() };
    plan.failed_step = Some(step);
    // SAFETY: ends this process without running anything of the parent's.
    unsafe { libc::_exit(127) }
}

/// Makes this process what the worker is to be. The order counts: limits need the rights of the stage, the user comes
/// before the rules that need no rights, and the filters come last, as they could refuse the rest.
fn prepare(plan: &Plan) -> Result<(), &'static CStr> {
    // SAFETY: numbers only.
    unsafe { libc::setsid() };
    default_signals();
    for (resource, limit) in &plan.rlimits {
        // SAFETY: the limit is a valid structure.
        if unsafe { libc::setrlimit(*resource, limit) } < 0 {
            return Err(c"setting a limit");
        }
    }
    if plan.expendable {
        // Who cannot say so is merely not preferred.
        let _ = write_file(c"/proc/self/oom_score_adj", c"1000");
    }
    if let Some(user) = plan.user {
        become_user(user)?;
    }
    if !drop_capabilities() {
        return Err(c"giving up capabilities");
    }
    if let Some(ruleset) = plan.ruleset {
        // SAFETY: numbers only.
        if unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) } < 0 {
            return Err(c"the landlock rules");
        }
    }
    close_from(3);
    // SAFETY: the set is filled before it is used.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
    for filter in &plan.filters {
        install(filter)?;
    }
    Ok(())
}

/// An exec keeps ignored signals ignored. The library refuses its own two signals, so the kernel is asked directly; all
/// zero is the default action.
fn default_signals() {
    let default = [0_u64; 4];
    let nowhere = ptr::null_mut::<c_void>();
    for signal in 1..=64 {
        // SAFETY: the structure is as long as the kernel's, and nothing is written.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                nowhere,
                size_of::<u64>(),
            )
        };
    }
}

/// Becomes another user, for good and without groups. The kernel is asked directly: the library would try to do the same
/// to threads that this process does not have.
fn become_user(user: u32) -> Result<(), &'static CStr> {
    // SAFETY: numbers and a null list of no groups.
    unsafe {
        if libc::syscall(libc::SYS_setgroups, 0, ptr::null::<u32>()) < 0 {
            return Err(c"leaving all groups");
        }
        if libc::syscall(libc::SYS_setresgid, user, user, user) < 0 {
            return Err(c"changing the group");
        }
        if libc::syscall(libc::SYS_setresuid, user, user, user) < 0 {
            return Err(c"changing the user");
        }
    }
    Ok(())
}

/// Installs a system call filter.
fn install(filter: &libc::sock_fprog) -> Result<(), &'static CStr> {
    const SET_MODE_FILTER: libc::c_ulong = 1;
    // Without this flag the worker would also be made slower.
    const SPEC_ALLOW: libc::c_ulong = 4;
    let filter = ptr::from_ref(filter);
    for flags in [SPEC_ALLOW, 0] {
        // SAFETY: the filter's pointer and length are those of a vector that outlives the call.
        if unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, flags, filter) } == 0 {
            return Ok(());
        }
    }
    Err(c"the system call filter")
}
