//! The shell around the machine: one thread, one poll loop, and nothing that can wait without a bound.

mod finish;
mod pipes;

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use proctor_wire::ToWorker;

use super::feed::{Feed, Kind};
use super::machine::{Action, Event, Machine};
use super::pace::Pace;
use super::stderr_log::StderrLog;
use super::{Control, Ending, Exam, Progress, Stop, WaitStatus};
use crate::room::{Heard, Report, Room, RoomSpec, SETTLE, monotonic_ns, readable_bytes};

/// How long the count of leaked processes may take beyond [`SETTLE`].
const LEFT_BOUND: Duration = Duration::from_millis(500);
/// Bytes read from one pipe in one turn.
const READ_BYTES: usize = 64 << 10;
/// The least time between two reports of progress.
const PROGRESS_NS: u64 = 50_000_000;

/// What the conversation needs next.
enum Next {
    Open(u32),
    Finish,
    Over,
}

/// Runs the attempt in a room that stands.
pub(super) fn converse(
    room: Room,
    spec: &RoomSpec,
    budget: Duration,
    exam: &mut dyn Exam,
    control: &Control,
) -> Ending {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4);
    let deadline = room.spawned_at.saturating_add(nanoseconds(budget));
    let machine = Machine::new(exam.count(), deadline, nanoseconds(spec.grace))
        .limit_output(spec.limits.output_bytes);
    let mut shell = Shell {
        deadline,
        looked_at: room.spawned_at,
        room,
        machine,
        exam,
        control,
        stop: None,
        stderr: None,
        stdout_open: true,
        stderr_open: true,
        ended: false,
        stage_gone: false,
        settling_since: None,
        left: None,
        scratch_full: None,
        killed_at: None,
        leaked_pipe: false,
        freezing: false,
        stalled: 0,
        told_worker: false,
        told_items_at: 0,
        pace: Pace::default(),
        buffer: vec![0; READ_BYTES],
    };
    match StderrLog::create(&spec.stderr_log, spec.stderr_cap) {
        Ok(log) => shell.stderr = Some(log),
        Err(error) => shell.our_failure(format!("{}: {error}", spec.stderr_log.display())),
    }
    shell.questions();
    shell.finish(spec)
}

#[expect(
    clippy::struct_excessive_bools,
    reason = "what is open and what was seen are independent"
)]
struct Shell<'a> {
    deadline: u64,
    room: Room,
    machine: Machine,
    exam: &'a mut dyn Exam,
    control: &'a Control,
    stop: Option<Stop>,
    stderr: Option<StderrLog>,
    stdout_open: bool,
    stderr_open: bool,
    /// The worker itself has ended.
    ended: bool,
    /// The stage is gone and says nothing any more.
    stage_gone: bool,
    settling_since: Option<u64>,
    /// The stage's count of processes left and their CPU time; what it does not know is `None`.
    left: Option<(Option<u32>, Option<u64>)>,
    /// Whether the room's own file system was full when the worker had ended.
    scratch_full: Option<bool>,
    killed_at: Option<u64>,
    leaked_pipe: bool,
    /// The room was asked to stand still, and has not been told to go on.
    freezing: bool,
    /// Nanoseconds in which the supervisor did not look at the worker though it should have.
    stalled: u64,
    /// When it last did.
    looked_at: u64,
    told_worker: bool,
    told_items_at: u64,
    pace: Pace,
    buffer: Vec<u8>,
}

impl Shell<'_> {
    /// Puts the questions, one dataset after the other, until nothing more is to be said.
    fn questions(&mut self) {
        let hello = self.exam.hello();
        let mut next = self.pump(Feed::new(&mut std::iter::once(hello), Kind::Hello));
        loop {
            next = match next {
                Next::Open(number) => match self.exam.open(number) {
                    Ok(dataset) => {
                        let items = dataset.item_count();
                        self.event(Event::Opened { items });
                        self.exam.progress(Progress::Dataset {
                            dataset: number,
                            items,
                        });
                        let mut messages = dataset.messages(number);
                        self.pump(Feed::new(&mut messages, Kind::Dataset))
                    }
                    Err(error) => {
                        self.our_failure(format!("opening dataset {number}: {error}"));
                        self.pump(Feed::new(&mut std::iter::empty(), Kind::Hello))
                    }
                },
                Next::Finish => self.pump(Feed::new(
                    &mut std::iter::once(ToWorker::Finish {}),
                    Kind::Finish,
                )),
                Next::Over => return,
            };
        }
    }

    fn event(&mut self, event: Event) {
        self.machine.event(event, monotonic_ns());
    }

    fn our_failure(&mut self, reason: String) {
        self.event(Event::OurFailure(reason));
    }

    /// Sends, listens and acts until the machine wants something new sent or the attempt is over.
    fn pump(&mut self, mut feed: Feed<'_>) -> Next {
        loop {
            let now = monotonic_ns();
            self.hear();
            self.stand_still();
            if let Some(bytes) = self.room.overrun() {
                self.event(Event::Overrun(bytes));
            }
            while let Some(action) = self.machine.next(now) {
                match action {
                    Action::Open(dataset) => return Next::Open(dataset),
                    Action::Finish => return Next::Finish,
                    other => self.act(other),
                }
            }
            self.tell();
            if self.killed_at.is_some() || self.settled() {
                return Next::Over;
            }
            self.wait(&mut feed);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Store {
                dataset,
                scores,
                elapsed,
            } => {
                let stored = self.exam.checkpoint(dataset, scores, seconds(elapsed));
                self.stored(dataset, stored);
            }
            Action::Refused {
                dataset,
                error,
                elapsed,
            } => {
                let stored = self.exam.failed(dataset, &error, seconds(elapsed));
                self.stored(dataset, stored);
            }
            Action::Terminate => self.room.terminate(),
            Action::Kill => self.kill(),
            Action::Settle => self.settling_since = Some(monotonic_ns()),
            // Only a living worker can be asked something.
            Action::Open(_) | Action::Finish => {}
        }
    }

    fn stored(&mut self, dataset: u32, stored: io::Result<()>) {
        match stored {
            Ok(()) => self.event(Event::Stored),
            Err(error) => self.our_failure(format!("storing dataset {dataset}: {error}")),
        }
    }

    fn kill(&mut self) {
        self.room.kill();
        self.killed_at.get_or_insert_with(monotonic_ns);
    }

    /// True when a worker that ended by itself was looked after, and the room can be emptied.
    fn settled(&mut self) -> bool {
        let Some(since) = self.settling_since else {
            return false;
        };
        let waited = Duration::from_nanos(monotonic_ns().saturating_sub(since));
        let pipe = !self.stdout_open || waited >= SETTLE;
        let count = self.left.is_some() || self.stage_gone || waited >= SETTLE + LEFT_BOUND;
        if pipe && count {
            self.leaked_pipe = self.stdout_open;
            self.kill();
        }
        pipe && count
    }

    /// Does what [`Control::pause`] and [`Control::resume`] asked. A worker that ended is not kept waiting: what it left
    /// is looked after, and the attempt is over soon.
    fn stand_still(&mut self) {
        let asked = self.control.pause_asked();
        if asked && !self.freezing && !self.ended {
            self.freezing = true;
            if let Some(all) = self.room.freeze() {
                self.frozen(all);
            }
        }
        if !asked && self.freezing {
            self.freezing = false;
            let now = monotonic_ns();
            self.machine.event(Event::Resume, now);
            self.room.thaw();
            let pauses = self.machine.pauses(self.room.spawned_at, now);
            let total = pauses.iter().map(|pause| pause.length_ns).sum();
            self.exam.progress(Progress::Paused {
                total: Duration::from_nanos(total),
            });
        }
    }

    /// A room that did not stand still went on, and so does its time.
    fn frozen(&mut self, all: bool) {
        if all {
            self.event(Event::Pause);
        }
        self.control.stands_still();
    }

    /// Hears the stage out. When the worker has ended, everything it wrote before is looked at first.
    fn hear(&mut self) {
        while !self.stage_gone {
            match self.room.hear() {
                Heard::Nothing => return,
                Heard::Report(Report::Started { .. }) => {
                    let ago = monotonic_ns().saturating_sub(self.room.spawned_at);
                    let ago = Duration::from_nanos(ago);
                    self.exam.progress(Progress::Started { ago });
                }
                Heard::Report(Report::Failed { reason }) => {
                    self.ended = true;
                    self.our_failure(format!("the worker could not be started: {reason}"));
                }
                Heard::Report(Report::NotExecutable { reason }) => {
                    self.ended = true;
                    self.event(Event::NotExecutable(reason));
                }
                Heard::Report(Report::Ended { status, at }) => {
                    self.ended = true;
                    self.last_words(at);
                    self.machine.event(Event::Ended(wait_status(status)), at);
                }
                Heard::Report(Report::Left {
                    processes,
                    cpu_ns,
                    full,
                }) => {
                    self.left = Some((processes, cpu_ns));
                    self.scratch_full = full;
                }
                Heard::Report(Report::Frozen(all)) => {
                    if self.freezing && self.control.pause_asked() {
                        self.frozen(all);
                    }
                }
                Heard::Report(Report::Empty) => {}
                Heard::Closed => {
                    self.stage_gone = true;
                    if !self.ended {
                        self.ended = true;
                        self.our_failure("the room's own process ended before the worker".into());
                    }
                }
            }
        }
    }

    /// What was in the pipe when the worker ended was written in time; what comes after was written by somebody else.
    fn last_words(&mut self, at: u64) {
        // Words that were read before this turn are older than the end.
        self.heed(at);
        let mut expected = readable_bytes(self.room.stdout.as_fd());
        while expected > 0 && self.stdout_open {
            let length = expected.min(READ_BYTES);
            let count = self.read_stdout(length);
            expected -= count.min(expected);
            if count == 0 {
                break;
            }
            self.heed(at);
        }
    }

    /// Lets the machine look at what was read, as at a given time.
    fn heed(&mut self, at: u64) {
        while let Some(action) = self.machine.next(at) {
            self.act(action);
        }
    }

    /// Tells the exam how it goes.
    fn tell(&mut self) {
        if !self.told_worker && !self.machine.worker.is_empty() {
            self.told_worker = true;
            let worker = self.machine.worker.as_str();
            self.exam.progress(Progress::Hello { worker });
        }
        let now = monotonic_ns();
        if now >= self.told_items_at
            && let Some((dataset, done)) = self.machine.open_dataset()
        {
            self.told_items_at = now + PROGRESS_NS;
            self.exam.progress(Progress::Items { dataset, done });
        }
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

fn wait_status(raw: i32) -> WaitStatus {
    if libc::WIFSIGNALED(raw) {
        WaitStatus::Signaled {
            signal: libc::WTERMSIG(raw),
            core: libc::WCOREDUMP(raw),
        }
    } else {
        WaitStatus::Exited(libc::WEXITSTATUS(raw))
    }
}
