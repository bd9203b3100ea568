//! Runs a program and strikes at one of its operations on files below a folder: the kernel refuses it, does half of it,
//! or the program is killed right before it. The program is not changed in any way and does not know.
//!
//! ```text
//! strike FOLDER LOG NUMBER FAULT PROGRAM [ARGUMENT...]
//! ```
//!
//! `FAULT` is `none`, `kill`, `short`, the number of an error, or the number of an error and `+` to have every operation
//! from there on refused that changes something. Operations are those of the program's own threads; its children are
//! left alone. `LOG` gets one line an operation. Ends as the program did, with 128 and the signal, or with 99 when it
//! was still there after a minute.

use std::process::ExitCode;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> ExitCode {
    let arguments: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    let [folder, log, number, fault, program @ ..] = arguments.as_slice() else {
        return ExitCode::from(98);
    };
    let text = |word: &std::ffi::OsString| word.to_string_lossy().into_owned();
    let fault = match text(fault).as_str() {
        "none" => traced::Fault::None,
        "kill" => traced::Fault::Kill,
        "short" => traced::Fault::Short,
        errno => match errno.strip_suffix('+') {
            Some(errno) => traced::Fault::RefuseFromHere(errno.parse().expect("an error number")),
            None => traced::Fault::Refuse(errno.parse().expect("an error number")),
        },
    };
    let at = text(number).parse().expect("the number of an operation");
    ExitCode::from(traced::run(
        folder.as_ref(),
        log.as_ref(),
        at,
        fault,
        program,
    ))
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() -> ExitCode {
    ExitCode::from(97)
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod traced {
    use nix::libc::{self, user_regs_struct};
    use nix::sys::ptrace::{self, Options};
    use nix::sys::signal::{Signal, kill};
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
    use nix::unistd::Pid;
    use std::collections::HashMap;
    use std::ffi::OsString;
    use std::fmt::Write;
    use std::fs::File;
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::FileExt;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::time::Duration;

    /// How long the program may take.
    const BOUND: Duration = Duration::from_mins(1);

    #[derive(Clone, Copy, PartialEq)]
    pub(super) enum Fault {
        None,
        Kill,
        Short,
        Refuse(i32),
        RefuseFromHere(i32),
    }

    /// What a thread is in the middle of.
    enum Inside {
        Plain,
        Refused(i32),
    }

    #[expect(
        clippy::zombie_processes,
        reason = "`follow` waits for it, thread by thread"
    )]
    pub(super) fn run(
        folder: &Path,
        log: &Path,
        at: usize,
        fault: Fault,
        program: &[OsString],
    ) -> u8 {
        // It stops itself, so that nothing of it is missed.
        let child = Command::new("sh")
            .args(["-c", "kill -STOP $$; exec \"$@\"", "sh"])
            .args(program)
            .spawn()
            .expect("the program can be started");
        let main = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
        waitpid(main, Some(WaitPidFlag::WUNTRACED)).expect("it stops");
        let options = Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_TRACEEXEC
            | Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_EXITKILL;
        ptrace::seize(main, options).expect("a child can be traced");
        kill(main, Signal::SIGCONT).expect("it is there");
        std::thread::spawn(move || {
            std::thread::sleep(BOUND);
            let _ = kill(main, Signal::SIGKILL);
            std::process::exit(99);
        });
        let mut striker = Striker {
            main,
            folder,
            at,
            fault,
            seen: String::new(),
            count: 0,
            inside: HashMap::new(),
        };
        let code = striker.follow();
        std::fs::write(log, striker.seen).expect("the log can be written");
        code
    }

    struct Striker<'a> {
        main: Pid,
        folder: &'a Path,
        at: usize,
        fault: Fault,
        seen: String,
        count: usize,
        inside: HashMap<Pid, Inside>,
    }

    impl Striker<'_> {
        fn follow(&mut self) -> u8 {
            loop {
                let status = waitpid(None, Some(WaitPidFlag::__WALL));
                // A thread that was killed meanwhile cannot be gone on with, and needs not be.
                let _ = match status.expect("something is left to wait for") {
                    WaitStatus::Exited(pid, code) if pid == self.main => return code as u8,
                    WaitStatus::Signaled(pid, signal, _) if pid == self.main => {
                        return 128 + signal as u8;
                    }
                    WaitStatus::PtraceSyscall(pid) => {
                        let looked = self.look(pid);
                        looked.and_then(|()| ptrace::syscall(pid, None))
                    }
                    WaitStatus::PtraceEvent(pid, ..) => ptrace::syscall(pid, None),
                    WaitStatus::Stopped(pid, signal) => ptrace::syscall(pid, signal),
                    _ => Ok(()),
                };
            }
        }

        fn look(&mut self, pid: Pid) -> nix::Result<()> {
            let mut registers = ptrace::getregs(pid)?;
            match self.inside.remove(&pid) {
                Some(Inside::Plain) => Ok(()),
                Some(Inside::Refused(errno)) => {
                    registers.rax = i64::from(-errno).cast_unsigned();
                    ptrace::setregs(pid, registers)
                }
                None => {
                    let inside = self.enter(pid, &mut registers)?;
                    self.inside.insert(pid, inside);
                    Ok(())
                }
            }
        }

        fn enter(&mut self, pid: Pid, registers: &mut user_regs_struct) -> nix::Result<Inside> {
            let Some((name, changes, path)) = operation(pid, registers) else {
                return Ok(Inside::Plain);
            };
            if !path.starts_with(self.folder) {
                return Ok(Inside::Plain);
            }
            let number = self.count;
            self.count += 1;
            let _ = writeln!(self.seen, "{number} {name} {}", path.display());
            let refused = match self.fault {
                Fault::Kill if number == self.at => {
                    let _ = kill(self.main, Signal::SIGKILL);
                    return Ok(Inside::Plain);
                }
                Fault::Short if number == self.at && name == "write" => {
                    registers.rdx = registers.rdx.div_ceil(2);
                    ptrace::setregs(pid, *registers)?;
                    return Ok(Inside::Plain);
                }
                Fault::Refuse(errno) if number == self.at => errno,
                Fault::RefuseFromHere(errno) if number >= self.at && changes => errno,
                _ => return Ok(Inside::Plain),
            };
            registers.orig_rax = u64::MAX;
            ptrace::setregs(pid, *registers)?;
            Ok(Inside::Refused(refused))
        }
    }

    /// What a system call does to a file, whether that changes anything, and which file.
    fn operation(pid: Pid, r: &user_regs_struct) -> Option<(&'static str, bool, PathBuf)> {
        let call = i64::try_from(r.orig_rax).ok()?;
        let creates = |flags: u64| flags & (libc::O_CREAT | libc::O_TRUNC) as u64 != 0;
        let at = |fd: u64, address: u64| named(pid, fd, address);
        let here = libc::AT_FDCWD as u64;
        Some(match call {
            libc::SYS_open => ("open", creates(r.rsi), at(here, r.rdi)?),
            libc::SYS_openat => ("open", creates(r.rdx), at(r.rdi, r.rsi)?),
            libc::SYS_mkdir => ("mkdir", true, at(here, r.rdi)?),
            libc::SYS_mkdirat => ("mkdir", true, at(r.rdi, r.rsi)?),
            libc::SYS_rename => ("rename", true, at(here, r.rsi)?),
            libc::SYS_renameat | libc::SYS_renameat2 => ("rename", true, at(r.rdx, r.r10)?),
            libc::SYS_link => ("link", true, at(here, r.rsi)?),
            libc::SYS_linkat => ("link", true, at(r.rdx, r.r10)?),
            libc::SYS_symlink => ("symlink", true, at(here, r.rsi)?),
            libc::SYS_symlinkat => ("symlink", true, at(r.rsi, r.rdx)?),
            libc::SYS_unlink => ("unlink", true, at(here, r.rdi)?),
            libc::SYS_unlinkat => ("unlink", true, at(r.rdi, r.rsi)?),
            libc::SYS_rmdir => ("rmdir", true, at(here, r.rdi)?),
            libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 => {
                ("write", true, opened(pid, r.rdi)?)
            }
            libc::SYS_ftruncate => ("truncate", true, opened(pid, r.rdi)?),
            libc::SYS_copy_file_range => ("copy", true, opened(pid, r.rdx)?),
            libc::SYS_sendfile => ("copy", true, opened(pid, r.rdi)?),
            libc::SYS_fsync | libc::SYS_fdatasync => ("sync", false, opened(pid, r.rdi)?),
            libc::SYS_read | libc::SYS_pread64 => ("read", false, opened(pid, r.rdi)?),
            libc::SYS_getdents64 => ("list", false, opened(pid, r.rdi)?),
            _ => return None,
        })
    }

    fn opened(pid: Pid, fd: u64) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()
    }

    fn named(pid: Pid, fd: u64, address: u64) -> Option<PathBuf> {
        let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
        let mut name = Vec::new();
        // A read must not cross into a page that is not there.
        while name.len() < 4096 {
            let from = address + name.len() as u64;
            let mut part = vec![0; 4096 - (from % 4096) as usize];
            let count = memory.read_at(&mut part, from).ok()?;
            let end = part[..count].iter().position(|byte| *byte == 0);
            name.extend_from_slice(&part[..end.unwrap_or(count)]);
            if end.is_some() || count == 0 {
                break;
            }
        }
        let name = PathBuf::from(OsString::from_vec(name));
        if name.is_absolute() {
            return Some(name);
        }
        let base = if fd as i32 == libc::AT_FDCWD {
            std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?
        } else {
            opened(pid, fd)?
        };
        Some(base.join(name))
    }
}
