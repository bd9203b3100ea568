//! Starting a stage: what happens between clone and exec, and the threads that do it.
//!
//! Parent-death signals belong to the thread that started a child, not to its process: when that thread ends, the child
//! is killed. So all starts come from threads that live as long as the process.
#![allow(
    unsafe_code,
    reason = "the child of a vfork may only use plain system calls"
)]

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_ulong, c_void};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::sys::{self, Child, ChildStack};
use super::talk::{CONTROL_FD, STAGE_WORD};
use super::{adopted, prepared};

/// The stage's program when it is not this executable; see [`use_stage_program`].
static STAGE_PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Makes another executable the stage of all rooms of this process, for programs that use this library without calling
/// [`super::stage::main_if_stage`] themselves. Only the first call counts.
pub fn use_stage_program(program: &Path) {
    let _ = STAGE_PROGRAM.set(program.to_owned());
}

/// The descriptors a stage is started with: three that lead nowhere, and its end of the sockets.
const DESCRIPTORS: usize = CONTROL_FD as usize + 1;

/// What kind of stage is to be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    /// Namespaces to make, as clone flags.
    pub(super) namespaces: c_int,
    /// Kill the stage when the spawner's process dies.
    pub(super) die_with_us: bool,
}

/// A stage that waits for its order.
pub(super) struct Launched {
    pub(super) child: Child,
    /// Our end of the sockets.
    pub(super) control: OwnedFd,
}

/// A start that went wrong.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {source}")]
pub(super) struct LaunchError {
    step: &'static str,
    source: io::Error,
}

/// How long a start may take. It takes a millisecond, unless the kernel or the file system of our own program hangs.
const BOUND: Duration = Duration::from_secs(30);

type Answer = Result<Launched, LaunchError>;

/// What a spawner is asked for: a stage for somebody who waits, or one to be had when the next is needed.
type Request = (Kind, Option<mpsc::SyncSender<Answer>>);

type Birth = (Box<dyn FnOnce() + Send>, mpsc::SyncSender<io::Result<()>>);

/// Begins a spawner on behalf of a thread that may be held to something: a thread inherits the landlock domain and the
/// cores of whoever begins it, and a room those of its spawner. So all are begun by one thread, which [`begin`] begins.
fn born_free(body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
    let (reply, begun) = mpsc::sync_channel(1);
    let nursery = nursery()
        .as_ref()
        .map_err(|error| io::Error::from(*error))?;
    nursery.send((Box::new(body), reply)).map_err(|_| gone())?;
    begun.recv_timeout(BOUND).map_err(|_| gone())?
}

fn nursery() -> &'static Result<mpsc::Sender<Birth>, io::ErrorKind> {
    static NURSERY: OnceLock<Result<mpsc::Sender<Birth>, io::ErrorKind>> = OnceLock::new();
    NURSERY.get_or_init(|| {
        let (births, queue) = mpsc::channel::<Birth>();
        let thread = std::thread::Builder::new().name("nursery".into());
        let begun = thread.spawn(move || {
            while let Ok((body, reply)) = queue.recv() {
                let thread = std::thread::Builder::new().name("spawner".into());
                let _ = reply.send(thread.spawn(body).map(|_| ()));
            }
        });
        begun.map(|_| births).map_err(|error| error.kind())
    })
}

/// Makes the thread that all others of the rooms come from, for a process that is going to hold some of its threads to
/// less than it may do itself. Other processes need not call it: their first room does.
pub fn begin() {
    let _ = nursery();
}

/// A thread that lives as long as this process and starts stages.
#[derive(Debug, Clone)]
pub(super) struct Spawner {
    number: u64,
    requests: mpsc::Sender<Request>,
}

impl Spawner {
    /// Begins the thread. It prepares itself first, and what it is then, its children are from birth. When nobody holds it
    /// any more, or it could not prepare itself, it leaves.
    pub(super) fn begin(
        prepare: impl FnOnce() -> Result<(), String> + Send + 'static,
        leave: impl FnOnce() + Send + 'static,
    ) -> Result<Self, String> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let (requests, queue) = mpsc::channel();
        let (ready, prepared) = mpsc::sync_channel(1);
        born_free(move || {
            let stack = prepare().and_then(|()| {
                ChildStack::new().map_err(|error| format!("a stack for stages: {error}"))
            });
            match stack {
                Ok(stack) => {
                    let _ = ready.send(Ok(()));
                    serve(number, &queue, stack);
                    prepared::dismiss(number);
                }
                Err(reason) => {
                    let _ = ready.send(Err(reason));
                }
            }
            leave();
        })
        .map_err(|error| format!("a thread that starts stages: {error}"))?;
        prepared
            .recv_timeout(BOUND)
            .map_err(|_| "the thread that starts stages ended or hangs".to_owned())??;
        Ok(Self { number, requests })
    }

    /// The one that is in no group of its own.
    pub(super) fn usual() -> Result<Self, String> {
        static USUAL: OnceLock<Result<Spawner, String>> = OnceLock::new();
        USUAL.get_or_init(|| Self::begin(|| Ok(()), || ())).clone()
    }

    /// Starts a stage, or gives the one that was prepared.
    pub(super) fn start(&self, kind: Kind) -> Answer {
        if let Some(ready) = prepared::take(self.number, kind) {
            return Ok(ready);
        }
        let gone = |step| LaunchError {
            step,
            source: io::ErrorKind::BrokenPipe.into(),
        };
        let (reply, answer) = mpsc::sync_channel(1);
        self.requests
            .send((kind, Some(reply)))
            .map_err(|_| gone("the spawner thread does not run"))?;
        answer
            .recv_timeout(BOUND)
            .map_err(|_| gone("the spawner thread ended or hangs"))?
    }

    /// Has a stage started for the next room, while nobody waits for it. Whether it comes to anything shows when it is
    /// wanted.
    pub(super) fn prepare(&self, kind: Kind) {
        let _ = self.requests.send((kind, None));
    }
}

fn serve(number: u64, requests: &mpsc::Receiver<Request>, mut stack: ChildStack) {
    while let Ok((kind, reply)) = requests.recv() {
        let Some(reply) = reply else {
            prepared::make(number, kind, || launch_one(kind, &mut stack).ok());
            continue;
        };
        // The one that was just being made is better than another.
        let launched =
            prepared::take(number, kind).map_or_else(|| launch_one(kind, &mut stack), Ok);
        // If nobody waits for it any more, its end of the sockets is closed, so it starts nothing.
        if let Err(mpsc::SendError(Ok(late))) = reply.send(launched) {
            late.dismiss();
        }
    }
}

impl Launched {
    /// Ends a stage that got no order.
    pub(super) fn dismiss(self) {
        let _ = sys::pidfd_kill(self.child.pidfd.as_fd(), libc::SIGKILL);
        let mut ended = [PollFd::new(self.child.pidfd.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut ended, PollTimeout::from(1000_u16));
        if let Ok(true) = sys::pidfd_reap(self.child.pidfd.as_fd()) {
            adopted::forget(self.child.pid);
        }
    }

    /// True while it waits for its order.
    pub(super) fn waits(&self) -> bool {
        let mut said = [PollFd::new(self.control.as_fd(), PollFlags::POLLIN)];
        poll(&mut said, PollTimeout::ZERO) == Ok(0)
    }
}

/// Everything the child reads, made before it starts.
struct ChildPlan {
    descriptors: [RawFd; DESCRIPTORS],
    die_with_us: bool,
    /// `uid_map` and `gid_map` of the new user namespace.
    maps: Option<(CString, CString)>,
    program: CString,
    arguments: Vec<*const c_char>,
    failed_step: Option<&'static CStr>,
    errno: c_int,
}

fn launch_one(kind: Kind, stack: &mut ChildStack) -> Answer {
    let say = |step, source| LaunchError { step, source };
    let (control, theirs) = sys::message_sockets().map_err(|error| say("sockets", error))?;
    let nowhere = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(|error| say("/dev/null", error))?;
    let nowhere = nowhere.as_raw_fd();
    let program = STAGE_PROGRAM
        .get()
        .map_or(OsStr::new("/proc/self/exe"), |path| path.as_os_str());
    let program = CString::new(program.as_bytes())
        .map_err(|error| say("the stage's path", io::Error::other(error)))?;
    let words = [c"proctor-room".to_owned(), c_string(STAGE_WORD)];
    let maps = (kind.namespaces & libc::CLONE_NEWUSER != 0).then(|| {
        let uid = nix::unistd::geteuid();
        let gid = nix::unistd::getegid();
        (
            c_string(&format!("{uid} {uid} 1")),
            c_string(&format!("{gid} {gid} 1")),
        )
    });
    let mut plan = ChildPlan {
        descriptors: [nowhere, nowhere, nowhere, theirs.as_raw_fd()],
        die_with_us: kind.die_with_us,
        maps,
        program,
        arguments: vec![words[0].as_ptr(), words[1].as_ptr(), ptr::null()],
        failed_step: None,
        errno: 0,
    };
    // SAFETY: `child_main` ends in execve or _exit and makes only plain system calls on `plan`, which outlives the call.
    let start = || unsafe {
        sys::start_child(
            kind.namespaces,
            None,
            stack,
            child_main,
            (&raw mut plan).cast(),
        )
    };
    let child = adopted::begin(start, |child: &Child| child.pid);
    let child = child.map_err(|source| say("clone", source))?;
    if let Some(step) = plan.failed_step {
        if let Ok(true) = sys::pidfd_reap(child.pidfd.as_fd()) {
            adopted::forget(child.pid);
        }
        return Err(say(
            step.to_str().unwrap_or("start"),
            io::Error::from_raw_os_error(plan.errno),
        ));
    }
    Ok(Launched { child, control })
}

/// A C string of text that holds no NUL.
fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// The child between clone and exec. It shares our memory: no allocation, no lock, no unwinding.
extern "C" fn child_main(plan: *mut c_void) -> c_int {
    // SAFETY: the parent passed its plan and waits, so we are its only user.
    let plan = unsafe { &mut *plan.cast::<ChildPlan>() };
    let step = prepare(plan).err().unwrap_or_else(|| {
        let environment = [ptr::null::<c_char>()];
        // SAFETY: program, arguments and environment are C strings in arrays that end with null.
        unsafe {
            libc::execve(
                plan.program.as_ptr(),
                plan.arguments.as_ptr(),
                environment.as_ptr(),
            )
        };
        c"starting the stage"
    });
    // SAFETY: errno is this thread's own while the parent waits.
    plan.errno = unsafe { *libc::__errno_location() };
    plan.failed_step = Some(step);
    // SAFETY: ends this process without running anything of the parent's.
    unsafe { libc::_exit(127) }
}

fn prepare(plan: &ChildPlan) -> Result<(), &'static CStr> {
    if let Some((uids, gids)) = &plan.maps {
        write_file(c"/proc/self/setgroups", c"deny").ok_or(c"/proc/self/setgroups")?;
        write_file(c"/proc/self/uid_map", uids).ok_or(c"/proc/self/uid_map")?;
        write_file(c"/proc/self/gid_map", gids).ok_or(c"/proc/self/gid_map")?;
        keep_capabilities().ok_or(c"keeping the capabilities of the user namespace")?;
    }
    // Above all targets first, so that no target number is still a source.
    let mut moved = [-1; DESCRIPTORS];
    let count = CONTROL_FD + 1;
    for (place, source) in moved.iter_mut().zip(&plan.descriptors) {
        // SAFETY: no memory is involved.
        *place = unsafe { libc::fcntl(*source, libc::F_DUPFD, count) };
        if *place < 0 {
            return Err(c"moving descriptors");
        }
    }
    for (target, source) in (0..count).zip(moved) {
        // SAFETY: no memory is involved.
        if unsafe { libc::dup2(source, target) } < 0 {
            return Err(c"placing descriptors");
        }
    }
    close_from(count);
    // SAFETY: no memory is involved.
    unsafe { libc::setsid() };
    if plan.die_with_us {
        let signal = libc::SIGKILL as c_ulong;
        // SAFETY: no memory is involved.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0) } < 0 {
            return Err(c"setting the parent-death signal");
        }
    }
    Ok(())
}

/// Closes every descriptor from this one on.
pub(super) fn close_from(first: c_int) {
    // SAFETY: closing is all it does, and nobody in this process uses those descriptors any more.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, c_int::MAX, 0) };
    if closed < 0 {
        // Kernels before 5.9.
        for fd in first..65_536 {
            // SAFETY: as above.
            unsafe { libc::close(fd) };
        }
    }
}

/// Writes a short text into a file of the kernel's.
pub(super) fn write_file(path: &CStr, text: &CStr) -> Option<()> {
    let bytes = text.to_bytes();
    // SAFETY: the path is a C string, and pointer and length are those of a slice.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return None;
        }
        let written = libc::write(fd, bytes.as_ptr().cast(), bytes.len());
        if usize::try_from(written) != Ok(bytes.len()) {
            return None;
        }
        libc::close(fd);
    }
    Some(())
}

/// The user-space form of the capability sets: header, then two words of each set.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

/// Effective, permitted and inheritable bits of 32 capabilities.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilityWords {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

const CAPABILITY_VERSION_3: u32 = 0x2008_0522;

/// Carries the capabilities in the user namespace over the exec of the stage: an ordinary user's process loses them
/// there unless they are ambient.
fn keep_capabilities() -> Option<()> {
    let header = CapabilityHeader {
        version: CAPABILITY_VERSION_3,
        pid: 0,
    };
    let mut words = [CapabilityWords::default(); 2];
    // SAFETY: header and words have the layout of version 3, which has two words.
    if unsafe { libc::syscall(libc::SYS_capget, &raw const header, &raw mut words) } < 0 {
        return None;
    }
    for word in &mut words {
        word.inheritable = word.permitted;
    }
    // SAFETY: as above.
    if unsafe { libc::syscall(libc::SYS_capset, &raw const header, &raw const words) } < 0 {
        return None;
    }
    for capability in 0..64_u32 {
        if words[(capability / 32) as usize].permitted >> (capability % 32) & 1 == 1 {
            let raise = libc::PR_CAP_AMBIENT_RAISE as c_ulong;
            let capability = c_ulong::from(capability);
            // SAFETY: no memory is involved.
            if unsafe { libc::prctl(libc::PR_CAP_AMBIENT, raise, capability, 0, 0) } < 0 {
                return None;
            }
        }
    }
    Some(())
}

/// Gives up every capability, ambient ones included.
pub(super) fn drop_capabilities() -> bool {
    let header = CapabilityHeader {
        version: CAPABILITY_VERSION_3,
        pid: 0,
    };
    let words = [CapabilityWords::default(); 2];
    let clear = libc::PR_CAP_AMBIENT_CLEAR_ALL as c_ulong;
    // SAFETY: header and words have the layout of version 3; prctl takes numbers only.
    unsafe {
        libc::prctl(libc::PR_CAP_AMBIENT, clear, 0, 0, 0);
        libc::syscall(libc::SYS_capset, &raw const header, &raw const words) == 0
    }
}
