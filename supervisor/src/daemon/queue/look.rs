//! What a queue shows of itself. Readers hold its lock for a moment and never wait for a disk, but for the record of a run
//! that ended long ago.

use super::{Inner, Pace, Queue, QueueError, waiting};
use crate::daemon::state::Record;
use crate::daemon::view::{Counts, QUEUE_SHOWN, RunState, RunSummary};
use std::collections::BTreeMap;

/// A run as the queue knows it.
#[derive(Debug, Clone)]
pub struct Known {
    /// In short.
    pub summary: RunSummary,
    /// The cores it has now.
    pub cores: Vec<usize>,
    /// Ids of the methods that somebody cancelled.
    pub cancelled: Vec<String>,
    /// How fast its running methods are, by their position in the plan.
    pub paces: BTreeMap<usize, Pace>,
}

/// The queue at one instant.
#[derive(Debug, Clone)]
pub struct Board {
    /// See [`QueueView::stopping`](crate::daemon::view::QueueView::stopping).
    pub stopping: bool,
    /// How many runs wait.
    pub queued: u64,
    /// How many runs have ended.
    pub ended: u64,
    /// The runs that go on.
    pub running: Vec<RunSummary>,
    /// The runs that are next.
    pub next: Vec<RunSummary>,
    /// The runs that ended last.
    pub recent: Vec<RunSummary>,
    /// Why the next one waits.
    pub waits_for: Option<String>,
    /// The cores that no run has.
    pub free_cores: Vec<usize>,
}

impl Queue {
    /// A run by its number. Of one that ended long ago the record is read.
    ///
    /// # Errors
    /// There is none, or its record cannot be read.
    pub fn find(&self, id: u64) -> Result<Known, QueueError> {
        {
            let inner = self.inner();
            if let Some(record) = inner.records.get(&id) {
                return Ok(inner.known(record));
            }
            if let Some(record) = inner.remembered(id) {
                return Ok(inner.known(record));
            }
            if inner.ended.binary_search(&id).is_err() {
                return Err(QueueError::Unknown(id));
            }
        }
        let record = self.state.ended(id)?;
        Ok(self.inner().known(&record))
    }

    /// Runs before a number, newest first. Records that cannot be read are left out.
    pub fn page(
        &self,
        wanted: Option<RunState>,
        before: Option<u64>,
        limit: usize,
    ) -> (Vec<RunSummary>, Option<u64>) {
        let before = before.unwrap_or(u64::MAX);
        let mut ids: Vec<u64> = {
            let inner = self.inner();
            let current = inner.records.range(..before).rev().map(|(id, _)| *id);
            let current = current.filter(|id| {
                wanted.is_none_or(|wanted| {
                    (wanted == RunState::Running) == inner.live.contains_key(id)
                })
            });
            let over = inner.ended.partition_point(|id| *id < before);
            let over = inner.ended[..over].iter().rev().copied();
            let mut ids = Vec::new();
            if wanted != Some(RunState::Ended) {
                ids.extend(current.take(limit + 1));
            }
            if matches!(wanted, None | Some(RunState::Ended)) {
                ids.extend(over.take(limit + 1));
            }
            ids
        };
        ids.sort_unstable_by(|a, b| b.cmp(a));
        let more = ids.len() > limit;
        ids.truncate(limit);
        let next = ids.last().copied().filter(|_| more);
        let runs = ids
            .iter()
            .filter_map(|id| Some(self.find(*id).ok()?.summary));
        (runs.collect(), next)
    }

    /// The queue now.
    pub fn board(&self) -> Board {
        let inner = self.inner();
        let running = inner.live.keys().filter_map(|id| inner.records.get(id));
        let next = inner.dispatcher.waiting().take(QUEUE_SHOWN);
        let next = next.filter_map(|run| inner.records.get(&run.id));
        let sum = |record: &Record| inner.known(record).summary;
        Board {
            stopping: inner.stopping,
            queued: inner.dispatcher.waiting_count() as u64,
            ended: inner.ended.len() as u64,
            running: running.map(sum).collect(),
            next: next
                .enumerate()
                .map(|(at, record)| inner.summary(record, Some(at as u64 + 1)))
                .collect(),
            recent: inner.recent.iter().map(sum).collect(),
            waits_for: inner
                .dispatcher
                .waits_for()
                .map(|(id, hold)| format!("run {id} {hold}")),
            free_cores: inner.dispatcher.free_cores(),
        }
    }
}

impl Inner {
    fn remembered(&self, id: u64) -> Option<&Record> {
        let recent = self.recent.iter().find(|record| record.id == id);
        recent.or_else(|| self.unsaved.get(&id))
    }

    fn known(&self, record: &Record) -> Known {
        let line = self.dispatcher.waiting();
        let position = line.take_while(|run| run.id != record.id).count() as u64 + 1;
        let waits = position <= self.dispatcher.waiting_count() as u64;
        let cores = self.dispatcher.cores_of(record.id).unwrap_or_default();
        Known {
            summary: self.summary(record, waits.then_some(position)),
            cores: cores.to_vec(),
            cancelled: record.cancelled.methods.clone(),
            paces: self
                .live
                .get(&record.id)
                .map_or_else(BTreeMap::new, |live| live.paces.clone()),
        }
    }

    fn summary(&self, record: &Record, position: Option<u64>) -> RunSummary {
        let live = self.live.get(&record.id);
        let state = match (&record.ended, live) {
            (Some(_), _) => RunState::Ended,
            (None, Some(_)) => RunState::Running,
            (None, None) => RunState::Queued,
        };
        let methods = match (&record.ended, live) {
            (Some(ended), _) => ended.methods,
            (None, Some(live)) => live.counts,
            (None, None) => Counts {
                total: record.methods,
                ..Counts::default()
            },
        };
        let sentence = match (&record.ended, live) {
            (Some(ended), _) => ended.sentence.clone(),
            (None, Some(live)) => {
                let so_far = format!("{} of {} methods ended", methods.ended, methods.total);
                match &live.waits_for {
                    Some(reason) => format!("{so_far}; the next one waits: {reason}"),
                    None => so_far,
                }
            }
            (None, None) => self.waits(record, position),
        };
        RunSummary {
            id: record.id,
            state,
            benchmark_id: record.benchmark_id.clone(),
            protocol_id: record.protocol_id.clone(),
            priority: record.priority,
            exclusive: record.exclusive,
            cores_wanted: record.cores as u64,
            submitted_utc: record.submitted_utc.clone(),
            started_utc: record.started_utc.clone(),
            ended_utc: record.ended.as_ref().map(|ended| ended.utc.clone()),
            methods,
            position: position.filter(|_| state == RunState::Queued),
            sentence,
            cancelled: record.cancelled.run,
            exit_code: record.ended.as_ref().map(|ended| ended.exit_code),
        }
    }

    /// What a run that waits waits for.
    fn waits(&self, record: &Record, position: Option<u64>) -> String {
        let run = waiting(record);
        match (self.dispatcher.waits_for(), position) {
            _ if self.dispatcher.is_too_large(&run) => self.dispatcher.hold(&run),
            (Some((id, hold)), _) if id == record.id => Some(hold),
            _ => None,
        }
        .map_or_else(
            || match position {
                Some(position) => format!("waits for its turn, number {position} in line"),
                None => "waits for its turn".into(),
            },
            |hold| hold.to_string(),
        )
    }
}
