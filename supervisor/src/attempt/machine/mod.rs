//! The rules of an attempt, without I/O: `(state, event, now) -> (state, actions)`.
//!
//! The shell tells the machine what happened and when, and carries out what the machine answers. Time is nanoseconds on
//! one clock and never goes back; while the attempt is paused nothing runs out. The first cause of an end wins and fixes
//! the verdict; whatever comes later is a fact beside it.

mod conversation;
mod event;
mod pauses;
mod phase;
mod words;

use proctor_protocol::outcome::Outcome;
use proctor_wire::FromWorker;
use proctor_wire::limits::MAX_ERROR_CHARS;
use proctor_wire::line::{LineBuffer, LineTooLong};

use super::{Pause, Stop, WaitStatus};

pub(super) use event::{Action, Event};
use pauses::Pauses;
use phase::Phase;
use words::{clean, no_message, quote};

/// Standard output that is allowed before any dataset is opened, for hellos, signs of life and errors.
const OUTPUT_BASE: u64 = 16 << 20;
/// Standard output that is allowed for each score asked for. One score in a line of its own takes about 70 bytes.
const OUTPUT_PER_ITEM: u64 = 128;
/// How long a worker that gave up may take to end by itself.
const GIVE_UP_NS: u64 = 1_000_000_000;
/// The longest name of a worker that is kept.
const MAX_WORKER_CHARS: usize = 200;

/// The state of an attempt. All its moments are on the clock that stands still while the attempt is paused; what comes in
/// and goes out is on the clock of the shell.
#[derive(Debug)]
pub(super) struct Machine {
    pauses: Pauses,
    total: u32,
    deadline: u64,
    grace: u64,
    phase: Phase,
    lines: LineBuffer,
    /// Set when the byte stream can no longer be cut into lines.
    deaf: bool,
    /// Lines that were looked at, the one under way included.
    line_number: u64,
    /// Bytes of these lines, and how many there may be.
    line_bytes: u64,
    allowance: u64,
    /// What standard output and standard error may have together, and what came on standard error.
    output_limit: Option<u64>,
    stderr_bytes: u64,
    /// Verdict and when it was fixed.
    verdict: Option<(Outcome, u64)>,
    /// When SIGTERM's grace is over.
    kill_at: Option<u64>,
    /// When a worker that gave up must have ended.
    leave_by: Option<u64>,
    killed: bool,
    /// True when the deadline ended the attempt.
    deadline_passed: bool,
    failed: u32,
    pending: std::collections::VecDeque<Action>,
    pub(super) wait_status: Option<WaitStatus>,
    pub(super) worker: String,
    pub(super) worker_error: Option<String>,
    pub(super) checkpoints: u32,
    pub(super) late_rows: u64,
    pub(super) stdout_bytes: u64,
    /// Items of the open dataset finished by the worker's own count.
    claimed: u64,
}

impl Machine {
    /// An attempt at `total` datasets that must be over by `deadline`; `grace` lies between SIGTERM and SIGKILL.
    pub(super) fn new(total: u32, deadline: u64, grace: u64) -> Self {
        Self {
            pauses: Pauses::default(),
            total,
            deadline,
            grace,
            phase: Phase::Hello,
            lines: LineBuffer::new(),
            deaf: false,
            line_number: 0,
            line_bytes: 0,
            allowance: OUTPUT_BASE,
            output_limit: None,
            stderr_bytes: 0,
            verdict: None,
            kill_at: None,
            leave_by: None,
            killed: false,
            deadline_passed: false,
            failed: 0,
            pending: std::collections::VecDeque::new(),
            wait_status: None,
            worker: String::new(),
            worker_error: None,
            checkpoints: 0,
            late_rows: 0,
            stdout_bytes: 0,
            claimed: 0,
        }
    }

    /// Limits standard output and standard error together, in bytes.
    pub(super) fn limit_output(mut self, bytes: Option<u64>) -> Self {
        self.output_limit = bytes;
        self
    }

    /// Takes note of bytes on standard error.
    pub(super) fn stderr(&mut self, bytes: usize, now: u64) {
        self.stderr_bytes += bytes as u64;
        self.look_at_output(self.pauses.running(now));
    }

    /// Ends the attempt when there was too much output. Only lines that were looked at count, so that it does not matter
    /// how the bytes arrived.
    fn look_at_output(&mut self, now: u64) {
        if let Some(limit) = self.output_limit
            && self.verdict.is_none()
            && self.line_bytes.saturating_add(self.stderr_bytes) > limit
        {
            let which = format!("output: more than {limit} bytes");
            self.end(Outcome::ResourceLimit(which), now);
        }
    }

    /// The verdict once it is fixed and nothing can overrule it, and when it was fixed, pauses left out.
    pub(super) fn verdict(&self) -> Option<&(Outcome, u64)> {
        self.verdict
            .as_ref()
            .filter(|_| self.phase != Phase::Closing)
    }

    /// True when the deadline ended the attempt.
    pub(super) fn deadline_passed(&self) -> bool {
        self.deadline_passed
    }

    /// When [`Machine::next`] is to be called at the latest; `None` when the machine waits for nothing.
    pub(super) fn wake_at(&self) -> Option<u64> {
        let running = match (self.verdict.is_some(), self.kill_at) {
            (_, Some(at)) => Some(at),
            (false, None) => Some(self.leave_by.unwrap_or(self.deadline)),
            (true, None) => None,
        };
        self.pauses.real(running?)
    }

    /// True while the attempt stands still.
    pub(super) fn paused(&self) -> bool {
        self.pauses.standing()
    }

    /// A moment with the pauses before it left out.
    pub(super) fn running(&self, at: u64) -> u64 {
        self.pauses.running(at)
    }

    /// When the attempt stood still, counted from its spawn.
    pub(super) fn pauses(&self, spawned_at: u64, now: u64) -> Vec<Pause> {
        self.pauses.list(spawned_at, now)
    }

    /// The dataset that is open and the items done, for display.
    pub(super) fn open_dataset(&self) -> Option<(u32, u64)> {
        match &self.phase {
            Phase::Asking(question) => {
                let done = (question.scores.len() as u64).max(self.claimed);
                Some((question.dataset, done.min(question.items)))
            }
            _ => None,
        }
    }

    /// Takes in bytes of the worker's standard output; [`Machine::next`] looks at them.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.stdout_bytes += bytes.len() as u64;
        if !self.deaf {
            self.lines.push(bytes);
        }
    }

    /// Takes in an event; [`Machine::next`] gives the actions.
    pub(super) fn event(&mut self, event: Event, now: u64) {
        // What was made durable counts, even if that took until after the deadline.
        if event == Event::Stored {
            self.stored();
        }
        if event == Event::Resume {
            self.pauses.end(now);
        }
        let real = now;
        let now = self.pauses.running(real);
        self.look_at_clock(now);
        match event {
            Event::Stored | Event::Resume => {}
            Event::Pause => self.pauses.begin(real),
            Event::Opened { items } => self.opened(items),
            Event::FirstByte => {
                if let Phase::Asking(question) = &mut self.phase {
                    question.first_byte.get_or_insert(now);
                }
            }
            Event::AllSent => self.all_sent(),
            Event::NotExecutable(reason) => {
                let what = format!("could not be started: {reason}");
                self.end(Outcome::ProtocolError(clean(&what, MAX_ERROR_CHARS)), now);
            }
            Event::OurFailure(reason) => {
                if self.phase == Phase::Closing {
                    self.verdict = Some((Outcome::Infrastructure(reason), now));
                    self.phase = Phase::Over;
                } else {
                    self.end(Outcome::Infrastructure(reason), now);
                }
            }
            Event::Overrun(bytes) => {
                let which =
                    format!("disk: {bytes} bytes in the scratch directory, seen by polling");
                self.end(Outcome::ResourceLimit(which), now);
            }
            Event::Stop(stop) => self.stop(stop, now),
            Event::Ended(status) => self.ended(status, now),
        }
    }

    /// The next thing to do, lines that have arrived included; `None` when there is nothing to do now.
    pub(super) fn next(&mut self, now: u64) -> Option<Action> {
        let now = self.pauses.running(now);
        loop {
            if let Some(action) = self.pending.pop_front() {
                return Some(action);
            }
            self.look_at_clock(now);
            if self.deaf || !self.one_line(now) {
                return self.pending.pop_front();
            }
        }
    }

    fn look_at_clock(&mut self, now: u64) {
        if self.leave_by.is_some_and(|at| now >= at) {
            self.end(self.incomplete(), now);
        }
        if now >= self.deadline && self.verdict.is_none() {
            self.deadline_passed = true;
            self.end_politely(Outcome::Timeout, now);
        }
        if self.kill_at.is_some_and(|at| now >= at) {
            self.kill();
        }
    }

    /// Looks at one line; false when there is none.
    fn one_line(&mut self, now: u64) -> bool {
        let message = match self.lines.next_line() {
            Ok(None) => return false,
            Ok(Some(line)) => {
                self.line_number += 1;
                self.line_bytes += line.len() as u64 + 1;
                FromWorker::parse(line).map_err(|error| no_message(&error, line))
            }
            Err(LineTooLong { most }) => {
                self.line_number += 1;
                // The rest of the stream cannot be cut into lines any more.
                self.deaf = true;
                let lines = std::mem::take(&mut self.lines);
                let start = quote(lines.rest());
                Err(format!("is longer than {most} bytes: {start}"))
            }
        };
        self.look_at_output(now);
        if self.verdict.is_none() && self.line_bytes > self.allowance {
            let which = format!(
                "output: more than {} bytes on standard output",
                self.allowance
            );
            self.end(Outcome::ResourceLimit(which), now);
            return true;
        }
        // After its last word nothing counts and nothing harms: a process the worker leaves behind may go on writing, and
        // whether that comes before or after the worker's exit is chance.
        let last_word = matches!(self.phase, Phase::Done(_) | Phase::GivenUp);
        if self.verdict.is_some() || last_word {
            if let Ok(FromWorker::Scores { values, .. }) = message {
                self.late_rows += values.len() as u64;
            }
            return true;
        }
        let broken = match message {
            Ok(message) => self
                .message(message, now)
                .err()
                .map(|what| format!(": {what}")),
            Err(what) => Some(format!(" {what}")),
        };
        if let Some(what) = broken {
            let what = format!("stdout line {}{what}", self.line_number);
            self.end(Outcome::ProtocolError(clean(&what, MAX_ERROR_CHARS)), now);
        }
        true
    }

    fn stop(&mut self, stop: Stop, now: u64) {
        let outcome = if stop.cancelled {
            Outcome::Cancelled
        } else {
            Outcome::Interrupted
        };
        if self.verdict.is_none() {
            self.end_politely(outcome, now);
        }
        if stop.now && self.kill_at.is_some() {
            self.kill();
        }
    }

    fn ended(&mut self, status: WaitStatus, now: u64) {
        if self.wait_status.is_some() {
            return;
        }
        self.wait_status = Some(status);
        if self.verdict.is_some() {
            // The leader left during its grace; what it left behind has none.
            if !self.killed {
                self.kill();
            }
            return;
        }
        let outcome = match status {
            WaitStatus::Signaled { signal, .. } => Outcome::Signal(signal),
            WaitStatus::Exited(0) => self.ended_well(),
            WaitStatus::Exited(code) => Outcome::Exit(code),
        };
        self.verdict = Some((outcome, now));
        if self.phase != Phase::Closing {
            self.phase = Phase::Over;
        }
        self.pending.push_back(Action::Settle);
    }

    fn incomplete(&self) -> Outcome {
        Outcome::Incomplete {
            done: self.checkpoints,
            total: self.total,
        }
    }

    /// Exit code 0: was everything answered?
    fn ended_well(&mut self) -> Outcome {
        let Phase::Done(last) = &mut self.phase else {
            return self.incomplete();
        };
        if let Some(answer) = last.take() {
            self.phase = Phase::Closing;
            self.pending.push_back(Action::Store {
                dataset: answer.dataset,
                scores: answer.scores,
                elapsed: answer.elapsed,
            });
        }
        if self.failed > 0 {
            Outcome::DatasetErrors {
                failed: self.failed,
                total: self.total,
            }
        } else {
            Outcome::Completed
        }
    }

    /// Fixes the verdict and kills at once.
    fn end(&mut self, outcome: Outcome, now: u64) {
        if self.verdict.is_none() {
            self.verdict = Some((outcome, now));
            self.phase = Phase::Over;
            self.pending.clear();
            self.kill();
        }
    }

    /// Fixes the verdict, and kills after the grace period if there is one.
    fn end_politely(&mut self, outcome: Outcome, now: u64) {
        self.verdict = Some((outcome, now));
        self.phase = Phase::Over;
        // What was about to be asked no longer is.
        self.pending.clear();
        if self.grace == 0 {
            self.kill();
        } else {
            self.kill_at = Some(now.saturating_add(self.grace));
            self.pending.push_back(Action::Terminate);
        }
    }

    fn kill(&mut self) {
        self.kill_at = None;
        if !self.killed {
            self.killed = true;
            self.pending.push_back(Action::Kill);
        }
    }
}

#[cfg(test)]
mod tests;
