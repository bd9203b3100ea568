//! How an attempt ended, in one sentence with its numbers.

use super::seconds;
use crate::rundir::plan::datasets;
use crate::rundir::state::Attempt;
use crate::rundir::{Part, regular};
use proctor_protocol::outcome::Outcome;
use std::path::Path;

/// What a sentence needs to know beside the outcome.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    /// Datasets that are finished, see [`Attempt::finished`].
    pub done: usize,
    /// Datasets asked for.
    pub total: usize,
    /// Seconds from spawn to verdict, with what earlier attempts used of the budget.
    pub wall_seconds: f64,
    /// The budget.
    pub budget_seconds: f64,
}

impl Numbers {
    /// The numbers of a method by its attempt that counts, if it has one.
    pub fn of(attempt: Option<&Attempt>, parts: &[Part], budget_seconds: f64) -> Self {
        let terminal = attempt.and_then(|attempt| attempt.terminal.as_ref());
        Self {
            done: attempt.map_or(0, |attempt| attempt.finished(parts)),
            total: datasets(parts),
            wall_seconds: terminal.map_or(0.0, |terminal| terminal.wall_seconds)
                + attempt.map_or(0.0, Attempt::earlier_seconds),
            budget_seconds,
        }
    }
}

/// The sentence, without a full stop.
pub fn sentence(outcome: &Outcome, numbers: Numbers) -> String {
    let Numbers {
        done,
        total,
        wall_seconds,
        budget_seconds,
    } = numbers;
    let wall = seconds(wall_seconds);
    let so_far = format!("{done} of {total} datasets finished");
    match outcome {
        Outcome::Completed => format!("completed in {wall}"),
        Outcome::Timeout => {
            format!(
                "used up its budget of {} and was killed; {so_far}",
                seconds(budget_seconds)
            )
        }
        Outcome::OutOfMemory => {
            format!("was killed by the kernel for memory after {wall}; {so_far}")
        }
        Outcome::ResourceLimit(which) => format!("passed a limit ({which}) after {wall}; {so_far}"),
        Outcome::Signal(number) => {
            let name = nix::sys::signal::Signal::try_from(*number).map_or_else(
                |_| String::new(),
                |signal| format!(" ({})", signal.as_str()),
            );
            format!("died of signal {number}{name} after {wall}; {so_far}")
        }
        Outcome::Exit(code) => format!("exited with code {code} after {wall}; {so_far}"),
        Outcome::ProtocolError(what) => {
            format!("broke the rules of the conversation: {what}; {so_far}")
        }
        Outcome::Incomplete { .. } => {
            format!("ended by itself after {wall} before everything was scored; {so_far}")
        }
        Outcome::DatasetErrors { failed, total } => {
            format!("could not score {failed} of {total} datasets, in {wall}")
        }
        Outcome::NotApplicable(reason) => format!("does not apply to this benchmark: {reason}"),
        Outcome::Interrupted => {
            format!("was interrupted after {wall}; {so_far}; not held against it")
        }
        Outcome::Cancelled => format!("was cancelled after {wall}; {so_far}; not held against it"),
        Outcome::Infrastructure(reason) => {
            format!("has no result: {reason}; not held against it")
        }
        Outcome::Unresolved => {
            "was tried as often as allowed without an answer; not held against it".into()
        }
    }
}

/// How much of the end of a log is looked at.
const TAIL_BYTES: u64 = 64 << 10;

/// The last `lines` lines of a log, for people; empty when there is none.
pub fn tail(log: &Path, lines: usize) -> Vec<String> {
    let Ok(bytes) = regular::read_end(log, TAIL_BYTES) else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&bytes);
    let mut last: Vec<String> = text
        .lines()
        .rev()
        .filter(|line| !line.trim().is_empty())
        .take(lines)
        .map(|line| super::plain(&line.chars().take(300).collect::<String>()))
        .collect();
    last.reverse();
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_its_numbers() {
        let numbers = Numbers {
            done: 1,
            total: 3,
            wall_seconds: 5.001,
            budget_seconds: 5.0,
        };
        assert_eq!(
            sentence(&Outcome::Timeout, numbers),
            "used up its budget of 5.000 s and was killed; 1 of 3 datasets finished"
        );
        assert_eq!(
            sentence(&Outcome::Signal(11), numbers),
            "died of signal 11 (SIGSEGV) after 5.001 s; 1 of 3 datasets finished"
        );
    }

    #[test]
    fn the_tail_is_short_and_harmless() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("stderr");
        std::fs::write(&log, b"one\ntwo\n\n\x1b[2Jthree\xff\n").unwrap();
        assert_eq!(tail(&log, 2), ["two", "\\u{1b}[2Jthree\u{fffd}"]);
        assert!(tail(&folder.path().join("none"), 2).is_empty());
    }
}
