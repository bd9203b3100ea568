//! Steps 9 and 10: every row by itself, and that no row is missing or comes twice.

use std::collections::HashMap;
use std::sync::Arc;

use proctor_wire::Family;

use super::identity::Methods;
use crate::bundle::Finding;
use crate::bundle::cells::{Cell, Column, Memo, RawRow, RawRows};
use crate::canonical::is_sha256;
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
    /// Number of the first row slot of each dataset: a method has one slot per dataset and metric.
    first_slots: Vec<usize>,
    slots: usize,
}

impl<'a> Frozen<'a> {
    fn new(protocol: &'a Protocol, methods: &Methods<'_>) -> Result<Self, Finding> {
        let entries = protocol.datasets();
        let shared = |names: &[String]| names.iter().map(|name| name.as_str().into()).collect();
        let names = entries.iter().map(|entry| entry.name.as_str());
        let mut slots = 0;
        let mut first_slots = Vec::with_capacity(entries.len());
        for entry in entries {
            first_slots.push(slots);
            slots += protocol.metrics(entry.family).len();
        }
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
            first_slots,
            slots,
        })
    }
}

impl Frozen<'_> {
    /// The finding of a place no row is for.
    fn missing(&self, place: usize, methods: &Methods<'_>) -> Finding {
        let (method, slot) = (place / self.slots, place % self.slots);
        let dataset = self.first_slots.partition_point(|first| *first <= slot) - 1;
        let metrics = &self.metrics[usize::from(self.entries[dataset].family == Family::Retrieval)];
        let problem = format!(
            "method {} has no row for {} on {:?}; failed methods keep rows with a null score",
            methods.list[method].0,
            metrics[slot - self.first_slots[dataset]],
            self.names[dataset]
        );
        Finding::new("missing_rows", "per_dataset", problem)
    }
}

/// A column and what is wrong in it.
type Problem = (Column, String);

fn problem<T>(column: Column, text: impl Into<String>) -> Result<T, Problem> {
    Err((column, text.into()))
}

/// Steps 9 and 10: judges every row, then that each method has each metric of each dataset exactly once. Gives typed rows in
/// the same order.
pub(super) fn check_rows(
    raw: &RawRows,
    protocol: &Protocol,
    methods: &Methods<'_>,
) -> Result<Vec<Row>, Finding> {
    let mut judge = Judge {
        raw,
        frozen: Frozen::new(protocol, methods)?,
        methods,
        datasets: Memo::new(raw),
        ids: Memo::new(raw),
    };
    let mut rows = Vec::with_capacity(raw.rows.len());
    // The row of every slot, method by method; a second one is remembered until all are known to be there.
    let mut places = vec![None; methods.len() * judge.frozen.slots];
    let mut twice = None;
    for (at, cells) in raw.rows.iter().enumerate() {
        let (row, place) = judge.row(cells).map_err(|(column, problem)| {
            let at = format!("per_dataset[{at}].{}", column.name());
            Finding::new("row", at, problem)
        })?;
        rows.push(row);
        if let Some(first) = places[place].replace(at) {
            twice = twice.or(Some((first, at)));
        }
    }
    for (at, unknown) in &raw.unknown {
        rows[*at].extra = Some(Box::new(unknown.clone()));
    }
    if let Some(missing) = places.iter().position(Option::is_none) {
        return Err(judge.frozen.missing(missing, methods));
    }
    match twice {
        None => Ok(rows),
        Some((first, second)) => Err(Finding::new(
            "duplicate_rows",
            format!("per_dataset[{second}]"),
            format!("is for the same method, dataset and metric as per_dataset[{first}]"),
        )),
    }
}

struct Judge<'a> {
    raw: &'a RawRows,
    frozen: Frozen<'a>,
    methods: &'a Methods<'a>,
    datasets: Memo,
    ids: Memo,
}

impl Judge<'_> {
    fn text(&self, cell: Cell) -> Option<&str> {
        self.raw.text(cell).map(AsRef::as_ref)
    }

    /// Text or null; an error for anything else.
    fn optional_text(&self, cells: &RawRow, column: Column) -> Result<Option<&Arc<str>>, Problem> {
        match cells.get(column) {
            Cell::Null => Ok(None),
            cell @ Cell::Text(_) => Ok(self.raw.text(cell)),
            other => problem(
                column,
                format!("must be text or null, not {}", other.type_name()),
            ),
        }
    }

    /// The typed row, and its place among the slots of all methods.
    fn row(&mut self, cells: &RawRow) -> Result<(Row, usize), Problem> {
        self.optional_text(cells, Column::Error)?;
        let dataset = self.dataset(cells)?;
        let method = self.method(cells);
        let this = &*self;
        let entry = &this.frozen.entries[dataset];
        let metrics = &this.frozen.metrics[usize::from(entry.family == Family::Retrieval)];
        let metric = this.text(cells.get(Column::Metric));
        let named = |name: &Arc<str>| Some(name.as_ref()) == metric;
        let Some(metric) = metrics.iter().position(named) else {
            let family = entry.family.name();
            return problem(
                Column::Metric,
                format!("is no {family} metric of the protocol"),
            );
        };
        let Some(method) = method else {
            return problem(
                Column::AlgorithmId,
                "must be a method id of 64 lower-case hex digits",
            );
        };
        let Some(name) = this.raw.text(cells.get(Column::AlgorithmName)) else {
            return problem(Column::AlgorithmName, "must be text");
        };
        if this.text(cells.get(Column::TaskType)) != Some(&entry.domain) {
            return problem(Column::TaskType, "must equal the domain");
        }
        let error = this.optional_text(cells, Column::Error)?;
        let error = error.filter(|error| !error.is_empty());
        let reason = &this.frozen.exclusions[method * this.frozen.entries.len() + dataset];
        let status = this.status(cells, reason.as_deref(), error.is_some())?;
        let sample_count = sample_count(cells)?;
        let score = score(cells, sample_count, entry)?;
        check_coverage(sample_count, entry)?;
        let elapsed_seconds = match cells.get(Column::ElapsedSeconds).number() {
            Some(seconds) if seconds.is_finite() && seconds >= 0.0 => seconds,
            _ => {
                return problem(
                    Column::ElapsedSeconds,
                    "must be a number of seconds, finite and at least 0",
                );
            }
        };
        let shared = |column, default: &str| {
            let text = this.raw.text(cells.get(column));
            text.cloned().unwrap_or_else(|| default.into())
        };
        let place = method * this.frozen.slots + this.frozen.first_slots[dataset] + metric;
        let row = Row {
            domain: this.frozen.domain.clone(),
            family: entry.family,
            dataset_name: this.frozen.names[dataset].clone(),
            dataset_fingerprint: this.frozen.fingerprints[dataset].clone(),
            dataset_source: shared(Column::DatasetSource, "local"),
            algorithm_name: name.clone(),
            algorithm_id: this.methods.list[method].0.clone(),
            algorithm_kind: shared(Column::AlgorithmKind, ""),
            metric: metrics[metric].clone(),
            score,
            sample_count,
            status,
            not_applicable_reason: reason.clone(),
            error: error.cloned(),
            elapsed_seconds,
            selected_threshold: cells.get(Column::SelectedThreshold).number(),
            eligible: score.is_some(),
            rank: None,
            extra: None,
        };
        Ok((row, place))
    }

    /// The row's method.
    fn method(&mut self, cells: &RawRow) -> Option<usize> {
        let cell = cells.get(Column::AlgorithmId);
        let (raw, methods) = (self.raw, self.methods);
        self.ids.ask(cell, || {
            let id = raw.text(cell).filter(|id| is_sha256(id))?;
            methods.find(id)
        })
    }

    /// The row's dataset, which must be as frozen.
    fn dataset(&mut self, cells: &RawRow) -> Result<usize, Problem> {
        let cell = cells.get(Column::DatasetName);
        let (raw, by_name) = (self.raw, &self.frozen.by_name);
        let dataset = self.datasets.ask(cell, || {
            let name = raw.text(cell)?;
            by_name.get(name.as_ref()).copied()
        });
        let Some(dataset) = dataset else {
            return problem(Column::DatasetName, "is no dataset of the protocol");
        };
        let entry = &self.frozen.entries[dataset];
        for (column, expected) in [
            (Column::Domain, entry.domain.as_str()),
            (Column::TaskFamily, entry.family.name()),
            (Column::DatasetFingerprint, entry.content_sha256.as_str()),
        ] {
            if self.text(cells.get(column)) != Some(expected) {
                return problem(
                    column,
                    format!("must be {expected:?}, as frozen for {:?}", entry.name),
                );
            }
        }
        Ok(dataset)
    }

    /// Status, reason and error must tell one story.
    fn status(
        &self,
        cells: &RawRow,
        excluded: Option<&str>,
        has_error: bool,
    ) -> Result<Option<Status>, Problem> {
        let status = self.optional_text(cells, Column::Status)?;
        let status = status.map(AsRef::as_ref);
        let reported = self.optional_text(cells, Column::NotApplicableReason)?;
        let reported = reported.map(AsRef::as_ref);
        if let Some(reason) = excluded {
            let zero = |column| cells.get(column).number() == Some(0.0);
            let unscored = cells.get(Column::Score).is_null()
                && zero(Column::SampleCount)
                && zero(Column::ElapsedSeconds)
                && !has_error;
            if status == Some("not_applicable") && reported == Some(reason) && unscored {
                return Ok(Some(Status::NotApplicable));
            }
            return problem(
                Column::Status,
                format!(
                    "the method excludes this dataset ({reason:?}), so the row must be not_applicable with that reason, \
                     without score, samples, time and error"
                ),
            );
        }
        let has_reason = reported.is_some_and(|reason: &str| !reason.is_empty());
        if status == Some("not_applicable") || has_reason {
            return problem(
                Column::Status,
                "the method's configuration does not exclude this dataset",
            );
        }
        match status {
            None => Ok(None),
            Some("failed") if !has_error => problem(Column::Error, "a failed row must say why"),
            Some("failed") if !cells.get(Column::Score).is_null() => {
                problem(Column::Score, "a failed row must have no score")
            }
            Some("failed") => Ok(Some(Status::Failed)),
            Some("completed") if has_error => {
                problem(Column::Error, "a completed row must have no error")
            }
            Some("completed") => Ok(Some(Status::Completed)),
            Some(_) => problem(
                Column::Status,
                "must be completed, failed, not_applicable or null",
            ),
        }
    }
}

/// The largest count that a double holds exactly; no dataset comes near it.
const LARGEST_COUNT: f64 = 9_007_199_254_740_992.0;

fn sample_count(cells: &RawRow) -> Result<u64, Problem> {
    match cells.get(Column::SampleCount).number() {
        Some(count) if (0.0..=LARGEST_COUNT).contains(&count) && count.fract() == 0.0 => {
            Ok(count as u64)
        }
        _ => problem(Column::SampleCount, "must be a whole number of at least 0"),
    }
}

fn score(cells: &RawRow, sample_count: u64, entry: &DatasetEntry) -> Result<Option<f64>, Problem> {
    let cell = cells.get(Column::Score);
    if cell.is_null() {
        return Ok(None);
    }
    let Some(score) = cell.number() else {
        let what = cell.type_name();
        return problem(
            Column::Score,
            format!("must be a number or null, not {what}"),
        );
    };
    if !(0.0..=1.0).contains(&score) {
        return problem(Column::Score, "must lie between 0 and 1");
    }
    if sample_count != entry.expected_result_count {
        return problem(
            Column::SampleCount,
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
    let matrix = entry.count("queries").saturating_mul(entry.count("corpus"));
    match entry.family {
        Family::Pair if sample_count != 0 && sample_count != entry.count("pairs") => problem(
            Column::SampleCount,
            format!(
                "must be 0 or the {} pairs of {:?}",
                entry.count("pairs"),
                entry.name
            ),
        ),
        Family::Retrieval if sample_count > matrix => problem(
            Column::SampleCount,
            format!("{:?} has fewer candidates", entry.name),
        ),
        _ => Ok(()),
    }
}
