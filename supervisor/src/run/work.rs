//! What a session has to do for a method, from the records of its earlier attempts. Pure: it is told what the files say and
//! answers what to ask a worker for, on whose account.

use crate::load::was_refused;
use crate::rundir::ancestry::{Ancestry, Inherited, Lost, Reason};
use crate::rundir::plan::datasets;
use crate::rundir::record::{Answer, Checkpoint, Part};
use crate::rundir::session::Mode;
use crate::rundir::state::{Attempt, counting};
use proctor_protocol::outcome::Outcome;

/// So many attempts in a row may fail on our side, and without a new checkpoint, before the method is set aside
/// (specs/distributed.md section 5).
pub const RETRIES: u32 = 3;
/// So many supervisors in a row may be lost over a method, without a new checkpoint, before it is set aside. Who is killed or
/// loses power says nothing of the method; a method that takes its machine down every time must not be tried for ever.
const LOST: u32 = 10;

/// How methods that have attempts already are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct How {
    /// Whether methods that are run again go on or begin anew.
    pub mode: Mode,
    /// Whether methods that failed by their own fault, or were set aside, get one more attempt.
    pub retry_failed: bool,
    /// See [`RETRIES`], which it is unless somebody says otherwise.
    pub retries: u32,
}

/// One attempt to make.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// What it has from the attempts before it.
    pub ancestry: Ancestry,
    /// What the worker is asked for; the rest is inherited.
    pub parts: Vec<Part>,
    /// The outcome when it is known beforehand: no worker is started then.
    pub verdict: Option<Outcome>,
}

/// The attempt to make of a method that is owed `parts`, or `None` when it has its result. `attempts` are all its attempts,
/// oldest first; `last_seen` is how long the newest had been running when it was last heard of.
pub fn assign(
    parts: &[Part],
    attempts: &[Attempt],
    last_seen: Option<f64>,
    budget_seconds: f64,
    how: How,
) -> Option<Assignment> {
    let Some(newest) = counting(attempts) else {
        return Some(Assignment {
            ancestry: Ancestry::default(),
            parts: parts.to_vec(),
            verdict: None,
        });
    };
    let outcome = newest.terminal.as_ref().map(|terminal| &terminal.outcome);
    // Whether the method itself is the reason why it has no result.
    let failed = match outcome {
        Some(outcome) if outcome.succeeded() => return None,
        Some(outcome) => outcome.charged() || *outcome == Outcome::Unresolved,
        None => false,
    };
    if failed && !how.retry_failed {
        return None;
    }
    let reason = match (failed, how.mode) {
        (true, _) => Reason::Retry,
        (false, Mode::Restart) => Reason::Restart,
        (false, _) => Reason::Continue,
    };
    let (lost, failures) = fruitless(attempts);
    let set_aside = !failed && (lost >= LOST || failures >= how.retries);
    let mut assignment = if how.mode == Mode::Restart && !set_aside {
        anew(parts, newest, last_seen, reason)
    } else {
        go_on(parts, newest, last_seen, reason)
    };
    assignment.verdict = if assignment.parts.is_empty() {
        Some(complete(&assignment.ancestry.inherited, parts))
    } else if set_aside {
        Some(Outcome::Unresolved)
    } else if assignment.ancestry.earlier_seconds >= budget_seconds {
        Some(Outcome::Timeout)
    } else {
        None
    };
    Some(assignment)
}

/// Nothing of earlier attempts is used, and nothing charged.
fn anew(parts: &[Part], newest: &Attempt, last_seen: Option<f64>, reason: Reason) -> Assignment {
    let mut lost = lost(newest);
    lost.push(Lost {
        attempt: newest.id.clone(),
        seconds: seen(newest, last_seen),
    });
    Assignment {
        ancestry: Ancestry {
            reason,
            inherited: Vec::new(),
            earlier_seconds: 0.0,
            lost,
        },
        parts: parts.to_vec(),
        verdict: None,
    }
}

/// Every durable answer stands and what it took is charged. What came after the last one is charged only to a method that
/// ended by its own fault.
fn go_on(parts: &[Part], newest: &Attempt, last_seen: Option<f64>, reason: Reason) -> Assignment {
    let retry = reason == Reason::Retry;
    let inherited: Vec<Inherited> = parts
        .iter()
        .filter_map(|part| standing(newest, parts, *part, retry))
        .collect();
    let has = |part: &Part| inherited.iter().any(|one| one.checkpoint.part == *part);
    let left: Vec<Part> = parts.iter().filter(|part| !has(part)).copied().collect();
    let durable = newest.checkpoints.iter().map(|one| one.at_seconds);
    let durable = durable.fold(0.0, f64::max);
    let terminal = newest.terminal.as_ref();
    let own = terminal.filter(|terminal| terminal.outcome.charged());
    let mut lost = lost(newest);
    let used = if let Some(terminal) = own {
        terminal.wall_seconds
    } else {
        let seconds = seen(newest, last_seen).map(|seen| (seen - durable).max(0.0));
        lost.push(Lost {
            attempt: newest.id.clone(),
            seconds,
        });
        durable
    };
    Assignment {
        ancestry: Ancestry {
            reason,
            inherited,
            earlier_seconds: newest.earlier_seconds() + used,
            lost,
        },
        parts: left,
        verdict: None,
    }
}

/// The durable answer for a part that a next attempt need not give again. The last scores of an attempt are recorded only
/// when its worker came to a good end in time; an error is recorded as soon as it is said, so at the last part it
/// proves nothing, and it is what a method is tried again for.
fn standing(newest: &Attempt, parts: &[Part], part: Part, retry: bool) -> Option<Inherited> {
    let stands = |checkpoint: &Checkpoint, last: bool| match checkpoint.answer {
        Answer::Scored { .. } => true,
        Answer::Failed { .. } => !retry && !last,
    };
    let mut before = newest.inherited().iter();
    if let Some(one) = before.find(|one| one.checkpoint.part == part) {
        return stands(&one.checkpoint, false).then(|| one.clone());
    }
    let last = newest.asked(parts).next_back() == Some(part);
    let mut own = newest.checkpoints.iter();
    let own = own.find(|checkpoint| checkpoint.part == part);
    own.filter(|checkpoint| stands(checkpoint, last))
        .map(|checkpoint| Inherited {
            from: newest.id.clone(),
            checkpoint: checkpoint.clone(),
        })
}

/// How a method ended of which every part is answered.
fn complete(inherited: &[Inherited], parts: &[Part]) -> Outcome {
    let failed = |one: &&Inherited| matches!(one.checkpoint.answer, Answer::Failed { .. });
    let failed: Vec<Part> = inherited
        .iter()
        .filter(failed)
        .map(|one| one.checkpoint.part)
        .collect();
    if failed.is_empty() {
        return Outcome::Completed;
    }
    Outcome::DatasetErrors {
        failed: datasets(&failed) as u32,
        total: datasets(parts) as u32,
    }
}

fn lost(newest: &Attempt) -> Vec<Lost> {
    let started = newest.started.as_ref();
    started.map_or_else(Vec::new, |started| started.ancestry.lost.clone())
}

/// How long an attempt ran, as far as is known.
fn seen(newest: &Attempt, last_seen: Option<f64>) -> Option<f64> {
    let terminal = newest.terminal.as_ref();
    terminal.map_or(last_seen, |terminal| Some(terminal.wall_seconds))
}

/// Of the newest attempts in a row that came to nothing through no fault of the method, without a checkpoint of their own: how
/// many were cut off, and how many failed on our side. Those that somebody stopped do not count, nor those that a busy
/// machine kept from starting.
fn fruitless(attempts: &[Attempt]) -> (u32, u32) {
    let (mut lost, mut failures) = (0, 0);
    let started = attempts.iter().rev().filter(|one| one.started.is_some());
    for attempt in started {
        let none = attempt.checkpoints.is_empty();
        let terminal = attempt.terminal.as_ref();
        let refused = terminal.is_some_and(|terminal| was_refused(&terminal.measured));
        match terminal.map(|terminal| &terminal.outcome) {
            Some(Outcome::Interrupted | Outcome::Cancelled) if none => {}
            Some(_) if refused => {}
            None if none => lost += 1,
            Some(Outcome::Infrastructure(_)) if none => failures += 1,
            _ => break,
        }
    }
    (lost, failures)
}

#[cfg(test)]
mod tests;
