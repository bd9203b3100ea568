//! What a run owes its methods, read from its records.

use super::work::{Assignment, How, assign};
use crate::error::Error;
use crate::rundir::plan::{Plan, parts};
use crate::rundir::record::{Answer, Part};
use crate::rundir::scores::read_scores;
use crate::rundir::state::{self, Attempt, Heartbeat};
use crate::rundir::{Inherited, RunDir};
use std::path::Path;

/// What is to be done for each method of a plan.
#[derive(Debug)]
pub(super) struct Owed {
    /// By position in the plan; `None` for a method that has its result, or to which nothing applies.
    pub(super) assignments: Vec<Option<Assignment>>,
    /// The highest session number that an attempt carries.
    pub(super) newest: u32,
}

/// Reads what a run owes.
///
/// # Errors
/// A record is there but cannot be used.
pub(super) fn owed(run: &RunDir, plan: &Plan, how: How) -> Result<Owed, Error> {
    let mut newest = 0;
    let mut assignments = Vec::with_capacity(plan.methods.len());
    for method in &plan.methods {
        let asked = parts(&plan.protocol, method);
        assignments.push(if asked.is_empty() {
            None
        } else {
            let attempts = state::own_attempts(run, &plan.nonce, &method.id)?;
            let attempts = proven(attempts, run, &method.id);
            let numbers = attempts.iter().map(|attempt| attempt.id.submission);
            newest = numbers.fold(newest, u32::max);
            let seen = state::counting(&attempts)
                .and_then(|newest| Heartbeat::read(&newest.dir))
                .map(|beat| beat.elapsed_seconds);
            let budget = plan.policy.budget_seconds;
            assign(&asked, &attempts, seen, budget, how)
        });
    }
    Ok(Owed {
        assignments,
        newest,
    })
}

/// Attempts without the answers that cannot be relied on: those whose score file is not the one they promise.
fn proven(mut attempts: Vec<Attempt>, run: &RunDir, method_id: &str) -> Vec<Attempt> {
    // Only the newest is ever gone on from.
    let newest = attempts.iter_mut().rev().find(|one| one.started.is_some());
    if let Some(newest) = newest {
        let stands = |dir: &Path, part: Part, answer: &Answer| match answer {
            Answer::Failed { .. } => true,
            Answer::Scored { items, sha256 } => {
                read_scores(&dir.join(part.score_file()), *items, sha256).is_ok()
            }
        };
        let dir = newest.dir.clone();
        newest
            .checkpoints
            .retain(|one| stands(&dir, one.part, &one.answer));
        let kept = |one: &Inherited| {
            let dir = run.attempt_dir(method_id, &one.from);
            stands(&dir, one.checkpoint.part, &one.checkpoint.answer)
        };
        if let Some(started) = &mut newest.started {
            started.ancestry.inherited.retain(kept);
        }
    }
    attempts
}
