//! What the misbehaving workers of `rogues/` share beside the conversation.

use std::fmt::Display;
use std::io;
use std::process::{Command, Stdio};

/// The word before the part that a process started by a rogue plays.
const PART: &str = "--part";

/// The part this process plays; `None` for the worker itself.
pub fn part() -> Option<String> {
    let mut arguments = std::env::args().skip(1);
    (arguments.next()? == PART).then(|| arguments.next())?
}

/// This program once more, to play a part; it is told who started it, and holds nothing of the conversation.
pub fn again(part: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command
        .args([PART, part, &std::process::id().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Starts a process and never waits for it.
///
/// # Errors
/// The system refused.
pub fn leave(mut command: Command) -> io::Result<()> {
    command.spawn().map(drop)
}

/// In a process that plays a part: waits until the one that started it is gone.
pub fn wait_for_the_starter_to_go() {
    let starter = std::env::args().nth(3).expect("a part is told its starter");
    while nix::unistd::getppid().to_string() == starter {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Says on stderr what became of a misdeed: `worked: WHAT` or `refused: WHAT: WHY`.
pub fn tried<T, E: Display>(what: &str, result: Result<T, E>) {
    let line = match result {
        Ok(_) => format!("worked: {what}"),
        Err(error) => format!("refused: {what}: {error}"),
    };
    tell(&line);
}

/// Says a line on stderr, the one place that outlives every kind of room.
pub fn tell(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// The process that started this one's parent, as far as it can be seen.
pub fn grandparent() -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", nix::unistd::getppid())).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// A system call that takes numbers only, or pointers to what lives for ever, for what no library offers because no
/// program should want it.
///
/// # Errors
/// What the kernel says.
#[expect(
    unsafe_code,
    reason = "calls that a room must refuse have no safe form"
)]
pub fn system_call(number: libc::c_long, arguments: [libc::c_long; 4]) -> io::Result<libc::c_long> {
    let [a, b, c, d] = arguments;
    // SAFETY: the arguments are numbers, null, or addresses of statics; the calls used write to no memory.
    let result = unsafe { libc::syscall(number, a, b, c, d) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}
