//! Steps 9 and 10: every row by itself, and that no row is missing or comes twice.

use std::collections::HashMap;
use std::sync::Arc;

use proctor_wire::Family;

use super::cells::{RawRow, RawRows};
use super::identity::{Methods, is_sha256};
use crate::bundle::Finding;
use crate::canonical::{Object, Value};
use crate::frozen::{DatasetEntry, Protocol};
use crate::report::{Row, Status};

/// What rows are compared with, with texts shared by all typed rows.
struct Frozen<'a> {
    entries: &'a [DatasetEntry],
    by_name: HashMap<&'a str, usize>,
    names: Vec<Arc<str>>,
    fingerprints: Vec<Arc<str>>,
    domain: Arc<str>,
    /// Metric names by family, pair first.
    metrics: [Vec<Arc<str>>; 2],
    /// Reasons by method, then dataset.
    exclusions: Vec<Option<Arc<str>>>,
}

impl<'a> Frozen<'a> {
    fn new(protocol: &'a Protocol, methods: &Methods<'_>) -> Result<Self, Finding> {
        let entries = protocol.datasets();
        let shared = |names: &[String]| names.iter().map(|name| name.as_str().into()).collect();
        let names = entries.iter().map(|entry| entry.name.as_str());
        Ok(Self {
            entries,
            by_name: names.clone().zip(0..).collect(),
            names: names.map(Into::into).collect(),
            fingerprints: entries
                .iter()
                .map(|entry| entry.content_sha256.as_str().into())
                .collect(),
            domain: protocol.domain().into(),
            metrics: [Family::Pair, Family::Retrieval]
                .map(|family| shared(protocol.metrics(family))),
            exclusions: methods.exclusions(protocol)?,
        })
    }
}

/// Step 9: judges every row and gives typed rows in the same order.
pub(super) fn check_rows(
    raw: &RawRows<'_>,
    protocol: &Protocol,
    methods: &Methods<'_>,
) -> Result<Vec<Row>, Finding> {
    let frozen = Frozen::new(protocol, methods)?;
    let mut rows = Vec::with_capacity(raw.rows.len());
    for (at, cells) in raw.rows.iter().enumerate() {
        let mut row = check_row(cells, &frozen, methods).map_err(|(column, problem)| {
            Finding::new("row", format!("per_dataset[{at}].{column}"), problem)
        })?;
        if !raw.unknown[at].is_empty() {
            let unknown = raw.unknown[at].iter();
            let unknown: Object = unknown
                .map(|(key, value)| (*key, (*value).clone()))
                .collect();
            row.extra = Some(Box::new(unknown));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// A column and what is wrong in it.
type Problem = (&'static str, String);

fn problem<T>(column: &'static str, text: impl Into<String>) -> Result<T, Problem> {
    Err((column, text.into()))
}

/// Text or null; an error for anything else.
fn optional_text<'a>(column: &'static str, value: &'a Value) -> Result<Option<&'a str>, Problem> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        other => problem(
            column,
            format!("must be text or null, not {}", other.type_name()),
        ),
    }
}

fn check_row(
    cells: &RawRow<'_>,
    frozen: &Frozen<'_>,
    methods: &Methods<'_>,
) -> Result<Row, Problem> {
    let error = optional_text("error", cells.error)?.filter(|error| !error.is_empty());
    let dataset = check_dataset(cells, frozen)?;
    let entry = &frozen.entries[dataset];
    let metrics = &frozen.metrics[usize::from(entry.family == Family::Retrieval)];
    let metric = cells.metric.as_str();
    let Some(metric) = metrics.iter().find(|name| Some(name.as_ref()) == metric) else {
        return problem(
            "metric",
            format!("is no {} metric of the protocol", entry.family.name()),
        );
    };
    let id = cells.algorithm_id.as_str().unwrap_or_default();
    let Some(method) = methods.find(id).filter(|_| is_sha256(id)) else {
        return problem(
            "algorithm_id",
            "must be a method id of 64 lower-case hex digits",
        );
    };
    if cells.task_type != cells.domain {
        return problem("task_type", "must equal the domain");
    }
    let reason = &frozen.exclusions[method * frozen.entries.len() + dataset];
    let status = check_status(cells, reason.as_deref(), error.is_some())?;
    let sample_count = check_sample_count(cells)?;
    let score = check_score(cells, sample_count, entry)?;
    check_coverage(sample_count, entry)?;
    let elapsed_seconds = match cells.elapsed_seconds.as_number() {
        Some(seconds) if seconds.is_finite() && seconds >= 0.0 => seconds,
        _ => {
            return problem(
                "elapsed_seconds",
                "must be a number of seconds, finite and at least 0",
            );
        }
    };
    let shared = |value: &Value, default: &str| match value {
        Value::String(text) => text.clone(),
        _ => default.into(),
    };
    Ok(Row {
        domain: frozen.domain.clone(),
        family: entry.family,
        dataset_name: frozen.names[dataset].clone(),
        dataset_fingerprint: frozen.fingerprints[dataset].clone(),
        dataset_source: shared(cells.dataset_source, "local"),
        algorithm_name: shared(cells.algorithm_name, ""),
        algorithm_id: methods.list[method].0.clone(),
        algorithm_kind: shared(cells.algorithm_kind, ""),
        metric: metric.clone(),
        score,
        sample_count,
        status,
        not_applicable_reason: reason.clone(),
        error: error.map(Into::into),
        elapsed_seconds,
        selected_threshold: cells.selected_threshold.as_number(),
        eligible: score.is_some(),
        rank: None,
        extra: None,
    })
}

/// The row's dataset, as frozen.
fn check_dataset(cells: &RawRow<'_>, frozen: &Frozen<'_>) -> Result<usize, Problem> {
    let name = cells.dataset_name.as_str();
    let Some(&dataset) = name.and_then(|name| frozen.by_name.get(name)) else {
        return problem("dataset_name", "is no dataset of the protocol");
    };
    let entry = &frozen.entries[dataset];
    for (column, value, expected) in [
        ("domain", cells.domain, entry.domain.as_str()),
        ("task_family", cells.task_family, entry.family.name()),
        (
            "dataset_fingerprint",
            cells.dataset_fingerprint,
            entry.content_sha256.as_str(),
        ),
    ] {
        if value.as_str() != Some(expected) {
            return problem(
                column,
                format!("must be {expected:?}, as frozen for {:?}", entry.name),
            );
        }
    }
    Ok(dataset)
}

/// Status, reason and error must tell one story.
fn check_status(
    cells: &RawRow<'_>,
    excluded: Option<&str>,
    has_error: bool,
) -> Result<Option<Status>, Problem> {
    let status = optional_text("status", cells.status)?;
    let reported = optional_text("not_applicable_reason", cells.not_applicable_reason)?;
    if let Some(reason) = excluded {
        let unscored = cells.score.is_null()
            && cells.sample_count.as_number() == Some(0.0)
            && cells.elapsed_seconds.as_number() == Some(0.0)
            && !has_error;
        if status == Some("not_applicable") && reported == Some(reason) && unscored {
            return Ok(Some(Status::NotApplicable));
        }
        return problem(
            "status",
            format!(
                "the method excludes this dataset ({reason:?}), so the row must be not_applicable with that reason, \
                 without score, samples, time and error"
            ),
        );
    }
    if status == Some("not_applicable") || reported.is_some_and(|reason| !reason.is_empty()) {
        return problem(
            "status",
            "the method's configuration does not exclude this dataset",
        );
    }
    match status {
        None => Ok(None),
        Some("failed") if !has_error => problem("error", "a failed row must say why"),
        Some("failed") if !cells.score.is_null() => {
            problem("score", "a failed row must have no score")
        }
        Some("failed") => Ok(Some(Status::Failed)),
        Some("completed") if has_error => problem("error", "a completed row must have no error"),
        Some("completed") => Ok(Some(Status::Completed)),
        Some(_) => problem(
            "status",
            "must be completed, failed, not_applicable or null",
        ),
    }
}

/// The largest count that a double holds exactly; no dataset comes near it.
const LARGEST_COUNT: f64 = 9_007_199_254_740_992.0;

fn check_sample_count(cells: &RawRow<'_>) -> Result<u64, Problem> {
    match cells.sample_count.as_number() {
        Some(count) if (0.0..=LARGEST_COUNT).contains(&count) && count.fract() == 0.0 => {
            Ok(count as u64)
        }
        _ => problem("sample_count", "must be a whole number of at least 0"),
    }
}

fn check_score(
    cells: &RawRow<'_>,
    sample_count: u64,
    entry: &DatasetEntry,
) -> Result<Option<f64>, Problem> {
    if cells.score.is_null() {
        return Ok(None);
    }
    let Some(score) = cells.score.as_number() else {
        return problem(
            "score",
            format!("must be a number or null, not {}", cells.score.type_name()),
        );
    };
    if !(0.0..=1.0).contains(&score) {
        return problem("score", "must lie between 0 and 1");
    }
    if sample_count != entry.expected_result_count {
        return problem(
            "sample_count",
            format!(
                "a score needs all {} items of {:?}",
                entry.expected_result_count, entry.name
            ),
        );
    }
    Ok(Some(score))
}

/// Sample counts that the frozen dataset can have.
fn check_coverage(sample_count: u64, entry: &DatasetEntry) -> Result<(), Problem> {
    match entry.family {
        Family::Pair if sample_count != 0 && sample_count != entry.count("pairs") => problem(
            "sample_count",
            format!(
                "must be 0 or the {} pairs of {:?}",
                entry.count("pairs"),
                entry.name
            ),
        ),
        Family::Retrieval
            if sample_count > entry.count("queries").saturating_mul(entry.count("corpus")) =>
        {
            problem(
                "sample_count",
                format!("{:?} has fewer candidates", entry.name),
            )
        }
        _ => Ok(()),
    }
}

/// Step 10: each method has each metric of each dataset exactly once.
pub(super) fn check_complete(
    rows: &[Row],
    protocol: &Protocol,
    methods: &Methods<'_>,
) -> Result<(), Finding> {
    let mut slots = Vec::new();
    for entry in protocol.datasets() {
        slots.extend(
            protocol
                .metrics(entry.family)
                .iter()
                .map(|metric| (&*entry.name, &**metric)),
        );
    }
    let slot_of: HashMap<_, usize> = slots.iter().copied().zip(0..).collect();
    // The row of every slot, method by method; a second one is remembered until all are known to be there.
    let mut places = vec![None; methods.len() * slots.len()];
    let mut twice = None;
    for (at, row) in rows.iter().enumerate() {
        let method = methods.find(&row.algorithm_id);
        let slot = slot_of.get(&(&*row.dataset_name, &*row.metric));
        if let (Some(method), Some(slot)) = (method, slot)
            && let Some(first) = places[method * slots.len() + slot].replace(at)
        {
            twice = twice.or(Some((first, at)));
        }
    }
    if let Some(missing) = places.iter().position(Option::is_none) {
        let (dataset, metric) = slots[missing % slots.len()];
        let id = &methods.list[missing / slots.len()].0;
        let problem = format!(
            "method {id} has no row for {metric} on {dataset:?}; failed methods keep rows with a null score"
        );
        return Err(Finding::new("missing_rows", "per_dataset", problem));
    }
    match twice {
        None => Ok(()),
        Some((first, second)) => Err(Finding::new(
            "duplicate_rows",
            format!("per_dataset[{second}]"),
            format!("is for the same method, dataset and metric as per_dataset[{first}]"),
        )),
    }
}
