//! Conducting a session: one thread that decides and tells, one thread a running attempt.

use super::STDERR_LINES;
use super::attempt::{AttemptError, Desk};
use super::live::Live;
use super::observe::{Ended, Observer, Starting};
use super::session::Session;
use super::stop::Stop;
use crate::attempt::Control;
use crate::error::Error;
use crate::load::{Decision, Gate};
use crate::render::plain;
use crate::render::sentence::{Numbers, tail};
use crate::rundir::durable;
use crate::rundir::plan::parts;
use crate::rundir::record::{AttemptId, Terminal};
use crate::rundir::state::{self, Heartbeat};
use crate::schedule::{Schedule, Start};
use proctor_protocol::canonical::{Value, pretty};
use proctor_protocol::object;
use proctor_protocol::outcome::Outcome;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// Whoever watches is told this often.
const TICK: Duration = Duration::from_millis(200);
/// `status` reads heartbeats that are this old at most.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(2);

/// What came of a session. The outcomes of its methods are in the records.
#[derive(Debug, Default)]
pub struct Summary {
    /// Attempts that were made.
    pub attempts: usize,
    /// True when it was asked to stop before everything was done.
    pub stopped: bool,
    /// The first thing that went wrong on our side: the records of some method could not be kept, or a room could not be
    /// emptied. Attempts that ended keep their records.
    pub trouble: Option<Error>,
}

/// An attempt that runs.
struct Running {
    live: Arc<Live>,
    control: Arc<Control>,
    desk: Arc<Desk>,
    last_beat: Instant,
}

/// What an attempt's thread says at its end.
struct Finished {
    start: Start,
    result: Result<Terminal, AttemptError>,
}

/// Runs every method of a session that is owed an attempt, and returns when nothing runs any more.
pub(super) fn conduct(
    session: &Session,
    cores: &[Vec<usize>],
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Summary {
    let methods = || 0..session.plan.methods.len();
    let owed = |at: &usize| {
        session
            .assignment(*at)
            .is_some_and(|one| one.verdict.is_none())
    };
    let mut conductor = Conductor {
        session,
        cores,
        stop,
        observer,
        schedule: Schedule::new(methods().filter(owed), cores.len()),
        gate: session.plan.policy.load.map(Gate::new),
        running: BTreeMap::new(),
        summary: Summary::default(),
        beats: 0,
        last_beat: None,
        taken_over: false,
        told_of_stop: false,
    };
    for method in methods() {
        conductor.tell_not_applicable(method);
    }
    for method in methods() {
        let verdict = session
            .assignment(method)
            .and_then(|one| one.verdict.clone());
        if let Some(outcome) = verdict.filter(|_| !stop.asked()) {
            conductor.settle(method, outcome, Value::Null);
        }
    }
    std::thread::scope(|scope| {
        // The scope waits for what runs, so a breakdown here must end that first.
        if catch_unwind(AssertUnwindSafe(|| conductor.conduct(scope))).is_err() {
            conductor.break_down();
        }
    });
    conductor.summary.stopped = stop.drained();
    conductor.summary
}

struct Conductor<'a, 'o> {
    session: &'a Session,
    cores: &'a [Vec<usize>],
    stop: &'a Stop,
    observer: &'o mut dyn Observer,
    schedule: Schedule,
    gate: Option<Gate>,
    running: BTreeMap<usize, Running>,
    summary: Summary,
    beats: u64,
    last_beat: Option<Instant>,
    taken_over: bool,
    told_of_stop: bool,
}

impl<'a> Conductor<'a, '_> {
    fn conduct<'scope>(&mut self, scope: &'scope std::thread::Scope<'scope, 'a>) {
        let (finished, endings) = mpsc::channel::<Finished>();
        loop {
            self.heed_stop();
            self.withdraw_cancelled();
            while let Some(method) = self.schedule.next_method() {
                let Some(admission) = self.admit(method) else {
                    break;
                };
                if let Some(start) = self.schedule.next_start() {
                    self.start(scope, start, admission, finished.clone());
                }
            }
            if self.schedule.finished() {
                return;
            }
            if let Ok(finished) = endings.recv_timeout(TICK) {
                // Why it ended is told before that it did.
                self.heed_stop();
                self.finished(finished);
            }
            self.look();
        }
    }

    /// Starts nothing more when that was asked, and says so once.
    fn heed_stop(&mut self) {
        if !self.stop.drained() {
            return;
        }
        self.schedule.stop();
        if self.stop.asked() && !self.told_of_stop {
            self.told_of_stop = true;
            self.observer
                .note("stopping: the running methods are interrupted; once more to leave at once");
        }
    }

    /// How the next method comes through the load gate, null without one; `None` when it does not, or waits.
    fn admit(&mut self, method: usize) -> Option<Value> {
        let Some(gate) = &mut self.gate else {
            return Some(Value::Null);
        };
        match gate.ask() {
            Decision::Start(admission) => Some(admission.to_value()),
            Decision::Look => None,
            Decision::Wait(reason) => {
                self.observer.waiting(method, &reason);
                None
            }
            Decision::Refuse { reason, admission } => {
                self.schedule.withdraw(method);
                let measured = object! { "load_gate" => admission.to_value() };
                self.settle(method, Outcome::Infrastructure(reason), measured);
                None
            }
        }
    }

    /// A method that is cancelled while it waits ends without a worker.
    fn withdraw_cancelled(&mut self) {
        for method in self.stop.cancelled() {
            let waited = self.schedule.next_method() == Some(method);
            if self.schedule.withdraw(method) {
                if let Some(gate) = self.gate.as_mut().filter(|_| waited) {
                    gate.leave();
                }
                self.settle(method, Outcome::Cancelled, Value::Null);
            }
        }
    }

    /// Makes the attempt of a method whose outcome is known without a worker.
    fn settle(&mut self, method: usize, outcome: Outcome, measured: Value) {
        let Some(assignment) = self.session.assignment(method) else {
            return;
        };
        let ancestry = assignment.ancestry.clone();
        let settled = self.session.desk(method, ancestry, &[]).and_then(|desk| {
            let terminal = desk.settle(outcome, measured)?;
            Ok((desk, terminal))
        });
        match settled {
            Ok((desk, terminal)) => {
                self.summary.attempts += 1;
                self.tell_ending(method, &desk, &terminal);
            }
            Err(error) => self.trouble(method, error),
        }
    }

    /// One method has no result because our records could not be kept. The others are tried all the same: what filled
    /// the disk may be gone with the room of its method.
    fn trouble(&mut self, method: usize, error: Error) {
        let outcome = Outcome::Infrastructure(error.to_string());
        self.tell(method, None, &outcome, self.no_numbers(), &[]);
        self.summary.trouble.get_or_insert(error);
    }

    /// What runs is let finish, nothing more starts, and the first reason is told at the end.
    fn give_up(&mut self, error: Error) {
        self.observer
            .note(&plain(&format!("no further method is started: {error}")));
        self.schedule.stop();
        self.summary.trouble.get_or_insert(error);
    }

    /// The conductor itself broke down: everything that runs is stopped.
    fn break_down(&mut self) {
        for running in self.running.values() {
            running.control.kill();
        }
        let text =
            "the supervision of the run broke down; this is a bug in proctor, please report it";
        self.summary
            .trouble
            .get_or_insert(Error::Infrastructure(text.into()));
    }

    fn start<'scope>(
        &mut self,
        scope: &'scope std::thread::Scope<'scope, 'a>,
        start: Start,
        admission: Value,
        finished: mpsc::Sender<Finished>,
    ) {
        match self.open(start, admission) {
            Ok(running) => {
                let (session, cores) = (self.session, self.cores);
                let live = Arc::clone(&running.live);
                let control = Arc::clone(&running.control);
                let desk = Arc::clone(&running.desk);
                self.stop.register(start.method, &control);
                self.running.insert(start.method, running);
                scope.spawn(move || {
                    let method = &session.plan.methods[start.method];
                    let assignment = session.assignment(start.method);
                    let asked = assignment.map_or(&[][..], |one| &one.parts);
                    let cores = &cores[start.slot];
                    let run = || desk.run(session, method, asked, cores, &live, &control);
                    // Nothing of a panicking attempt is used again, and the others must go on.
                    let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
                        Err(AttemptError::Bug {
                            method: method.name.clone(),
                        })
                    });
                    // The receiver lives as long as something runs.
                    let _ = finished.send(Finished { start, result });
                });
            }
            Err(error) => {
                self.schedule.ended(start);
                self.trouble(start.method, error);
            }
        }
    }

    fn open(&mut self, start: Start, admission: Value) -> Result<Running, Error> {
        let cores = &self.cores[start.slot];
        let assignment = self.session.assignment(start.method);
        let ancestry = assignment.map_or_else(Default::default, |one| one.ancestry.clone());
        let mut desk = self.session.desk(start.method, ancestry, cores)?;
        desk.admission = admission;
        self.summary.attempts += 1;
        self.observer.started(Starting {
            method: start.method,
            attempt: &desk.id,
            cores,
        });
        let control = Control::new()
            .map_err(|error| Error::Infrastructure(format!("no descriptor is left: {error}")))?;
        Ok(Running {
            live: Arc::default(),
            control: Arc::new(control),
            desk: Arc::new(desk),
            last_beat: Instant::now(),
        })
    }

    fn finished(&mut self, finished: Finished) {
        let Finished { start, result } = finished;
        self.schedule.ended(start);
        let Some(running) = self.running.remove(&start.method) else {
            return;
        };
        self.stop.release(&running.control);
        match result {
            Ok(terminal) => self.tell_ending(start.method, &running.desk, &terminal),
            // Nobody knows what is left in its room.
            Err(error @ AttemptError::Bug { .. }) => {
                let error = Error::from(error);
                self.observer.note(&plain(&error.to_string()));
                self.give_up(error);
            }
            Err(AttemptError::Superseded { .. }) => self.stand_back(),
            Err(error) => self.trouble(start.method, error.into()),
        }
    }

    fn tell_ending(&mut self, method: usize, desk: &Desk, terminal: &Terminal) {
        let plan = &self.session.plan;
        let attempt = state::read_attempt(desk.id.clone(), desk.dir.clone()).ok();
        let parts = parts(&plan.protocol, &plan.methods[method]);
        let numbers = Numbers::of(attempt.as_ref(), &parts, plan.policy.budget_seconds);
        let lines = if terminal.outcome.succeeded() {
            Vec::new()
        } else {
            tail(&desk.dir.join("stderr"), STDERR_LINES)
        };
        self.tell(method, Some(&desk.id), &terminal.outcome, numbers, &lines);
        if terminal.facts.get("room_empty").and_then(Value::as_bool) == Some(false) {
            self.give_up(Error::Infrastructure(format!(
                "processes of {} could not be killed; nothing more was started, since they would disturb it",
                plan.methods[method].name
            )));
        }
    }

    fn tell_not_applicable(&mut self, method: usize) {
        if let Some(reason) = self.session.not_applicable(method) {
            let outcome = Outcome::NotApplicable(reason);
            self.tell(method, None, &outcome, self.no_numbers(), &[]);
        }
    }

    fn no_numbers(&self) -> Numbers {
        Numbers::of(None, &[], self.session.plan.policy.budget_seconds)
    }

    fn tell(
        &mut self,
        method: usize,
        attempt: Option<&AttemptId>,
        outcome: &Outcome,
        numbers: Numbers,
        stderr: &[String],
    ) {
        self.observer.ended(Ended {
            method,
            attempt,
            outcome,
            numbers,
            stderr,
        });
    }

    /// Stops everything when somebody took this session for dead and began the next one.
    fn stand_back(&mut self) {
        let lease = self.session.run.lease(self.session.number);
        if !self.taken_over && lease.is_lost() {
            self.taken_over = true;
            for running in self.running.values() {
                running.control.kill();
            }
            let text = "a later session took the run over; nothing of this one counts any more";
            self.give_up(Error::Infrastructure(text.into()));
        }
    }

    /// Brings the display and the heartbeats up to date.
    fn look(&mut self) {
        let due = |last: Option<Instant>| last.is_none_or(|at| at.elapsed() >= HEARTBEAT_EVERY);
        if due(self.last_beat) {
            self.last_beat = Some(Instant::now());
            self.beats += 1;
            self.stand_back();
            // Only whoever cannot see this process reads it.
            let _ = self
                .session
                .run
                .beat_session(self.session.number, self.beats);
        }
        for (&method, running) in &mut self.running {
            let glance = running.live.glance();
            self.observer.progress(method, glance);
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
                let file = running.desk.dir.join("heartbeat");
                let _ = durable::replace_quickly(&file, text.as_bytes());
            }
        }
    }
}
