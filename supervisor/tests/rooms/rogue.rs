//! A worker that tries everything it must not do, and tells on standard error what worked.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::errno::Errno;
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, unshare};
use nix::unistd::Pid;
use serde_json::{Map, Value, json};

/// What the rogue is told by its environment: what to attack.
pub(crate) const TARGETS: &str = "TARGETS";

/// Tries, and tells a JSON object: what was tried, and `true` when it worked or the error.
pub(crate) fn attack() {
    let targets: Value = serde_json::from_str(&std::env::var(TARGETS).unwrap()).unwrap();
    let text = |name: &str| targets[name].as_str().unwrap_or_default().to_owned();
    let mut told = Map::new();
    let mut tell = |name: &str, result: Result<(), String>| {
        let value = result.map_or_else(Value::String, |()| Value::Bool(true));
        told.insert(name.to_owned(), value);
    };
    let port = targets["port"].as_u64().unwrap_or(1) as u16;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    tell(
        "tcp",
        io(TcpStream::connect_timeout(&address, Duration::from_secs(2))),
    );
    tell(
        "udp",
        // To an address of nobody; connecting sends nothing.
        io(UdpSocket::bind("0.0.0.0:0").and_then(|s| s.connect("192.0.2.1:9"))),
    );
    tell("own_loopback", io(own_loopback()));
    let name = UnixAddress::from_abstract_name(text("abstract")).unwrap();
    tell("abstract_socket", io(UnixStream::connect_addr(&name)));
    tell("path_socket", io(UnixStream::connect(text("socket"))));
    for family in [libc::AF_VSOCK, libc::AF_ALG, libc::AF_INET6] {
        tell(&format!("family_{family}"), io(raw_socket(family)));
    }
    for directory in targets["directories"].as_array().into_iter().flatten() {
        let directory = directory.as_str().unwrap();
        let file = Path::new(directory).join(text("escape"));
        tell(&format!("write {directory}"), io(fs::write(file, "x")));
    }
    for file in targets["files"].as_array().into_iter().flatten() {
        let file = file.as_str().unwrap();
        tell(&format!("read {file}"), io(fs::read(file)));
        tell(
            &format!("change {file}"),
            io(fs::OpenOptions::new().append(true).open(file)),
        );
    }
    // What is done to a file without writing to it.
    for file in targets["victims"].as_array().into_iter().flatten() {
        let file = Path::new(file.as_str().unwrap());
        let ago = nix::sys::time::TimeSpec::new(1, 0);
        let follow = nix::sys::stat::UtimensatFlags::FollowSymlink;
        tell(
            "mode",
            io(fs::set_permissions(file, fs::Permissions::from_mode(0o604))),
        );
        tell(
            "times",
            unix(nix::sys::stat::utimensat(
                nix::fcntl::AT_FDCWD,
                file,
                &ago,
                &ago,
                follow,
            )),
        );
        tell("truncate", unix(nix::unistd::truncate(file, 0)));
    }
    tell("scratch", io(fs::write("own", "x")));
    tell(
        "stdout_by_name",
        io(fs::OpenOptions::new().write(true).open("/dev/stdout")),
    );
    tell("null", io(fs::write("/dev/null", "x")));
    tell("user_namespace", unix(unshare(CloneFlags::CLONE_NEWUSER)));
    tell("keys", call(libc::SYS_keyctl, &[0, -3, 0]));
    tell("io_uring", call(libc::SYS_io_uring_setup, &[1, 0]));
    tell("bpf", call(libc::SYS_bpf, &[0, 0, 0]));
    tell("clone_namespace", clone_namespace());
    let mut other = CpuSet::new();
    let core = targets["other_core"].as_u64().unwrap_or(0) as usize;
    other.set(core).unwrap();
    tell(
        "other_core",
        unix(sched_setaffinity(Pid::from_raw(0), &other)),
    );
    let python = format!("import os; os.sched_setaffinity(0, {{{core}}})");
    tell(
        "taskset",
        program("taskset", &["-c", &core.to_string(), "true"]),
    );
    tell(
        "python_affinity",
        program("python3", &["-S", "-c", &python]),
    );
    let supervisor: i32 = std::env::var("SUPERVISOR").unwrap().parse().unwrap();
    tell(
        "signal_supervisor",
        unix(nix::sys::signal::kill(Pid::from_raw(supervisor), None)),
    );
    let attach = libc::c_long::from(libc::PTRACE_ATTACH);
    let pid = libc::c_long::from(supervisor);
    tell(
        "trace_supervisor",
        call(libc::SYS_ptrace, &[attach, pid, 0]),
    );
    tell(
        "memory_of_supervisor",
        io(fs::read(format!("/proc/{supervisor}/environ"))),
    );
    told.insert("user".into(), json!(nix::unistd::geteuid().as_raw()));
    told.insert("groups".into(), json!(status("Groups:")));
    told.insert("cores".into(), json!(status("Cpus_allowed_list:")));
    eprintln!("{}", Value::Object(told));
}

fn io<T>(result: std::io::Result<T>) -> Result<(), String> {
    result.map(drop).map_err(|error| error.to_string())
}

fn unix<T>(result: Result<T, Errno>) -> Result<(), String> {
    result.map(drop).map_err(|error| error.to_string())
}

/// The result of a program that is not installed.
pub(crate) const NOT_INSTALLED: &str = "not installed";

/// An honest program.
fn program(name: &str, arguments: &[&str]) -> Result<(), String> {
    match Command::new(name).args(arguments).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(NOT_INSTALLED.into()),
        Err(error) => Err(error.to_string()),
    }
}

/// The words of one line of what the kernel says of this process.
fn status(field: &str) -> Vec<String> {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field));
    line.unwrap()[field.len()..]
        .split_whitespace()
        .map(ToOwned::to_owned)
        .collect()
}

#[expect(unsafe_code, reason = "families the standard library does not know")]
fn raw_socket(family: i32) -> std::io::Result<()> {
    // SAFETY: numbers only.
    let fd = unsafe { libc::socket(family, libc::SOCK_SEQPACKET, 0) };
    let other = std::io::Error::last_os_error();
    // A family that is there but has no such type was reached.
    if fd >= 0 || other.raw_os_error() == Some(libc::ESOCKTNOSUPPORT) {
        Ok(())
    } else {
        Err(other)
    }
}

#[expect(
    unsafe_code,
    reason = "calls that must be refused before they read anything"
)]
fn call(number: libc::c_long, arguments: &[libc::c_long]) -> Result<(), String> {
    let argument = |at: usize| arguments.get(at).copied().unwrap_or(0);
    // SAFETY: null pointers at most.
    let result = unsafe { libc::syscall(number, argument(0), argument(1), argument(2)) };
    if result >= 0 {
        Ok(())
    } else {
        Err(Errno::last().to_string())
    }
}

#[expect(unsafe_code, reason = "a child in a new namespace")]
fn clone_namespace() -> Result<(), String> {
    let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
    // SAFETY: without a stack this is a fork; the child ends at once.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    match pid {
        0 => std::process::exit(0),
        1.. => Ok(()),
        _ => Err(Errno::last().to_string()),
    }
}

/// Writes to the scratch and the temporary directory until nothing more fits, and tells how much that was.
pub(crate) fn fill(single_file: bool) {
    let block = vec![1_u8; 64 << 10];
    let mut written = 0_u64;
    let mut error = String::new();
    'files: for number in 0..if single_file { 1 } else { 10_000 } {
        let place = if number % 2 == 0 { "." } else { "/tmp" };
        let mut file = match fs::File::create(format!("{place}/fill-{number}")) {
            Ok(file) => file,
            Err(problem) => {
                error = problem.to_string();
                break;
            }
        };
        for _ in 0..if single_file { 10_000 } else { 8 } {
            match file.write(&block) {
                Ok(count) => written += count as u64,
                Err(problem) => {
                    error = problem.to_string();
                    break 'files;
                }
            }
        }
    }
    eprintln!("{}", json!({ "written": written, "error": error }));
}

/// Talks to itself over 127.0.0.1.
fn own_loopback() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut out = TcpStream::connect(listener.local_addr()?)?;
    std::io::Write::write_all(&mut out, b"x")?;
    let (mut heard, mut byte) = (listener.accept()?.0, [0]);
    std::io::Read::read_exact(&mut heard, &mut byte)
}

/// Starts children until it is refused, and tells how many there were.
pub(crate) fn breed(leave: fn()) {
    // A refused child makes the standard library's start fail, which is told by a panic.
    let mut count = 0;
    while count < 200 && std::panic::catch_unwind(leave).is_ok() {
        count += 1;
    }
    eprintln!("{}", json!({ "children": count }));
    if count < 200 {
        std::process::exit(1);
    }
}

/// Takes memory and touches it until it is stopped, or a gigabyte is reached.
pub(crate) fn hog() {
    let mut all = Vec::new();
    for _ in 0..1024 {
        let mut block = vec![0_u8; 1 << 20];
        block.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        all.push(block);
    }
    let mut nothing = [0; 1];
    let _ = std::io::stdin().read(&mut nothing);
}
