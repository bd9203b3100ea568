//! Telling somebody that a run is over: a command of theirs gets the result in one line and the place of the bundle.

use crate::error::Exit;
use crate::render::{brief, plain};
use crate::room::adopted;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The command may take so long.
const BOUND: Duration = Duration::from_mins(1);
/// It is looked at this often.
const LOOK: Duration = Duration::from_millis(20);

/// A command that is run when a run is over. It is split into words as a POSIX shell would split it, quotes and backslashes
/// included, and nothing else of a shell: no variables, no patterns, no pipes. Whoever wants those writes `sh -c '...'`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnFinish {
    program: String,
    arguments: Vec<String>,
}

/// What the command is told.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    /// The result in one line.
    pub line: &'a str,
    /// The bundle, when there is one.
    pub bundle: Option<&'a Path>,
    /// The run directory.
    pub run_dir: &'a Path,
    /// The exit code of the run.
    pub exit: Exit,
}

impl OnFinish {
    /// Reads a command.
    ///
    /// # Errors
    /// It has no words, or a quote is not closed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let words = shell_words::split(text).map_err(|error| error.to_string())?;
        let mut words = words.into_iter();
        let program = words.next().filter(|program| !program.is_empty());
        Ok(Self {
            program: program.ok_or("it names no program")?,
            arguments: words.collect(),
        })
    }

    /// Runs the command and waits for it, at most a minute. It gets the result and the bundle's path (empty without a
    /// bundle) as its last two arguments, and both with more in its environment. What it prints goes to stderr.
    ///
    /// # Errors
    /// It could not be started, failed, or took too long; nothing of the run depends on that.
    pub fn tell(&self, told: &Told<'_>) -> Result<(), String> {
        self.tell_within(told, BOUND)
    }

    fn tell_within(&self, told: &Told<'_>, bound: Duration) -> Result<(), String> {
        let name = brief(&self.program);
        let bundle = told.bundle.map_or(OsStr::new(""), Path::as_os_str);
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .arg(told.line)
            .arg(bundle)
            .env("PROCTOR_RESULT", told.line)
            .env("PROCTOR_BUNDLE", bundle)
            .env("PROCTOR_RUN_DIR", told.run_dir)
            .env("PROCTOR_EXIT_CODE", told.exit.code().to_string())
            .stdin(Stdio::null())
            .stdout(std::io::stderr())
            // Of its own, so that what it starts can be ended with it.
            .process_group(0);
        // A room whose guardian was killed must not take it for what that left behind.
        let mut child = adopted::begin(|| command.spawn(), number)
            .map_err(|error| format!("{name} could not be started: {error}"))?;
        let told = match wait(&mut child, bound) {
            Ok(Some(status)) if status.success() => Ok(()),
            Ok(Some(status)) => Err(format!("{name} failed: {status}")),
            Ok(None) => {
                end(&mut child);
                let seconds = bound.as_secs();
                Err(format!("{name} took longer than {seconds} s and was ended"))
            }
            Err(error) => Err(format!("{name} cannot be waited for: {error}")),
        };
        adopted::forget(number(&child));
        told.map_err(|problem| plain(&problem))
    }
}

fn number(child: &Child) -> i32 {
    // The kernel has no greater numbers.
    i32::try_from(child.id()).unwrap_or(i32::MAX)
}

fn wait(child: &mut Child, bound: Duration) -> std::io::Result<Option<ExitStatus>> {
    let until = Instant::now() + bound;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}

/// Ends the command with everything in its process group.
fn end(child: &mut Child) {
    let group = nix::unistd::Pid::from_raw(number(child));
    let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
    // It is dead or about to be, unless the kernel holds it.
    let _ = wait(child, Duration::from_secs(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(run_dir: &Path) -> Told<'_> {
        Told {
            line: "bench: 1 of 2 methods completed",
            bundle: Some(Path::new("/runs/a b/bundle")),
            run_dir,
            exit: Exit::Negative,
        }
    }

    #[test]
    fn a_command_is_words_and_nothing_of_a_shell() {
        let command = OnFinish::parse("notify 'a b' $HOME \"c;d\" | e\\ f").unwrap();
        assert_eq!(command.program, "notify");
        assert_eq!(command.arguments, ["a b", "$HOME", "c;d", "|", "e f"]);
        for wrong in ["", "   ", "''", "say 'x"] {
            assert!(OnFinish::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn it_gets_the_result_and_the_bundle_both_ways() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let script = "printf '%s|' \"$1\" \"$2\" \"$PROCTOR_RESULT\" \"$PROCTOR_BUNDLE\" \"$PROCTOR_EXIT_CODE\" > \"$PROCTOR_RUN_DIR/out\"";
        let command = OnFinish {
            program: "sh".into(),
            arguments: vec!["-c".into(), script.into(), "sh".into()],
        };
        command.tell(&told(folder.path())).unwrap();
        let line = "bench: 1 of 2 methods completed";
        let bundle = "/runs/a b/bundle";
        assert_eq!(
            std::fs::read_to_string(out).unwrap(),
            format!("{line}|{bundle}|{line}|{bundle}|1|")
        );
    }

    #[test]
    fn its_failures_are_told_and_its_time_is_bounded() {
        let here = Path::new(".");
        let fails = |text: &str, bound| {
            let command = OnFinish::parse(text).unwrap();
            command.tell_within(&told(here), bound).unwrap_err()
        };
        let minute = Duration::from_mins(1);
        assert!(fails("false", minute).contains("failed"), "false");
        let text = fails("/nowhere/at/all", minute);
        assert!(text.contains("could not be started"), "{text}");
        let begun = Instant::now();
        let text = fails("sh -c 'sleep 50 & wait'", Duration::from_secs(1));
        assert!(text.contains("longer than 1 s"), "{text}");
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
