//! The system calls the standard library does not give, each behind a function that is safe to call or says what the
//! caller must keep.
#![allow(
    unsafe_code,
    reason = "the one place where rooms meet the kernel directly"
)]

use std::ffi::{c_int, c_ulong, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;

use libc::pid_t;

/// Turns the C convention into a result.
fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// As [`check`], for calls without a wrapper.
pub(super) fn check_long(result: libc::c_long) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result as c_int)
    }
}

/// Nanoseconds of a clock.
pub(crate) fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the answer; the two clocks we ask for exist on every supported kernel.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The clock that budgets run on; it stands still while the machine is suspended.
pub(crate) fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// The clock that also runs while the machine is suspended.
pub(crate) fn boottime_ns() -> u64 {
    clock_ns(libc::CLOCK_BOOTTIME)
}

/// Both clocks at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clocks {
    /// As [`monotonic_ns`].
    pub(crate) monotonic: u64,
    /// As [`boottime_ns`].
    pub(crate) boottime: u64,
}

/// Reads both clocks. On a busy machine this thread can lose its core between two readings, and the time until it has one
/// again would look like a suspension; so they are read until no time passes in between, and the closest pair counts.
pub(crate) fn clocks() -> Clocks {
    const CLOSE_NS: u64 = 20_000;
    let mut closest = u64::MAX;
    let mut best = Clocks {
        monotonic: 0,
        boottime: 0,
    };
    for _ in 0..100 {
        let before = monotonic_ns();
        let boottime = boottime_ns();
        let apart = monotonic_ns() - before;
        if apart < closest {
            closest = apart;
            best = Clocks {
                monotonic: before,
                boottime,
            };
        }
        if closest < CLOSE_NS {
            break;
        }
    }
    best
}

/// Bytes that can be read at once from a pipe.
pub(crate) fn readable_bytes(fd: BorrowedFd<'_>) -> usize {
    let mut count: c_int = 0;
    // SAFETY: FIONREAD writes one int to the given place.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::FIONREAD, &raw mut count) };
    if result < 0 {
        0
    } else {
        usize::try_from(count).unwrap_or(0)
    }
}

/// Sends a signal to the process of a pidfd.
pub(super) fn pidfd_kill(pidfd: BorrowedFd<'_>, signal: c_int) -> io::Result<()> {
    let none = std::ptr::null::<c_void>();
    // SAFETY: a null siginfo is allowed and means an ordinary signal.
    check_long(unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            none,
            0,
        )
    })
    .map(drop)
}

/// A descriptor of the process that has this number now.
pub(super) fn pidfd_open(pid: pid_t) -> io::Result<OwnedFd> {
    // SAFETY: numbers only.
    let fd = check_long(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: the kernel just gave us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Reaps the child of a pidfd if it has ended.
pub(super) fn pidfd_reap(pidfd: BorrowedFd<'_>) -> io::Result<bool> {
    // SAFETY: all-zero is a valid siginfo_t.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: `info` is a valid place for the answer.
    check(unsafe {
        libc::waitid(
            libc::P_PIDFD,
            pidfd.as_raw_fd() as libc::id_t,
            &raw mut info,
            libc::WEXITED | libc::WNOHANG,
        )
    })?;
    // SAFETY: waitid filled the structure, or left it zero when nothing has ended.
    Ok(unsafe { info.si_pid() } != 0)
}

/// An anonymous file in memory with the given content, read from its start.
pub(super) fn memory_file(content: &[u8]) -> io::Result<OwnedFd> {
    use std::io::{Seek, Write};
    // SAFETY: the name is a C string.
    let fd = check(unsafe { libc::memfd_create(c"proctor-room".as_ptr(), libc::MFD_CLOEXEC) })?;
    // SAFETY: the kernel just gave us this descriptor, and nobody else knows it.
    let mut file = unsafe { std::fs::File::from_raw_fd(fd) };
    file.write_all(content)?;
    file.rewind()?;
    Ok(file.into())
}

/// A pair of connected sockets that keep message boundaries.
pub(super) fn message_sockets() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds: [RawFd; 2] = [-1; 2];
    // SAFETY: the array has room for the two descriptors.
    check(unsafe {
        libc::socketpair(
            libc::AF_UNIX,
            libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC,
            0,
            fds.as_mut_ptr(),
        )
    })?;
    // SAFETY: the kernel just gave us both descriptors.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// Sends one message without blocking and without SIGPIPE.
pub(super) fn send(socket: BorrowedFd<'_>, message: &[u8]) -> io::Result<()> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: pointer and length are those of a slice.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            message.as_ptr().cast(),
            message.len(),
            flags,
        )
    };
    if sent < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// What a non-blocking read of a message socket gave.
pub(super) enum Received {
    /// A message of this many bytes.
    Message(usize),
    /// Nothing now.
    Nothing,
    /// Nothing ever again: the other side is gone.
    Closed,
}

/// Reads one message without blocking.
pub(super) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Received {
    // SAFETY: pointer and length are those of a slice.
    let got = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            libc::MSG_DONTWAIT,
        )
    };
    match got {
        1.. => Received::Message(got as usize),
        0 => Received::Closed,
        _ => match io::Error::last_os_error().raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => Received::Nothing,
            _ => Received::Closed,
        },
    }
}

/// True when this process may make namespaces without a user namespace.
pub(super) fn can_make_namespaces() -> bool {
    const CAP_SYS_ADMIN: u32 = 21;
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| has_capability(CAP_SYS_ADMIN))
}

/// True when this process may become another user and give files away.
pub(super) fn can_change_user() -> bool {
    const CAP_CHOWN: u32 = 0;
    const CAP_SETGID: u32 = 6;
    const CAP_SETUID: u32 = 7;
    [CAP_CHOWN, CAP_SETGID, CAP_SETUID]
        .into_iter()
        .all(has_capability)
}

fn has_capability(capability: u32) -> bool {
    std::fs::read_to_string("/proc/thread-self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find(|line| line.starts_with("CapEff:"))?;
            u64::from_str_radix(line.rsplit('\t').next()?.trim(), 16).ok()
        })
        .is_some_and(|effective| effective >> capability & 1 == 1)
}

/// `prctl` with one argument.
pub(super) fn prctl(option: c_int, argument: c_ulong) -> io::Result<()> {
    // SAFETY: the options used here take one number.
    check(unsafe { libc::prctl(option, argument, 0 as c_ulong, 0 as c_ulong, 0 as c_ulong) })
        .map(drop)
}

/// Switches on the loopback of the network namespace this process is in.
pub(super) fn raise_loopback() -> io::Result<()> {
    // SAFETY: numbers only.
    let socket =
        check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: the kernel just gave us this descriptor, and nobody else knows it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: all-zero is a valid structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // SAFETY: the name is shorter than its place, which is zero behind it.
    unsafe { std::ptr::copy_nonoverlapping(c"lo".as_ptr(), request.ifr_name.as_mut_ptr(), 2) };
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_LOOPBACK) as libc::c_short;
    // SAFETY: the request is the structure this call reads.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) })
        .map(drop)
}

/// The stack of a child that shares our memory until it execs; used by one child at a time.
pub(super) struct ChildStack {
    base: *mut c_void,
}

// SAFETY: the mapping belongs to this value alone and may be used from any thread.
unsafe impl Send for ChildStack {}

impl ChildStack {
    const SIZE: usize = 256 << 10;
    const GUARD: usize = 64 << 10;

    /// Maps a stack with a guard below it.
    pub(super) fn new() -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh private mapping touches no memory in use.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), Self::SIZE, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the guard lies inside the mapping just made.
        check(unsafe { libc::mprotect(base, Self::GUARD, libc::PROT_NONE) })?;
        Ok(Self { base })
    }

    fn top(&self) -> *mut c_void {
        self.base.wrapping_byte_add(Self::SIZE)
    }
}

impl Drop for ChildStack {
    fn drop(&mut self) {
        // SAFETY: this is exactly the mapping made in `new`, and no child runs on it any more.
        unsafe { libc::munmap(self.base, Self::SIZE) };
    }
}

/// A child that was just started.
pub(super) struct Child {
    /// Its number in our pid namespace.
    pub(super) pid: pid_t,
    /// Its descriptor.
    pub(super) pidfd: OwnedFd,
}

/// The arguments of clone3, as the kernel lays them out.
#[repr(C, align(8))]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Starts a child in the given namespaces and control group. It runs `entry(argument)` in our memory on `stack`, and
/// this thread waits until it has called execve or _exit. All signals are blocked in the child until it changes that.
///
/// Sharing the memory makes the cost of a start independent of the supervisor's size.
///
/// # Safety
/// `entry` must end in execve or _exit, never return or unwind, call only what is safe in the child of a vfork,
/// and touch only memory reachable from `argument`, which must stay valid during the call.
pub(super) unsafe fn start_child(
    namespaces: c_int,
    cgroup: Option<BorrowedFd<'_>>,
    stack: &mut ChildStack,
    entry: extern "C" fn(*mut c_void) -> c_int,
    argument: *mut c_void,
) -> io::Result<Child> {
    let mut pidfd: c_int = -1;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | namespaces;
    // SAFETY: all-zero is a valid set; sigfillset and pthread_sigmask write only to the two sets.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let mut before: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: as above. A handler of ours must not run in the child, where it would see our memory.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
    }
    let started = if let Some(cgroup) = cgroup {
        let mut arguments = CloneArgs {
            flags: flags as u64 | CLONE_INTO_CGROUP,
            pidfd: (&raw mut pidfd) as u64,
            exit_signal: libc::SIGCHLD as u64,
            stack: stack.base as u64,
            stack_size: ChildStack::SIZE as u64,
            cgroup: cgroup.as_raw_fd() as u64,
            ..CloneArgs::default()
        };
        // SAFETY: the arguments name a stack of our own and a place for the pidfd; the caller vouches for `entry`.
        unsafe { clone3(&mut arguments, entry, argument) }
    } else {
        let flags = flags | libc::SIGCHLD;
        // SAFETY: as above. Without a control group the older call does the same, and it also passes the system call
        // filters of containers that do not know clone3.
        check(unsafe { libc::clone(entry, stack.top(), flags, argument, &raw mut pidfd) })
    };
    // SAFETY: `before` was filled above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    let pid = started?;
    // SAFETY: the kernel put a new descriptor there.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Child { pid, pidfd })
}

/// clone3 with a stack of its own for the child, which no library call offers.
///
/// # Safety
/// As for [`start_child`]; `arguments` must name a stack.
#[cfg(target_arch = "x86_64")]
unsafe fn clone3(
    arguments: &mut CloneArgs,
    entry: extern "C" fn(*mut c_void) -> c_int,
    argument: *mut c_void,
) -> io::Result<pid_t> {
    let result: isize;
    // SAFETY: in the parent this is a plain system call. The child starts on its own empty stack, whose top is aligned to
    // 16 bytes as a call demands, and never comes back from `entry`.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 as isize => result,
            in("rdi") std::ptr::from_mut(arguments),
            in("rsi") size_of::<CloneArgs>(),
            in("r12") argument,
            in("r13") entry,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    if result < 0 {
        Err(io::Error::from_raw_os_error(-result as i32))
    } else {
        Ok(result as pid_t)
    }
}

/// As on the other architecture.
///
/// # Safety
/// As for [`start_child`]; `arguments` must name a stack.
#[cfg(target_arch = "aarch64")]
unsafe fn clone3(
    arguments: &mut CloneArgs,
    entry: extern "C" fn(*mut c_void) -> c_int,
    argument: *mut c_void,
) -> io::Result<pid_t> {
    let result: isize;
    // SAFETY: in the parent this is a plain system call. The child starts on its own empty stack and never comes back
    // from `entry`.
    unsafe {
        std::arch::asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x0, x20",
            "blr x21",
            "brk #1",
            "2:",
            in("x8") libc::SYS_clone3,
            inlateout("x0") std::ptr::from_mut(arguments) => result,
            in("x1") size_of::<CloneArgs>(),
            in("x20") argument,
            in("x21") entry,
        );
    }
    if result < 0 {
        Err(io::Error::from_raw_os_error(-result as i32))
    } else {
        Ok(result as pid_t)
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn clone3(
    _arguments: &mut CloneArgs,
    _entry: extern "C" fn(*mut c_void) -> c_int,
    _argument: *mut c_void,
) -> io::Result<pid_t> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// True when a process of this user is alive.
pub(super) fn user_has_processes(user: u32) -> bool {
    // SAFETY: errno is this thread's own; getpriority takes numbers only. -1 is also an answer, so errno tells.
    unsafe {
        *libc::__errno_location() = 0;
        libc::getpriority(libc::PRIO_USER, user);
        *libc::__errno_location() != libc::ESRCH
    }
}

/// True when system call filters that answer with an error can be installed.
pub(super) fn has_filters() -> io::Result<()> {
    const GET_ACTION_AVAIL: c_ulong = 2;
    let action: u32 = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the call reads one word.
    check_long(unsafe { libc::syscall(libc::SYS_seccomp, GET_ACTION_AVAIL, 0, &raw const action) })
        .map(drop)
}

/// Has a function called when this process exits in order.
pub(super) fn at_exit(function: extern "C" fn()) {
    // SAFETY: the function stays where it is as long as the process lives.
    unsafe { libc::atexit(function) };
}
