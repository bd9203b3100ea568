//! The queue of a daemon that lives: what it knows of its runs, and the threads that conduct them.
//!
//! What must survive is on the disk before anybody is told of it. In memory is only what a living daemon needs: the
//! records of runs that are not over, of the last few that are, and of all others their numbers.

mod look;

pub use look::{Board, Known};

use super::schedule::{Dispatcher, Start, Waiting};
use super::state::{Ended, Found, Record, StateDir, StateError, Submitted};
use super::steer::Steer;
use super::view::{Counts, ENDED_SHOWN, RunSummary};
use crate::error::Exit;
use crate::render::output::tell;
use crate::render::plain;
use crate::render::progress::ranges;
use crate::run::host::now_utc;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How a run went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// As `proctor run` would have ended.
    pub exit: Exit,
    /// In one sentence.
    pub sentence: String,
    /// How its methods ended.
    pub methods: Counts,
    /// Its bundle, where one could be made.
    pub bundle: Option<PathBuf>,
    /// True when the daemon's stop cut it off: a later daemon goes on with it.
    pub unfinished: bool,
}

/// Conducts runs; the same library as `proctor run` does in earnest.
pub trait Conductor: Send + Sync {
    /// Conducts a run to its end, on the calling thread.
    fn conduct(&self, job: &Job) -> Report;

    /// A run is over and its cores are free. Called on a thread that is held to nothing and that no run waits for.
    fn tell(&self, job: &Job, report: &Report) {
        let _ = (job, report);
    }
}

/// A run to be conducted.
pub struct Job {
    /// Its number.
    pub id: u64,
    /// Its run directory.
    pub run_dir: PathBuf,
    /// Its cores.
    pub cores: Vec<usize>,
    /// How it is stopped.
    pub steer: Arc<Steer>,
    /// Ids of the methods that were cancelled before it started.
    pub cancelled: Vec<String>,
    queue: Arc<Queue>,
}

/// How fast a method that runs is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Seconds of its budget that are gone.
    pub elapsed_seconds: f64,
    /// Seconds until everything is answered, if that can be told.
    pub eta_seconds: Option<f64>,
}

impl Job {
    /// Says how fast a method is, by its position in the plan.
    pub fn pace(&self, method: usize, pace: Pace) {
        self.queue.pace(self.id, method, pace);
    }

    /// Says what the next method waits for, or that it waits no longer.
    pub fn wait(&self, reason: Option<&str>) {
        self.queue.wait(self.id, reason);
    }

    /// How many methods were where when somebody said so last.
    pub fn counts(&self) -> Counts {
        self.queue.counts(self.id)
    }

    /// Says how many methods are where.
    pub fn count(&self, counts: Counts) {
        self.queue.count(self.id, counts);
    }
}

/// A run that goes on.
struct Live {
    steer: Arc<Steer>,
    counts: Counts,
    paces: BTreeMap<usize, Pace>,
    /// What the next method waits for.
    waits_for: Option<String>,
}

struct Inner {
    dispatcher: Dispatcher,
    /// The runs that are not over.
    records: BTreeMap<u64, Record>,
    live: BTreeMap<u64, Live>,
    /// Numbers of the runs that are over, ascending.
    ended: Vec<u64>,
    /// The last of them, newest first.
    recent: VecDeque<Record>,
    /// Ended runs whose records could not be written yet.
    unsaved: BTreeMap<u64, Record>,
    next_id: u64,
    stopping: bool,
    /// Ended runs of which somebody is still being told.
    telling: usize,
    /// Begins the threads of runs.
    starter: Option<Sender<Job>>,
}

/// The queue.
pub struct Queue {
    state: StateDir,
    conductor: Box<dyn Conductor>,
    cores: Vec<usize>,
    /// Held by whoever changes something, over its writes to the disk too; readers never wait for it.
    writer: Mutex<()>,
    inner: Mutex<Inner>,
    changed: watch::Sender<u64>,
    idle: Condvar,
}

/// Why something cannot be done to a run.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// There is no such run.
    #[error("there is no run {0}")]
    Unknown(u64),
    /// It is over.
    #[error("run {0} has ended")]
    Over(u64),
    /// Nothing more is taken.
    #[error("the daemon is stopping")]
    Stopping,
    /// It cannot be kept.
    #[error(transparent)]
    State(#[from] StateError),
}

impl Queue {
    /// The queue that an earlier daemon left, or an empty one. Nothing starts before [`Queue::begin`].
    pub fn new(
        state: StateDir,
        found: Found,
        cores: &[usize],
        conductor: Box<dyn Conductor>,
    ) -> Arc<Self> {
        let mut dispatcher = Dispatcher::new(cores);
        for record in &found.queue {
            dispatcher.add(waiting(record));
        }
        let last = found.ended.iter().rev().take(ENDED_SHOWN);
        let recent = last.filter_map(|id| state.ended(*id).ok()).collect();
        let inner = Inner {
            dispatcher,
            records: found
                .queue
                .into_iter()
                .map(|record| (record.id, record))
                .collect(),
            live: BTreeMap::new(),
            ended: found.ended,
            recent,
            unsaved: BTreeMap::new(),
            next_id: found.next_id,
            stopping: false,
            telling: 0,
            starter: None,
        };
        Arc::new(Self {
            state,
            conductor,
            cores: cores.to_vec(),
            writer: Mutex::new(()),
            inner: Mutex::new(inner),
            changed: watch::Sender::new(0),
            idle: Condvar::new(),
        })
    }

    /// The state directory.
    pub fn state(&self) -> &StateDir {
        &self.state
    }

    /// The cores that are given out.
    pub fn cores(&self) -> &[usize] {
        &self.cores
    }

    /// Sees each change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> MutexGuard<'_, ()> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_change(&self) {
        self.changed.send_modify(|version| *version += 1);
    }

    /// Starts what may start, from now on. The threads of runs come from one that is begun here: a thread is held to what
    /// its maker is held to, and those who add runs are held.
    ///
    /// # Errors
    /// There is no thread left.
    pub fn begin(self: &Arc<Self>) -> std::io::Result<()> {
        let (jobs, queue) = channel::<Job>();
        let starter = std::thread::Builder::new().name("starter".into());
        starter.spawn(move || {
            while let Ok(job) = queue.recv() {
                launch(job);
            }
        })?;
        let writing = self.write();
        self.inner().starter = Some(jobs);
        self.start_ready(&writing);
        Ok(())
    }

    /// The number of the next run.
    pub fn next_id(&self) -> u64 {
        self.inner().next_id
    }

    /// Takes a run whose run directory is there. Once this returns it is not forgotten.
    ///
    /// # Errors
    /// The daemon is stopping, or the record cannot be written.
    pub fn add(self: &Arc<Self>, id: u64, submitted: Submitted) -> Result<RunSummary, QueueError> {
        let writing = self.write();
        if self.inner().stopping {
            return Err(QueueError::Stopping);
        }
        let record = Record::new(id, submitted);
        self.state.keep(&record)?;
        {
            let mut inner = self.inner();
            inner.next_id = inner.next_id.max(id + 1);
            inner.dispatcher.add(waiting(&record));
            inner.records.insert(id, record);
        }
        self.start_ready(&writing);
        self.tell_change();
        self.find(id).map(|known| known.summary)
    }

    /// Cancels a run, or some of its methods, given by position and id. Once this returns a restart knows it too.
    ///
    /// # Errors
    /// There is no such run, it is over, or the wish cannot be kept.
    pub fn cancel(
        self: &Arc<Self>,
        id: u64,
        methods: &[(usize, String)],
    ) -> Result<RunSummary, QueueError> {
        let writing = self.write();
        let (mut record, steer) = {
            let inner = self.inner();
            let record = match inner.records.get(&id) {
                Some(record) => record.clone(),
                None if inner.ended.binary_search(&id).is_ok() => return Err(QueueError::Over(id)),
                None => return Err(QueueError::Unknown(id)),
            };
            let steer = inner.live.get(&id).map(|live| Arc::clone(&live.steer));
            (record, steer)
        };
        if methods.is_empty() {
            record.cancelled.run = true;
        }
        for (_, method) in methods {
            if !record.cancelled.methods.contains(method) {
                record.cancelled.methods.push(method.clone());
            }
        }
        if record.cancelled.run && steer.is_none() && record.started_utc.is_none() {
            record.ended = Some(Ended {
                utc: now_utc(),
                exit_code: Exit::Interrupted.code(),
                sentence: "was cancelled before it started".into(),
                methods: Counts {
                    total: record.methods,
                    without_result: record.methods,
                    ..Counts::default()
                },
            });
            self.state.end(&record)?;
            let mut inner = self.inner();
            inner.dispatcher.remove(id);
            inner.put_away(record);
        } else {
            self.state.keep(&record)?;
            self.inner().records.insert(id, record);
            if let Some(steer) = steer {
                if methods.is_empty() {
                    steer.cancel_all();
                }
                for (position, _) in methods {
                    steer.stop.cancel(*position);
                }
            }
        }
        self.start_ready(&writing);
        self.tell_change();
        self.find(id).map(|known| known.summary)
    }

    fn start_ready(self: &Arc<Self>, _writing: &MutexGuard<'_, ()>) {
        let Some(starter) = self.inner().starter.clone() else {
            return;
        };
        loop {
            let Some(start) = self.inner().dispatcher.next_start() else {
                return;
            };
            // The starter lives as long as the queue.
            let _ = starter.send(self.start(start));
        }
    }

    /// No thread could be had for a run: its turn comes again when something ends, or with the next daemon.
    fn put_back(&self, id: u64) {
        let mut inner = self.inner();
        inner.live.remove(&id);
        inner.dispatcher.ended(id);
        if let Some(again) = inner.records.get(&id).map(waiting) {
            inner.dispatcher.add(again);
        }
    }

    fn start(self: &Arc<Self>, start: Start) -> Job {
        let Start { id, cores } = start;
        let steer = Arc::new(Steer::default());
        let record = {
            let mut inner = self.inner();
            let record = inner.records.get_mut(&id);
            let record = record.expect("what waits has a record: both change under one lock");
            record.started_utc.get_or_insert_with(now_utc);
            let record = record.clone();
            let counts = Counts {
                total: record.methods,
                ..Counts::default()
            };
            let live = Live {
                steer: Arc::clone(&steer),
                counts,
                paces: BTreeMap::new(),
                waits_for: None,
            };
            inner.live.insert(id, live);
            record
        };
        if record.cancelled.run {
            steer.cancel_all();
        }
        // Without it a restart only forgets that this one was begun, and so comes first.
        if let Err(error) = self.state.keep(&record) {
            tell(&plain(&format!("run {id}: {error}")));
        }
        tell(&format!("run {id}: starts on cores {}", ranges(&cores)));
        self.tell_change();
        Job {
            id,
            run_dir: self.state.run_dir(id),
            cores,
            steer,
            cancelled: record.cancelled.methods,
            queue: Arc::clone(self),
        }
    }

    fn conduct(self: &Arc<Self>, job: &Job) {
        // On a thread of its own, since it may hold itself to less than is needed afterwards. A breakdown must not keep the
        // cores of the run for ever.
        let conducted = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name(format!("run-{}", job.id));
            let thread = thread.spawn_scoped(scope, || self.conductor.conduct(job));
            thread.map(|thread| thread.join().ok())
        });
        let report = match conducted {
            Ok(Some(report)) => report,
            Ok(None) => self.broken(
                job,
                "its supervision broke down; this is a bug in proctor, please report it",
            ),
            Err(error) => self.broken(job, &format!("no thread can be started: {error}")),
        };
        if report.unfinished {
            self.over(job.id, &report);
            return;
        }
        self.inner().telling += 1;
        self.over(job.id, &report);
        self.conductor.tell(job, &report);
        self.inner().telling -= 1;
        self.idle.notify_all();
    }

    fn broken(&self, job: &Job, sentence: &str) -> Report {
        Report {
            exit: Exit::Infrastructure,
            sentence: sentence.to_owned(),
            methods: self.counts(job.id),
            bundle: None,
            unfinished: false,
        }
    }

    fn counts(&self, id: u64) -> Counts {
        let inner = self.inner();
        inner
            .live
            .get(&id)
            .map_or_else(Counts::default, |live| live.counts)
    }

    fn over(self: &Arc<Self>, id: u64, report: &Report) {
        let writing = self.write();
        tell(&plain(&format!("run {id}: {}", report.sentence)));
        let record = {
            let mut inner = self.inner();
            inner.live.remove(&id);
            inner.dispatcher.ended(id);
            let record = inner.records.get(&id).cloned();
            let mut record = record.expect("a conducted run has a record until it is over");
            if report.unfinished {
                inner.dispatcher.add(waiting(&record));
                None
            } else {
                record.ended = Some(Ended {
                    utc: now_utc(),
                    exit_code: report.exit.code(),
                    sentence: report.sentence.clone(),
                    methods: report.methods,
                });
                Some(record)
            }
        };
        if let Some(record) = record {
            let saved = self.state.end(&record);
            let mut inner = self.inner();
            if let Err(error) = saved {
                tell(&plain(&format!(
                    "run {id}: {error}; this is tried again until it succeeds"
                )));
                inner.unsaved.insert(id, record.clone());
            }
            inner.put_away(record);
        }
        self.start_ready(&writing);
        drop(writing);
        self.tell_change();
        self.idle.notify_all();
    }

    /// Tries again to write what could not be written.
    pub fn save(&self) {
        let _writing = self.write();
        let unsaved: Vec<Record> = self.inner().unsaved.values().cloned().collect();
        for record in unsaved {
            if self.state.end(&record).is_ok() {
                self.inner().unsaved.remove(&record.id);
            }
        }
    }

    /// Nothing more is taken or started; what runs finishes the methods that are running.
    pub fn drain(&self) {
        let mut inner = self.inner();
        inner.stopping = true;
        inner.dispatcher.stop();
        inner.live.values().for_each(|live| live.steer.stop.drain());
        drop(inner);
        self.tell_change();
    }

    /// What runs is interrupted; without its grace where `now`.
    pub fn interrupt(&self, now: bool) {
        for live in self.inner().live.values() {
            if now {
                live.steer.stop.kill();
            } else {
                live.steer.stop.interrupt();
            }
        }
    }

    /// Waits until nothing runs, or the time is up; true when nothing runs.
    pub fn wait_idle(&self, most: Duration) -> bool {
        let until = Instant::now() + most;
        let mut inner = self.inner();
        while !inner.live.is_empty() || inner.telling > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.idle.wait_timeout(inner, left);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn wait(&self, id: u64, reason: Option<&str>) {
        let mut inner = self.inner();
        let Some(live) = inner.live.get_mut(&id) else {
            return;
        };
        if live.waits_for.as_deref() == reason {
            return;
        }
        live.waits_for = reason.map(str::to_owned);
        drop(inner);
        self.tell_change();
    }

    fn pace(&self, id: u64, method: usize, pace: Pace) {
        if let Some(live) = self.inner().live.get_mut(&id) {
            live.paces.insert(method, pace);
        }
    }

    fn count(&self, id: u64, counts: Counts) {
        let mut inner = self.inner();
        if let Some(live) = inner.live.get_mut(&id) {
            live.counts = counts;
        }
        drop(inner);
        self.tell_change();
    }
}

/// Conducts a run on a thread of its own.
fn launch(job: Job) {
    let (id, queue) = (job.id, Arc::clone(&job.queue));
    let thread = std::thread::Builder::new().name(format!("end-{id}"));
    let spawned = thread.spawn(move || {
        let queue = Arc::clone(&job.queue);
        queue.conduct(&job);
    });
    if let Err(error) = spawned {
        tell(&format!("run {id}: no thread can be started: {error}"));
        queue.put_back(id);
    }
}

/// A record as the dispatcher sees it.
fn waiting(record: &Record) -> Waiting {
    Waiting {
        id: record.id,
        priority: record.priority,
        cores: record.cores,
        exclusive: record.exclusive,
        begun: record.started_utc.is_some(),
    }
}

impl Inner {
    /// A run is over.
    fn put_away(&mut self, record: Record) {
        let id = record.id;
        self.records.remove(&id);
        if let Err(at) = self.ended.binary_search(&id) {
            self.ended.insert(at, id);
        }
        self.recent.push_front(record);
        self.recent.truncate(ENDED_SHOWN);
    }
}

#[cfg(test)]
mod tests;
