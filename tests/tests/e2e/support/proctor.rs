//! Running `proctor` the way a user does.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::programs;

/// What a command did.
#[derive(Debug)]
pub struct Done {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// How long it took.
    pub wall: Duration,
    line: String,
}

impl Done {
    /// What a command did that ended elsewhere; `line` says which.
    pub fn of(line: String, output: &Output, wall: Duration) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            wall,
            line,
        }
    }

    /// Demands an exit code.
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "{}\n--- stdout\n{}\n--- stderr\n{}",
            self.line,
            self.stdout,
            self.stderr
        );
        self
    }

    /// Demands a text in what was said to people.
    pub fn says(self, text: &str) -> Self {
        assert!(
            self.stderr.contains(text) || self.stdout.contains(text),
            "{} did not say {text:?}\n--- stdout\n{}\n--- stderr\n{}",
            self.line,
            self.stdout,
            self.stderr
        );
        self
    }
}

/// `proctor` with these arguments, ready to be changed; the command line comes along for messages.
pub fn command<S: AsRef<OsStr>>(args: &[S]) -> Command {
    let program = programs().join("proctor");
    assert!(
        program.is_file(),
        "{} is missing: run ./test",
        program.display()
    );
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs a prepared command to its end.
pub fn finish(mut command: Command) -> Done {
    let line = format!("{command:?}");
    let started = Instant::now();
    let output = command.output().expect("the program can be started");
    Done::of(line, &output, started.elapsed())
}

/// Runs `proctor` with these arguments.
pub fn proctor<S: AsRef<OsStr>>(args: &[S]) -> Done {
    finish(command(args))
}

/// Arguments of mixed kinds.
#[macro_export]
macro_rules! args {
    ($($arg:expr),* $(,)?) => { &[$(std::ffi::OsString::from($arg)),*][..] };
}

/// Freezes a manifest file into a protocol file.
pub fn freeze(manifest: &Path, protocol: &Path) {
    proctor(args!["freeze", manifest, "-o", protocol]).exits(0);
}
