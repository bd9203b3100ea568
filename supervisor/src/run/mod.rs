//! Running the methods of a plan: one thread that decides and displays, one thread a running attempt.

pub mod attempt;
pub mod exam;
pub mod handshake;
pub mod host;
pub mod limits;
pub mod live;
pub mod official;
pub mod preflight;
pub mod scratch;
pub mod signals;
pub mod taint;
pub mod worker;

pub use preflight::{Prepared, Request, prepare};

use crate::attempt::Control;
use crate::error::Error;
use crate::render::plain;
use crate::render::progress::{Entry, Progress};
use crate::render::sentence::{Numbers, tail};
use crate::rundir::plan::{self, Plan, datasets, parts};
use crate::rundir::record::{AttemptId, Part, Role, Terminal};
use crate::rundir::state::{self, Heartbeat};
use crate::rundir::{durable, regular};
use crate::schedule::{Schedule, Start};
use attempt::{AttemptError, Desk};
use live::Live;
use proctor_protocol::canonical::{Value, pretty};
use proctor_protocol::dataset::Dataset;
use proctor_protocol::outcome::Outcome;
use signals::Stop;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// The display is brought up to date this often.
const TICK: Duration = Duration::from_millis(200);
/// `status` reads heartbeats that are this old at most.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(2);
/// So many lines of a failed method's stderr are shown.
pub const STDERR_LINES: usize = 5;

/// Writes the plan. From here on the directory is a run.
///
/// # Errors
/// The system refused.
pub fn freeze_plan(prepared: &Prepared, command_line: Vec<String>) -> Result<Plan, Error> {
    let random = |bytes| {
        host::random_hex(bytes)
            .map_err(|error| Error::Infrastructure(format!("no randomness: {error}")))
    };
    let own = std::env::current_exe().and_then(|path| regular::sha256(&path));
    let plan = Plan {
        run_id: random(6)?,
        nonce: random(16)?,
        created_utc: host::now_utc(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        binary_sha256: own.map_err(|error| {
            Error::Infrastructure(format!("this program cannot read its own file: {error}"))
        })?,
        command_line,
        basename: prepared.basename.clone(),
        protocol: prepared.protocol.clone(),
        methods: prepared.methods.clone(),
        policy: prepared.policy.clone(),
        machine: host::machine(),
    };
    durable::create_dir_all(prepared.run.root())?;
    match plan.write(&prepared.run) {
        Err(error) if error.source.kind() == ErrorKind::AlreadyExists => {
            Err(Error::input(format!(
                "--output {}: another run is using it; name another directory",
                prepared.run.root().display()
            )))
        }
        written => Ok(written.map(|()| plan)?),
    }
}

/// An attempt that runs.
struct Running {
    live: Arc<Live>,
    control: Arc<Control>,
    id: AttemptId,
    dir: PathBuf,
    parts: Vec<Part>,
    last_beat: Instant,
}

/// What an attempt's thread says at its end.
struct Ended {
    start: Start,
    result: Result<Terminal, AttemptError>,
}

/// Runs every method of the plan that applies, and returns when nothing runs any more.
///
/// # Errors
/// The records of some method could not be kept, or a room could not be emptied: then nothing more is started. Attempts
/// that ended keep their records.
pub fn run_methods(prepared: &Prepared, plan: &Plan, stop: &Arc<Stop>) -> Result<(), Error> {
    let applicable = |&method: &usize| {
        plan::not_applicable(&prepared.protocol, &prepared.methods[method]).is_none()
    };
    let (running, left_out): (Vec<usize>, Vec<usize>) =
        (0..prepared.methods.len()).partition(applicable);
    let mut conductor = Conductor {
        prepared,
        plan,
        stop,
        schedule: Schedule::new(running, plan.policy.core_sets.len()),
        progress: Progress::new(entries(prepared), plan.policy.budget_seconds),
        running: BTreeMap::new(),
        trouble: None,
    };
    for method in left_out {
        conductor.tell_not_applicable(method);
    }
    std::thread::scope(|scope| {
        // The scope waits for what runs, so a breakdown here must end that first.
        if catch_unwind(AssertUnwindSafe(|| conductor.conduct(scope))).is_err() {
            conductor.break_down();
        }
    });
    conductor.trouble.map_or(Ok(()), Err)
}

fn entries(prepared: &Prepared) -> Vec<Entry> {
    let label = |part: &Part| {
        let name = &prepared.protocol.datasets()[part.dataset].name;
        match part.role {
            Role::Test => name.clone(),
            Role::Validation => format!("{name} (validation)"),
        }
    };
    let items = |part: &Part| {
        let loaded = &prepared.loaded[part.dataset];
        match part.role {
            Role::Test => loaded.test.item_count(),
            Role::Validation => loaded.validation.as_ref().map_or(0, Dataset::item_count),
        }
    };
    let entry = |method| {
        let parts = parts(&prepared.protocol, method);
        Entry {
            name: method.name.clone(),
            datasets: datasets(&parts),
            parts: (0..parts.len())
                .map(|at| (datasets(&parts[..=at]), label(&parts[at])))
                .collect(),
            items: parts.iter().map(items).sum(),
        }
    };
    prepared.methods.iter().map(entry).collect()
}

struct Conductor<'a> {
    prepared: &'a Prepared,
    plan: &'a Plan,
    stop: &'a Arc<Stop>,
    schedule: Schedule,
    progress: Progress,
    running: BTreeMap<usize, Running>,
    trouble: Option<Error>,
}

impl<'a> Conductor<'a> {
    fn conduct<'scope>(&mut self, scope: &'scope std::thread::Scope<'scope, 'a>) {
        let (ended, endings) = mpsc::channel::<Ended>();
        let mut told = false;
        loop {
            if self.stop.asked() {
                self.schedule.stop();
                if !told {
                    told = true;
                    self.progress.note(
                        "stopping: the running methods are interrupted; once more to leave at once",
                    );
                }
            }
            while let Some(start) = self.schedule.next_start() {
                self.start(scope, start, ended.clone());
            }
            if self.schedule.finished() {
                return;
            }
            if let Ok(ended) = endings.recv_timeout(TICK) {
                self.ended(ended);
            }
            self.look();
        }
    }

    /// One method has no result because our records could not be kept. The others are tried all the same: what filled
    /// the disk may be gone with the room of its method.
    fn trouble(&mut self, method: usize, error: Error) {
        let reason = Outcome::Infrastructure(error.to_string());
        let numbers = Numbers::of(None, &[], self.plan.policy.budget_seconds);
        self.progress.end(method, &reason, numbers, &[]);
        self.trouble.get_or_insert(error);
    }

    /// What runs is let finish, nothing more starts, and the first reason is told at the end.
    fn give_up(&mut self, error: Error) {
        self.progress
            .note(&plain(&format!("no further method is started: {error}")));
        self.schedule.stop();
        self.trouble.get_or_insert(error);
    }

    /// The conductor itself broke down: everything that runs is stopped.
    fn break_down(&mut self) {
        for running in self.running.values() {
            running.control.kill();
        }
        let text =
            "the supervision of the run broke down; this is a bug in proctor, please report it";
        self.trouble
            .get_or_insert(Error::Infrastructure(text.into()));
    }

    fn start<'scope>(
        &mut self,
        scope: &'scope std::thread::Scope<'scope, 'a>,
        start: Start,
        ended: mpsc::Sender<Ended>,
    ) {
        match self.open(start) {
            Ok((desk, running)) => {
                let (prepared, plan) = (self.prepared, self.plan);
                let (live, control) = (Arc::clone(&running.live), Arc::clone(&running.control));
                self.running.insert(start.method, running);
                self.stop.register(&control);
                scope.spawn(move || {
                    let method = &prepared.methods[start.method];
                    let cores = &plan.policy.core_sets[start.slot];
                    let run = || desk.run(prepared, plan, method, cores, &live, &control);
                    // Nothing of a panicking attempt is used again, and the others must go on.
                    let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
                        Err(AttemptError::Bug {
                            method: method.name.clone(),
                        })
                    });
                    // The receiver lives as long as something runs.
                    let _ = ended.send(Ended { start, result });
                });
            }
            Err(error) => {
                self.schedule.ended(start);
                self.trouble(start.method, error);
            }
        }
    }

    fn open(&mut self, start: Start) -> Result<(Desk, Running), Error> {
        let method = &self.prepared.methods[start.method];
        let cores = &self.plan.policy.core_sets[start.slot];
        self.progress.start(start.method, cores);
        let desk = Desk::open(self.prepared, self.plan, method, cores)?;
        let control = Control::new()
            .map_err(|error| Error::Infrastructure(format!("no descriptor is left: {error}")))?;
        let running = Running {
            live: Arc::default(),
            control: Arc::new(control),
            id: desk.id.clone(),
            dir: desk.dir.clone(),
            parts: parts(&self.prepared.protocol, method),
            last_beat: Instant::now(),
        };
        Ok((desk, running))
    }

    fn ended(&mut self, ended: Ended) {
        let Ended { start, result } = ended;
        self.schedule.ended(start);
        let Some(running) = self.running.remove(&start.method) else {
            return;
        };
        self.stop.release(&running.control);
        match result {
            Ok(terminal) => self.tell_ending(start.method, &running, &terminal),
            Err(error @ AttemptError::Bug { .. }) => {
                let error = Error::from(error);
                self.progress.note(&plain(&error.to_string()));
                // Nobody knows what is left in its room.
                self.give_up(error);
            }
            Err(error) => self.trouble(start.method, error.into()),
        }
    }

    fn tell_ending(&mut self, method: usize, running: &Running, terminal: &Terminal) {
        let attempt = state::read_attempt(running.id.clone(), running.dir.clone()).ok();
        let budget = self.plan.policy.budget_seconds;
        let numbers = Numbers::of(attempt.as_ref(), &running.parts, budget);
        let lines = if terminal.outcome.succeeded() {
            Vec::new()
        } else {
            tail(&running.dir.join("stderr"), STDERR_LINES)
        };
        self.progress
            .end(method, &terminal.outcome, numbers, &lines);
        if terminal.facts.get("room_empty").and_then(Value::as_bool) == Some(false) {
            self.give_up(Error::Infrastructure(format!(
                "processes of {} could not be killed; nothing more was started, since they would disturb it",
                self.prepared.methods[method].name
            )));
        }
    }

    fn tell_not_applicable(&mut self, method: usize) {
        let reason = plan::not_applicable(&self.prepared.protocol, &self.prepared.methods[method]);
        let numbers = Numbers::of(None, &[], self.plan.policy.budget_seconds);
        let outcome = Outcome::NotApplicable(reason.unwrap_or_default());
        self.progress.end(method, &outcome, numbers, &[]);
    }

    /// Brings the display and the heartbeats up to date.
    fn look(&mut self) {
        for (&method, running) in &mut self.running {
            let glance = running.live.glance();
            self.progress.tick(method, glance);
            if running.last_beat.elapsed() >= HEARTBEAT_EVERY {
                running.last_beat = Instant::now();
                let beat = Heartbeat {
                    elapsed_seconds: glance.elapsed.unwrap_or(0.0),
                    part: glance.part,
                    items: glance.items,
                    total: glance.total,
                };
                let text = pretty(&beat.to_value());
                // Only `status` reads it: a failure here must not touch the attempt.
                let _ = durable::replace_quickly(&running.dir.join("heartbeat"), text.as_bytes());
            }
        }
    }
}
