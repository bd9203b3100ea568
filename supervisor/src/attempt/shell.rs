//! The shell around the machine: one thread, one poll loop, and nothing that can wait without a bound.

mod finish;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
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
/// Bytes written in one turn.
const WRITE_BYTES: usize = 256 << 10;
/// The least time between two reports of progress.
const PROGRESS_NS: u64 = 50_000_000;
/// A running worker is looked at this often, also when nothing happens.
const LOOK_NS: u64 = 250_000_000;
/// A look that comes this late says that the supervisor did not run.
const STALLED_NS: u64 = 1_000_000_000;
/// How often a second request to stop is looked for during a grace period.
const STOP_NS: u64 = 20_000_000;

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

    /// Reads at most so many bytes of standard output; gives back how many came.
    fn read_stdout(&mut self, length: usize) -> usize {
        match nix::unistd::read(&self.room.stdout, &mut self.buffer[..length]) {
            Ok(0) => self.stdout_open = false,
            Ok(count) => {
                self.machine.bytes(&self.buffer[..count]);
                self.pace.read(&self.buffer[..count], monotonic_ns());
                return count;
            }
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(_) => self.stdout_open = false,
        }
        0
    }

    fn read_stderr(&mut self) -> usize {
        match nix::unistd::read(&self.room.stderr, &mut self.buffer) {
            Ok(0) => self.stderr_open = false,
            Ok(count) => {
                let written = self
                    .stderr
                    .as_mut()
                    .map_or(Ok(()), |log| log.write(&self.buffer[..count]));
                if let Err(error) = written {
                    self.our_failure(format!("the log of standard error: {error}"));
                }
                self.machine.stderr(count, monotonic_ns());
                return count;
            }
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(_) => self.stderr_open = false,
        }
        0
    }

    /// Waits until something can be done, and does the reading and writing.
    fn wait(&mut self, feed: &mut Feed<'_>) {
        let sending = self.prepare(feed);
        let ready = self.poll(sending);
        if ready.stop {
            // A worker that ended before it was asked to stop ended by itself.
            self.hear();
        }
        if ready.stop
            && let Some(stop) = self.control.stop()
            && self.stop != Some(stop)
        {
            self.stop = Some(stop);
            self.event(Event::Stop(stop));
        }
        if ready.stderr {
            self.read_stderr();
        }
        if ready.stdout && !ready.control {
            self.read_stdout(READ_BYTES);
        }
        if ready.stdin {
            self.send(feed);
            // That everything was sent must be known before anything is heard: a quick worker has answered and ended
            // by the next turn.
            self.prepare(feed);
        }
    }

    /// True when there is something to send.
    fn prepare(&mut self, feed: &mut Feed<'_>) -> bool {
        if self.room.stdin.is_none() || self.ended {
            return false;
        }
        match feed.fill() {
            Ok(more) => {
                if !more && !feed.all_sent {
                    feed.all_sent = true;
                    match feed.kind {
                        Kind::Hello => {}
                        Kind::Dataset => self.event(Event::AllSent),
                        // Nothing more will come.
                        Kind::Finish => self.room.stdin = None,
                    }
                }
                more
            }
            Err(reason) => {
                self.our_failure(reason);
                false
            }
        }
    }

    fn poll(&mut self, sending: bool) -> Ready {
        let now = monotonic_ns();
        let mut until = self.machine.wake_at();
        let mut earlier = |at: u64| until = Some(until.map_or(at, |other| other.min(at)));
        if let Some(since) = self.settling_since {
            let settle = since + SETTLE.as_nanos() as u64;
            earlier(if now < settle {
                settle
            } else {
                settle + LEFT_BOUND.as_nanos() as u64
            });
        }
        let stopping = self.stop.is_some();
        if stopping {
            earlier(now + STOP_NS);
        }
        let too_fast = self.pace.wait_until(now);
        if let Some(at) = too_fast {
            earlier(at);
        }
        let looking = !self.ended && !self.machine.paused();
        if looking {
            earlier(now + LOOK_NS);
        }
        self.look_again();
        let timeout =
            until.map(|at| TimeSpec::from_duration(Duration::from_nanos(at.saturating_sub(now))));
        let mut polled: [Option<(BorrowedFd<'_>, PollFlags)>; 6] = [None; 6];
        if sending && let Some(stdin) = &self.room.stdin {
            polled[0] = Some((stdin.as_fd(), PollFlags::POLLOUT));
        }
        if self.stdout_open && too_fast.is_none() {
            polled[1] = Some((self.room.stdout.as_fd(), PollFlags::POLLIN));
        }
        if self.stderr_open {
            polled[2] = Some((self.room.stderr.as_fd(), PollFlags::POLLIN));
        }
        if !(self.stage_gone || self.ended && self.left.is_some()) {
            polled[3] = Some((self.room.control_fd(), PollFlags::POLLIN));
        }
        if !stopping {
            polled[4] = Some((self.control.wake_fd(), PollFlags::POLLIN));
        }
        polled[5] = Some((self.control.nudge_fd(), PollFlags::POLLIN));
        let mut fds: Vec<PollFd<'_>> = polled
            .iter()
            .flatten()
            .map(|(fd, flags)| PollFd::new(*fd, *flags))
            .collect();
        let _ = ppoll(&mut fds, timeout, None);
        let mut answers = fds.iter().map(|fd| fd.any().unwrap_or(false));
        let mut ready = polled.map(|wanted| wanted.is_some() && answers.next() == Some(true));
        ready[4] |= stopping;
        let [stdin, stdout, stderr, control, stop, nudged] = ready;
        if nudged {
            self.control.nudged();
        }
        let now = monotonic_ns();
        if looking {
            self.look(until.unwrap_or(now), now);
        }
        self.looked_at = now;
        Ready {
            stdin,
            stdout,
            stderr,
            control,
            stop,
        }
    }

    /// It may have been stopped while it was not waiting for anything, too.
    fn look_again(&mut self) {
        let now = monotonic_ns();
        if !self.ended && !self.machine.paused() {
            self.look(self.looked_at, now);
        }
        self.looked_at = now;
    }

    /// Takes note of a look that was due before it came.
    fn look(&mut self, due: u64, now: u64) {
        let late = now.saturating_sub(due);
        if late >= STALLED_NS {
            self.stalled += late;
        }
    }

    /// Writes what fits without waiting.
    fn send(&mut self, feed: &mut Feed<'_>) {
        let mut sent = 0;
        while sent < WRITE_BYTES {
            match feed.fill() {
                Ok(true) => {}
                // `prepare` takes note.
                Ok(false) | Err(_) => return,
            }
            let Some(stdin) = &self.room.stdin else {
                return;
            };
            match nix::unistd::write(stdin, feed.unwritten()) {
                Ok(count) => {
                    feed.wrote(count);
                    sent += count;
                    if feed.kind == Kind::Dataset && !feed.begun {
                        feed.begun = true;
                        self.event(Event::FirstByte);
                    }
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return,
                // The worker does not listen any more; how it ends is its own affair.
                Err(_) => {
                    self.room.stdin = None;
                    return;
                }
            }
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

/// Which descriptors the poll found ready.
#[expect(clippy::struct_excessive_bools, reason = "one for each descriptor")]
struct Ready {
    stdin: bool,
    stdout: bool,
    stderr: bool,
    control: bool,
    stop: bool,
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
