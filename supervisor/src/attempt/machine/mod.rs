//! The rules of an attempt, without I/O: `(state, event, now) -> (state, actions)`.
//!
//! The shell tells the machine what happened and when, and carries out what the machine answers. Time is nanoseconds on
//! one clock and never goes back. The first cause of an end wins and fixes the verdict; whatever comes later is a fact
//! beside it.

mod event;
mod phase;
mod words;

use proctor_protocol::outcome::Outcome;
use proctor_wire::limits::{MAX_ERROR_CHARS, MAX_LINE_BYTES};
use proctor_wire::line::{LineBuffer, LineTooLong};
use proctor_wire::{FromWorker, PROTOCOL_VERSION};

use super::{Stop, WaitStatus};

pub(super) use event::{Action, Event};
use phase::{Answer, Phase, Question, name};
use words::{clean, no_message, quote};

/// Standard output that is allowed before any dataset is opened, for hellos, signs of life and errors.
const OUTPUT_BASE: u64 = 16 << 20;
/// Standard output that is allowed for each score asked for. One score in a line of its own takes about 70 bytes.
const OUTPUT_PER_ITEM: u64 = 128;
/// How long a worker that gave up may take to end by itself.
const GIVE_UP_NS: u64 = 1_000_000_000;
/// The longest name of a worker that is kept.
const MAX_WORKER_CHARS: usize = 200;

/// The state of an attempt.
#[derive(Debug)]
pub(super) struct Machine {
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
        self.look_at_output(now);
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

    /// The verdict once it is fixed and nothing can overrule it, and when it was fixed.
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
        match (self.verdict.is_some(), self.kill_at) {
            (_, Some(at)) => Some(at),
            (false, None) => Some(self.leave_by.unwrap_or(self.deadline)),
            (true, None) => None,
        }
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
        self.look_at_clock(now);
        match event {
            Event::Stored => {}
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
            Event::Stop(stop) => self.stop(stop, now),
            Event::Ended(status) => self.ended(status, now),
        }
    }

    /// The next thing to do, lines that have arrived included; `None` when there is nothing to do now.
    pub(super) fn next(&mut self, now: u64) -> Option<Action> {
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
            Err(LineTooLong) => {
                self.line_number += 1;
                // The rest of the stream cannot be cut into lines any more.
                self.deaf = true;
                let lines = std::mem::take(&mut self.lines);
                let start = quote(lines.rest());
                Err(format!("is longer than {MAX_LINE_BYTES} bytes: {start}"))
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

    /// What the worker says, by the rules of the conversation.
    fn message(&mut self, message: FromWorker, now: u64) -> Result<(), String> {
        let what = name(&message);
        match (&mut self.phase, message) {
            (Phase::Hello, FromWorker::Hello { protocol, worker }) => {
                self.worker = clean(&worker, MAX_WORKER_CHARS);
                if protocol != PROTOCOL_VERSION {
                    return Err(format!(
                        "the worker speaks version {protocol}, this build version {PROTOCOL_VERSION}"
                    ));
                }
                self.go_on(0);
                Ok(())
            }
            (
                Phase::Hello | Phase::Opening(_) | Phase::Asking(_) | Phase::Finishing(_),
                FromWorker::WorkerError { error },
            ) => {
                self.worker_error = Some(clean(&error, MAX_ERROR_CHARS));
                self.phase = Phase::GivenUp;
                // What it gave up for came first, so that a deadline in between changes nothing.
                self.leave_by = Some(now.saturating_add(GIVE_UP_NS).min(self.deadline));
                Ok(())
            }
            (Phase::Hello, _) => Err(format!("`{what}` came before `hello`")),
            (_, FromWorker::Hello { .. }) => Err("`hello` came twice".into()),
            // Only of a worker that has ended is anything heard here: its last words, before a question that will not be put.
            (Phase::Opening(open), FromWorker::DatasetError { dataset, .. })
                if *open == dataset =>
            {
                Ok(())
            }
            (
                Phase::Opening(_) | Phase::Asking(_) | Phase::Finishing(_),
                FromWorker::Progress { items },
            ) => {
                self.claimed = items;
                Ok(())
            }
            (Phase::Asking(question), FromWorker::Scores { start, values }) => {
                question.take(start, &values, now)
            }
            (Phase::Asking(question), FromWorker::DatasetDone { dataset }) => {
                let (asked, items) = (question.dataset, question.items);
                let got = question.scores.len() as u64;
                if dataset != asked {
                    return Err(format!(
                        "`dataset_done` names dataset {dataset}, open is {asked}"
                    ));
                }
                if got != items || !question.all_sent || question.refused.is_some() {
                    return Err(format!(
                        "`dataset_done` for dataset {dataset} after {got} of {items} scores"
                    ));
                }
                self.answered();
                Ok(())
            }
            (Phase::Asking(question), FromWorker::DatasetError { dataset, error }) => {
                if dataset != question.dataset || question.refused.is_some() {
                    return Err(format!(
                        "`dataset_error` names dataset {dataset}, open is {}",
                        question.dataset
                    ));
                }
                question.refused = Some((clean(&error, MAX_ERROR_CHARS), now));
                if question.all_sent {
                    self.refused();
                }
                Ok(())
            }
            (Phase::Finishing(last), FromWorker::Done {}) => {
                self.phase = Phase::Done(last.take());
                Ok(())
            }
            (Phase::Asking(_), FromWorker::Done {}) => {
                Err("`done` came before the worker was told to finish".into())
            }
            (_, _) => Err(format!("`{what}` came when nothing was asked")),
        }
    }

    /// Asks for the next dataset, or tells the worker to finish.
    fn go_on(&mut self, next: u32) {
        if next < self.total {
            self.phase = Phase::Opening(next);
            self.pending.push_back(Action::Open(next));
        } else {
            self.phase = Phase::Finishing(None);
            self.pending.push_back(Action::Finish);
        }
    }

    fn opened(&mut self, items: u64) {
        if let Phase::Opening(dataset) = self.phase {
            self.claimed = 0;
            self.allowance = self
                .allowance
                .saturating_add(items.saturating_mul(OUTPUT_PER_ITEM));
            self.phase = Phase::Asking(Question {
                dataset,
                items,
                scores: Vec::new(),
                first_byte: None,
                last_score: 0,
                all_sent: false,
                refused: None,
            });
        }
    }

    fn all_sent(&mut self) {
        if let Phase::Asking(question) = &mut self.phase {
            question.all_sent = true;
            if question.refused.is_some() {
                self.refused();
            }
        }
    }

    /// The open dataset is answered completely. The last one waits for the worker's proper end.
    fn answered(&mut self) {
        let Phase::Asking(question) = &mut self.phase else {
            return;
        };
        let dataset = question.dataset;
        let elapsed = question.elapsed(question.last_score);
        let scores = std::mem::take(&mut question.scores);
        if dataset + 1 == self.total {
            self.phase = Phase::Finishing(Some(Answer {
                dataset,
                scores,
                elapsed,
            }));
            self.pending.push_back(Action::Finish);
        } else {
            self.phase = Phase::Storing {
                dataset,
                scored: true,
            };
            self.pending.push_back(Action::Store {
                dataset,
                scores,
                elapsed,
            });
        }
    }

    fn refused(&mut self) {
        let Phase::Asking(question) = &mut self.phase else {
            return;
        };
        let Some((error, at)) = question.refused.take() else {
            return;
        };
        let dataset = question.dataset;
        let elapsed = question.elapsed(at);
        self.phase = Phase::Storing {
            dataset,
            scored: false,
        };
        self.pending.push_back(Action::Refused {
            dataset,
            error,
            elapsed,
        });
    }

    fn stored(&mut self) {
        match self.phase {
            Phase::Storing { dataset, scored } => {
                if scored {
                    self.checkpoints += 1;
                } else {
                    self.failed += 1;
                }
                self.go_on(dataset + 1);
            }
            Phase::Closing => {
                self.checkpoints += 1;
                self.phase = Phase::Over;
            }
            _ => {}
        }
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
