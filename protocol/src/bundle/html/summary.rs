//! What became of each method, for people.

use std::collections::HashMap;

use super::seconds;
use crate::bundle::document::Document;
use crate::bundle::other_load;
use crate::bundle::owed::execution_is_ours;
use crate::canonical::{Object, Value};
use crate::outcome::Outcome;
use crate::report::{Row, Status};

/// How a method came out, what is owed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// Owed another attempt, through no fault of its own.
    Owed,
    /// Some dataset has no score.
    Failed,
    /// Every applicable dataset is scored.
    Completed,
    /// No dataset applies.
    NotApplicable,
}

/// One method.
#[derive(Debug)]
pub(super) struct Summary<'a> {
    pub name: &'a str,
    pub id: &'a str,
    pub kind: &'a str,
    pub standing: Standing,
    /// Datasets with scores, and datasets that apply.
    pub scored: usize,
    pub applicable: usize,
    pub wall_seconds: Option<f64>,
    pub budget_seconds: Option<f64>,
    /// What happened, in a sentence or two.
    pub sentence: String,
    /// The short form of the outcome.
    pub outcome: String,
    /// Its entry in `metadata.supervised_executions`.
    pub supervised: Option<&'a Object>,
}

/// Rows of one method, counted by dataset.
#[derive(Default)]
struct Counts<'a> {
    datasets: HashMap<&'a str, Status>,
    error: Option<&'a str>,
    reason: Option<&'a str>,
    owed: bool,
}

/// All methods: those that are owed an attempt first, then failed ones, then by name.
pub(super) fn summaries(document: &Document) -> Vec<Summary<'_>> {
    let mut counts: HashMap<&str, (&Row, Counts<'_>)> = HashMap::new();
    for row in document.rows() {
        let (_, counts) = counts
            .entry(&row.algorithm_id)
            .or_insert_with(|| (row, Counts::default()));
        let status = match row.status {
            Some(status) => status,
            None if row.error.is_some() => Status::Failed,
            None => Status::Completed,
        };
        counts.datasets.insert(&row.dataset_name, status);
        counts.owed |= row.not_charged();
        counts.error = counts.error.or(row.error.as_deref());
        counts.reason = counts.reason.or(row.not_applicable_reason.as_deref());
    }
    let supervised = document.metadata().get("supervised_executions");
    let supervised = supervised.and_then(Value::as_array).unwrap_or_default();
    let entry_of = |id: &str| {
        let entries = supervised.iter().filter_map(Value::as_object);
        let mut entries =
            entries.filter(|entry| entry.get("algorithm_id").and_then(Value::as_str) == Some(id));
        entries.next()
    };
    let mut summaries: Vec<Summary<'_>> = counts
        .into_values()
        .map(|(row, counts)| summary(row, &counts, entry_of(&row.algorithm_id)))
        .collect();
    summaries.sort_by(|a, b| {
        let key = |one: &Summary<'_>| (one.standing, one.name.to_owned(), one.id.to_owned());
        key(a).cmp(&key(b))
    });
    summaries
}

fn summary<'a>(row: &'a Row, counts: &Counts<'a>, supervised: Option<&'a Object>) -> Summary<'a> {
    let count = |status| {
        counts
            .datasets
            .values()
            .filter(|one| **one == status)
            .count()
    };
    let (scored, failed) = (count(Status::Completed), count(Status::Failed));
    let applicable = scored + failed;
    let owed = counts.owed || supervised.is_some_and(execution_is_ours);
    let standing = match (owed, failed, applicable) {
        (true, _, _) => Standing::Owed,
        (_, _, 0) => Standing::NotApplicable,
        (_, 0, _) => Standing::Completed,
        _ => Standing::Failed,
    };
    let number = |key| {
        supervised
            .and_then(|entry| entry.get(key))
            .and_then(Value::as_number)
    };
    let outcome = supervised.and_then(|entry| Outcome::from_value(entry.get("outcome")?));
    let mut summary = Summary {
        name: &row.algorithm_name,
        id: &row.algorithm_id,
        kind: &row.algorithm_kind,
        standing,
        scored,
        applicable,
        wall_seconds: number("wall_seconds")
            // With what earlier attempts used of the budget.
            .map(|wall| wall + number("earlier_seconds").unwrap_or(0.0))
            .or_else(|| number("elapsed_seconds")),
        budget_seconds: number("budget_seconds"),
        sentence: String::new(),
        outcome: outcome
            .as_ref()
            .map_or_else(|| plain_outcome(standing).to_owned(), short_outcome),
        supervised,
    };
    summary.sentence = match &outcome {
        Some(outcome) => of_outcome(outcome, &summary),
        None => of_rows(counts, &summary),
    };
    if let Some(attempts) = number("attempts").filter(|attempts| *attempts > 1.0) {
        let attempts = format!(" The newest of {attempts} attempts counts.");
        summary.sentence.push_str(&attempts);
    }
    let leaked = supervised
        .and_then(|entry| entry.get("facts")?.get("leaked_processes"))
        .and_then(Value::as_int);
    if let Some(leaked) = leaked.filter(|leaked| *leaked > 0) {
        let processes = if leaked == 1 { "process" } else { "processes" };
        let leaked = format!(" It left {leaked} {processes} behind, which the room ended.");
        summary.sentence.push_str(&leaked);
    }
    let measured = supervised.and_then(|entry| entry.get("measured"));
    if let Some(load) = measured.and_then(|measured| other_load(measured, "used")) {
        let beside = format!(" Beside it, {load}; its times are not comparable.");
        summary.sentence.push_str(&beside);
    }
    summary
}

fn plain_outcome(standing: Standing) -> &'static str {
    match standing {
        Standing::Owed => "not finished",
        Standing::Failed => "failed",
        Standing::Completed => "completed",
        Standing::NotApplicable => "not applicable",
    }
}

/// The outcome in a word or two, without its free text.
fn short_outcome(outcome: &Outcome) -> String {
    let kind = outcome.kind().replace('_', " ");
    match outcome {
        Outcome::ResourceLimit(which) => format!("limit: {which}"),
        Outcome::Signal(number) | Outcome::Exit(number) => format!("{kind} {number}"),
        Outcome::Incomplete { done: part, total }
        | Outcome::DatasetErrors {
            failed: part,
            total,
        } => {
            format!("{kind} {part}/{total}")
        }
        _ => kind,
    }
}

/// "all 5 datasets"
fn all_datasets(count: usize) -> String {
    match count {
        1 => "the one dataset".to_owned(),
        count => format!("all {count} datasets"),
    }
}

fn of_outcome(outcome: &Outcome, summary: &Summary<'_>) -> String {
    let (scored, applicable) = (summary.scored, summary.applicable);
    let had = format!("{scored} of {applicable} datasets had been scored");
    let budget = summary
        .budget_seconds
        .map_or(String::new(), |budget| format!(" of {}", seconds(budget)));
    match outcome {
        Outcome::Completed if scored == applicable => {
            format!("Scored {}.", all_datasets(applicable))
        }
        Outcome::Completed => {
            format!("Ended well, but {scored} of {applicable} datasets have scores that count.")
        }
        Outcome::Timeout => format!("Used up its budget{budget}; {had}."),
        Outcome::OutOfMemory => format!("Was ended by the kernel for its use of memory; {had}."),
        Outcome::ResourceLimit(which) => format!("Passed its limit of {which}; {had}."),
        Outcome::Signal(number) => format!("Died of signal {number}; {had}."),
        Outcome::Exit(code) => format!("Exited with code {code}; {had}."),
        Outcome::ProtocolError(what) => {
            format!("Broke the rules of the conversation ({what}); {had}.")
        }
        Outcome::Incomplete { .. } => format!("Ended on its own before it was done; {had}."),
        Outcome::DatasetErrors { failed, total } => {
            format!("Could not score {failed} of {total} datasets.")
        }
        Outcome::NotApplicable(reason) => format!("Declared not to apply: {reason}."),
        Outcome::Interrupted => {
            format!("The run was interrupted; {had}. This is not held against the method.")
        }
        Outcome::Cancelled => format!("Was cancelled; {had}. This is not held against the method."),
        Outcome::Infrastructure(reason) => {
            format!("Our side failed ({reason}); {had}. This is not held against the method.")
        }
        Outcome::Unresolved => format!("No attempt gave an answer that counts; {had}."),
    }
}

/// The sentence for bundles that do not say how a method was supervised.
fn of_rows(counts: &Counts<'_>, summary: &Summary<'_>) -> String {
    let had = format!(
        "{} of {} datasets are scored",
        summary.scored, summary.applicable
    );
    match (summary.standing, counts.error, counts.reason) {
        (Standing::Completed, ..) => format!("Scored {}.", all_datasets(summary.applicable)),
        (Standing::NotApplicable, _, Some(reason)) => format!("Declared not to apply: {reason}."),
        (_, Some(error), _) => format!("{error}; {had}."),
        _ => format!("{had}."),
    }
}
