//! A room with a worker in it, as the supervisor holds it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{chown, fchown};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::pipe2;

use super::accounts::Entry;
use super::adopted::{self, Adopting};
use super::cgroup::Cgroup;
use super::confine::{self, Confined};
use super::handover;
use super::launch::{Kind, Launched, Spawner};
use super::means::Namespaces;
use super::procfs::{self, Process};
use super::scratch::Scratch;
use super::slots::Counts;
use super::sys::{self, Received};
use super::talk::{MAX_REPORT, Order, Report, Word};
use super::usage::Usage;
use super::{Isolation, Kernel, RoomSpec, Rung, isolation, probe};

/// How long the processes of a control group may take to stand still; a process that waits for a disk stands still only
/// afterwards.
const FREEZE_BOUND: Duration = Duration::from_secs(1);

/// Why a room could not be made.
#[derive(Debug, thiserror::Error)]
#[error("the room could not be made: {0}")]
pub(crate) struct RoomError(String);

/// What the stage's socket gave.
pub(crate) enum Heard {
    /// A report.
    Report(Report),
    /// Nothing now.
    Nothing,
    /// The stage is gone.
    Closed,
}

/// A room with a worker in it.
pub(crate) struct Room {
    /// The worker's standard input; taken to close it.
    pub(crate) stdin: Option<OwnedFd>,
    /// The worker's standard output.
    pub(crate) stdout: OwnedFd,
    /// The worker's standard error.
    pub(crate) stderr: OwnedFd,
    /// What the room has; unknown until [`Report::Started`] was heard.
    pub(crate) isolation: Isolation,
    /// What it has when nothing is missing.
    planned: Isolation,
    /// The cores the worker could use when it began, as the kernel said; `None` until [`Report::Started`] was heard.
    pub(crate) cores: Option<Vec<usize>>,
    /// Just before the start, on the monotonic clock.
    pub(crate) spawned_at: u64,
    /// The same on the boot-time clock.
    pub(crate) spawned_at_boottime: u64,
    control: OwnedFd,
    stage: sys::Child,
    /// Who started the stage, and what it asked for.
    spawner: Spawner,
    kind: Kind,
    stage_ended: bool,
    kernel: &'static dyn Kernel,
    rung: Rung,
    /// Ahead of the group, which must be there when this is dropped.
    account: Option<Entry>,
    cgroup: Option<Cgroup>,
    scratch: Scratch,
    worker: Option<i32>,
    said_empty: bool,
    /// Watches the scratch directory where it has no size of its own.
    usage: Option<Usage>,
    /// What the guardian left was adopted by this process and is gone.
    swept: bool,
    /// Held until the room is empty.
    confined: Confined,
    _adopting: Option<Adopting>,
}

/// A process that was killed and is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Survivor {
    /// Its number in the supervisor's pid namespace.
    pub pid: i32,
    /// `D` for one that waits in the kernel, and so on.
    pub state: char,
    /// When it started, in clock ticks after boot; with the number it names one process for ever.
    pub started: u64,
}

/// What was left of a room.
pub(crate) struct Closed {
    /// True when nothing is alive in it.
    pub(crate) empty: bool,
    /// What is still alive when it could not be emptied.
    pub(crate) unkillable: Vec<Survivor>,
    /// CPU time of everything that ran in it, when a control group counted it.
    pub(crate) cpu: Option<Duration>,
    /// What the control groups counted besides.
    pub(crate) counts: Counts,
    /// Why the scratch directory is still there, if it is.
    pub(crate) scratch_left: Option<String>,
}

impl Room {
    /// Makes a room and starts the worker in it, on the given rung.
    pub(crate) fn open(spec: &RoomSpec, rung: Rung) -> Result<Self, RoomError> {
        Self::open_with(spec, rung, &probe::namespaces(rung))
    }

    /// As [`Room::open`], relying on these namespaces.
    pub(super) fn open_with(
        spec: &RoomSpec,
        rung: Rung,
        own: &Namespaces,
    ) -> Result<Self, RoomError> {
        let scratch = Scratch::create(&spec.scratch)
            .map_err(|error| RoomError(format!("{}: {error}", spec.scratch.display())))?;
        let opened = Self::try_open(spec, rung, own, scratch.clone());
        if opened.is_err() {
            let _ = scratch.remove(spec.kernel);
        }
        opened
    }

    fn try_open(
        spec: &RoomSpec,
        rung: Rung,
        own: &Namespaces,
        scratch: Scratch,
    ) -> Result<Self, RoomError> {
        let say = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| RoomError(format!("{what}: {error}"))
        };
        let program = spec.program().map_err(RoomError)?;
        let cgroup = rung
            .has_cgroup()
            .then(|| Cgroup::create(&spec.run_id))
            .transpose()
            .map_err(RoomError)?;
        let user_namespace = rung.has_pid_namespace() && !sys::can_make_namespaces();
        let mut confined = confine::confine(
            spec,
            rung,
            own,
            user_namespace,
            scratch.path(),
            &program,
            cgroup.as_ref(),
        )
        .map_err(RoomError)?;
        let order = Order {
            user: confined.user.as_ref().map(|user| user.id),
            rlimits: std::mem::take(&mut confined.rlimits),
            filters: std::mem::take(&mut confined.filters),
            ruleset: confined.ruleset.as_ref().map(AsRawFd::as_raw_fd),
            expendable: !user_namespace && spec.limits.memory_bytes.is_some(),
            loopback: confined.network_namespace,
            view: confined.view.take(),
            rung,
            cores: spec.cores.clone(),
            scratch: scratch.path().to_owned(),
            cgroup: cgroup
                .as_ref()
                .map_or_else(PathBuf::new, |group| group.path().to_owned()),
            program,
            env: spec.env.clone(),
            arguments: spec.command.clone(),
        };
        let order_has_no_view = order.view.is_none();
        let order = order
            .encode()
            .map_err(|error| RoomError(error.to_string()))?;
        let order = sys::memory_file(&order).map_err(say("the order"))?;
        let pipe = || pipe2(OFlag::O_CLOEXEC).map_err(|error| say("a pipe")(error.into()));
        let (stdin_worker, stdin) = pipe()?;
        let (stdout, stdout_worker) = pipe()?;
        let (stderr, stderr_worker) = pipe()?;
        if let Some(user) = &confined.user {
            // So that the worker can open them again by their names in /dev and /proc.
            for theirs in [&stdin_worker, &stdout_worker, &stderr_worker] {
                fchown(theirs, Some(user.id), Some(user.id)).map_err(say("giving a pipe away"))?;
            }
            if order_has_no_view {
                chown(scratch.path(), Some(user.id), Some(user.id))
                    .map_err(say("giving the scratch directory away"))?;
            }
        }
        for ours in [&stdin, &stdout, &stderr] {
            fcntl(ours, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))
                .map_err(|error| say("a pipe")(error.into()))?;
        }
        let spawner = match &confined.slot {
            Some(slot) => slot.spawner.clone(),
            None => Spawner::usual().map_err(RoomError)?,
        };
        let adopting = (!rung.has_pid_namespace())
            .then(|| Adopting::begin(rung != Rung::K0))
            .transpose()
            .map_err(say("preparing to adopt orphans"))?;
        let account = Entry::begin(cgroup.as_ref().map(Cgroup::path));
        let kind = Kind {
            namespaces: namespaces(rung, user_namespace, confined.network_namespace),
            die_with_us: rung.has_pid_namespace(),
        };
        let clocks = sys::clocks();
        let launched = spawner
            .start(kind)
            .map_err(|error| RoomError(error.to_string()))?;
        // The stage starts the worker in the group and stays outside: who kills the group, the worker included, does not
        // hit the one who tells how the worker ended.
        let group = cgroup.as_ref().map(Cgroup::fd);
        let ruleset = confined.ruleset.take();
        let theirs = [&stdin_worker, &stdout_worker, &stderr_worker, &order];
        let mut descriptors: Vec<BorrowedFd<'_>> = theirs.iter().map(|fd| fd.as_fd()).collect();
        descriptors.extend(group);
        descriptors.extend(ruleset.as_ref().map(AsFd::as_fd));
        if let Err(error) = handover::give(launched.control.as_fd(), &descriptors) {
            launched.dismiss();
            return Err(say("the order")(error));
        }
        let Launched { child, control } = launched;
        let watched = spec.limits.scratch_bytes.filter(|_| order_has_no_view);
        let usage = watched.and_then(|bytes| {
            // Where no thread can be had, each file still has its limit.
            Usage::watch(scratch.path().to_owned(), bytes)
                .inspect_err(|error| confined.unwatched(&error.to_string()))
                .ok()
        });
        let guards = std::mem::take(&mut confined.guards);
        let planned = isolation::planned(rung, user_namespace, guards);
        Ok(Self {
            stdin: Some(stdin),
            stdout,
            stderr,
            isolation: planned.clone().not_heard(),
            planned,
            cores: None,
            spawned_at: clocks.monotonic,
            spawned_at_boottime: clocks.boottime,
            control,
            stage: child,
            stage_ended: false,
            kernel: spec.kernel,
            spawner,
            kind,
            rung,
            account: Some(account),
            cgroup,
            scratch,
            worker: None,
            said_empty: false,
            usage,
            swept: false,
            confined,
            _adopting: adopting,
        })
    }

    /// Readable when the stage has something to say or is gone.
    pub(crate) fn control_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// What the stage says, without waiting.
    pub(crate) fn hear(&mut self) -> Heard {
        if !self.kernel.delivers() {
            return Heard::Nothing;
        }
        let mut buffer = [0; MAX_REPORT];
        loop {
            match sys::receive(self.control.as_fd(), &mut buffer) {
                Received::Message(length) => {
                    if let Some(report) = Report::decode(&buffer[..length]) {
                        self.note(&report);
                        return Heard::Report(report);
                    }
                }
                Received::Nothing => return Heard::Nothing,
                Received::Closed => return Heard::Closed,
            }
        }
    }

    fn note(&mut self, report: &Report) {
        match report {
            Report::Started {
                pid,
                cores,
                missing,
            } => {
                self.cores.clone_from(cores);
                if !self.rung.has_pid_namespace() {
                    self.worker = Some(*pid);
                }
                self.isolation = self.planned.clone();
                self.isolation.mark_missing(missing);
            }
            Report::Empty => self.said_empty = true,
            _ => {}
        }
    }

    /// The bytes in the scratch directory, once they were seen to be more than allowed.
    pub(crate) fn overrun(&self) -> Option<u64> {
        self.usage.as_ref()?.overrun()
    }

    /// Asks the worker to leave: SIGTERM to its process group.
    pub(crate) fn terminate(&self) {
        let _ = sys::send(self.control.as_fd(), Word::Terminate.encode());
    }

    /// Kills everything in the room. May be called again.
    pub(crate) fn kill(&self) {
        if !self.kernel.kills() {
            return;
        }
        if let Some(group) = &self.cgroup {
            let _ = group.kill();
        }
        if self.rung.has_pid_namespace() {
            let _ = sys::pidfd_kill(self.stage.pidfd.as_fd(), libc::SIGKILL);
        } else {
            // A worker of the same user may have stopped the guardian.
            let _ = sys::pidfd_kill(self.stage.pidfd.as_fd(), libc::SIGCONT);
            let _ = sys::send(self.control.as_fd(), Word::Kill.encode());
        }
    }

    /// Makes everything in the room stand still. `None` when the stage was asked to see to it, and answers with
    /// [`Report::Frozen`].
    pub(crate) fn freeze(&self) -> Option<bool> {
        if let Some(group) = &self.cgroup {
            return Some(group.freeze(FREEZE_BOUND));
        }
        let asked = sys::send(self.control.as_fd(), Word::Freeze.encode());
        asked.is_err().then_some(false)
    }

    /// Lets a room go on that was asked to stand still.
    pub(crate) fn thaw(&self) {
        match &self.cgroup {
            Some(group) => group.thaw(),
            None => {
                let _ = sys::send(self.control.as_fd(), Word::Thaw.encode());
            }
        }
    }

    /// Waits until the room that was killed is empty, as long as the kernel's patience lasts, and takes it down.
    pub(crate) fn close(&mut self) -> Closed {
        self.usage = None;
        let bound = self.kernel.patience();
        let end = Instant::now() + bound;
        let guardian = !self.rung.has_pid_namespace();
        // A worker of the same user may keep its guardian from its work for ever; then the work is ours.
        let patience = if guardian { bound / 2 } else { bound };
        let mut ended = self.await_stage(Instant::now() + patience);
        if !ended && guardian && self.kernel.kills() {
            let _ = sys::pidfd_kill(self.stage.pidfd.as_fd(), libc::SIGKILL);
            ended = self.await_stage(end);
        }
        while !matches!(self.hear(), Heard::Nothing | Heard::Closed) {}
        self.stage_ended = ended;
        if ended {
            adopted::forget(self.stage.pid);
            if guardian && self.rung != Rung::K0 && !self.said_empty {
                self.swept = adopted::sweep(self.spawned_at, end);
            }
        }
        let empty = ended && self.await_rest(end);
        let unkillable = if empty { Vec::new() } else { self.alive() };
        let cpu = self.cgroup.as_ref().and_then(Cgroup::cpu);
        self.account = None;
        let counts = self.confined.counts(self.cgroup.as_ref());
        if empty && self.rung.has_pid_namespace() {
            self.spawner.prepare(self.kind);
        }
        // A slot with somebody in it must never serve another room.
        if let Some(slot) = self.confined.slot.take().filter(|_| empty) {
            slot.give_back();
        }
        let scratch_left = self
            .scratch
            .remove(self.kernel)
            .err()
            .map(|error| format!("{}: {error}", self.scratch.path().display()));
        Closed {
            empty,
            unkillable,
            cpu,
            counts,
            scratch_left,
        }
    }

    /// Waits for the stage to end, and reaps it. The init of a pid namespace ends after everything else in it.
    fn await_stage(&self, end: Instant) -> bool {
        loop {
            match self.kernel.reaps(self.stage.pidfd.as_fd()) {
                Ok(true) => return true,
                // Somebody who ignores SIGCHLD in this process made the kernel reap it.
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return true,
                _ => {}
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let mut ready = [PollFd::new(self.stage.pidfd.as_fd(), PollFlags::POLLIN)];
            let wait = PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX);
            let _ = poll(&mut ready, wait);
        }
    }

    /// Waits for what no ended stage stands for.
    fn await_rest(&self, end: Instant) -> bool {
        let gone = || match (&self.cgroup, self.rung) {
            (Some(group), _) => self.kernel.says_empty(group.path()),
            (None, Rung::K0) => self.alive().is_empty(),
            (None, Rung::K1) => self.said_empty || (self.swept && self.alive().is_empty()),
            (None, _) => true,
        };
        loop {
            if gone() {
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// What is alive of the room, as far as this rung can tell.
    fn alive(&self) -> Vec<Survivor> {
        let all = procfs::processes();
        let mut found: Vec<Process> = if let Some(group) = &self.cgroup {
            let members = group.members();
            let in_group = |process: &&Process| members.contains(&process.pid);
            all.iter().filter(in_group).copied().collect()
        } else {
            procfs::descendants(self.stage.pid, &all)
        };
        if let Some(worker) = self.worker.filter(|_| self.cgroup.is_none()) {
            found.extend(all.iter().filter(|process| process.session == worker));
        }
        // The number of one that was reaped may be another's by now.
        if !self.stage_ended {
            found.extend(all.iter().filter(|process| process.pid == self.stage.pid));
        }
        let mut alive: Vec<Survivor> = found
            .iter()
            .filter(|process| process.alive())
            .map(|process| Survivor {
                pid: process.pid,
                state: process.state,
                started: process.started,
            })
            .collect();
        alive.sort_unstable();
        alive.dedup();
        alive
    }
}

fn namespaces(rung: Rung, user_namespace: bool, network: bool) -> i32 {
    if !rung.has_pid_namespace() {
        return 0;
    }
    let user = if user_namespace {
        libc::CLONE_NEWUSER
    } else {
        0
    };
    let network = if network { libc::CLONE_NEWNET } else { 0 };
    libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | user | network
}
