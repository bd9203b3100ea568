//! Validation: every rule of specs/matheel.md section h, in that order, and with score files the metrics once more.
//!
//! It proves that a bundle agrees with itself, its protocol and its score files. It cannot prove that a method really ran.

mod identity;
mod ranks;
mod rows;
mod scores;
mod supervised;
mod totals;

use std::path::Path;

use super::cells::{Column, RawAggregate};
use super::owed::is_incomplete;
use super::{Finding, Payload};
use crate::canonical::{Object, Value};
use crate::frozen::{LoadedEntry, Protocol};
use crate::object;
use crate::report::{AggregateRow, Row, aggregate, expected_datasets};

/// What a payload is judged against.
#[derive(Debug, Clone, Copy, Default)]
pub struct Validation<'a> {
    /// The protocol it must have been made under; without it, the one inside the payload.
    pub protocol: Option<&'a Protocol>,
    /// The folder of its score files: they are hashed, and the metrics are computed again from them.
    pub scores: Option<&'a Path>,
    /// The frozen data, in the order of the protocol's datasets: score files must hold its items and gold.
    pub data: Option<&'a [LoadedEntry]>,
}

/// A positive verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The protocol it was made under.
    pub protocol_id: String,
    /// The benchmark it was made under.
    pub benchmark_id: String,
    /// How many methods it has.
    pub methods: usize,
    /// Rows of the aggregate that are ranked.
    pub eligible_rows: usize,
    /// True when some method is owed another attempt.
    pub incomplete: bool,
    /// Rows with a score.
    pub scored_rows: usize,
    /// Rows with a score that was computed again from a score file.
    pub recomputed_rows: usize,
}

impl Verdict {
    /// The verdict as Matheel prints it, and what we know beyond.
    pub fn to_value(&self) -> Value {
        object! {
            "valid" => true,
            "protocol_id" => self.protocol_id.as_str(),
            "benchmark_id" => self.benchmark_id.as_str(),
            "methods" => self.methods,
            "eligible_rows" => self.eligible_rows,
            "incomplete" => self.incomplete,
            "scored_rows" => self.scored_rows,
            "recomputed_rows" => self.recomputed_rows,
        }
    }
}

/// A payload that passed, with what was computed from it; rows are in the order given.
pub(super) struct Checked {
    pub verdict: Verdict,
    pub rows: Vec<Row>,
    pub aggregate: Vec<AggregateRow>,
}

/// Judges a payload.
///
/// # Errors
/// The first rule it breaks, and where.
pub fn validate(payload: &Payload, options: &Validation<'_>) -> Result<Verdict, Finding> {
    Ok(check(payload, options)?.verdict)
}

pub(super) fn check(payload: &Payload, options: &Validation<'_>) -> Result<Checked, Finding> {
    let metadata = payload.metadata();
    let embedded;
    let protocol = if let Some(protocol) = options.protocol {
        protocol
    } else {
        embedded = identity::embedded_protocol(metadata)?;
        &embedded
    };
    identity::check_protocol_id(metadata, protocol)?;
    let raw_rows = &payload.rows;
    raw_rows.check_shape()?;
    let raw_aggregate = RawAggregate::of(&payload.frame);
    identity::check_identity(raw_rows, &raw_aggregate, protocol)?;
    raw_rows.check_columns()?;
    let methods = identity::Methods::read(metadata, raw_rows)?;
    methods.check_configurations(protocol)?;
    let artifacts = scores::Artifacts::read(metadata, protocol, &methods)?;
    let recomputed = artifacts.recompute(metadata, protocol, options)?;
    let mut rows = rows::check_rows(raw_rows, protocol, &methods)?;
    ranks::check_ranks(raw_rows, &mut rows)?;
    raw_rows.check_reason_column()?;
    let table = aggregate(&rows, &expected_datasets(protocol));
    totals::check_aggregate(&table, &raw_aggregate, raw_rows.has(Column::Status))?;
    supervised::check_supervised(metadata, protocol, &methods, &rows)?;
    let recomputed_rows = recomputed.check(&rows, protocol)?;
    let verdict = Verdict {
        protocol_id: protocol.id().to_owned(),
        benchmark_id: protocol.benchmark_id().to_owned(),
        methods: methods.len(),
        eligible_rows: table.iter().filter(|row| row.eligible).count(),
        incomplete: is_incomplete(metadata.as_object().unwrap_or(&Object::new()), &rows),
        scored_rows: rows.iter().filter(|row| row.eligible).count(),
        recomputed_rows,
    };
    Ok(Checked {
        verdict,
        rows,
        aggregate: table,
    })
}
