//! The columns of rows: their names, their order in CSV files, and their JSON form.

use std::collections::BTreeSet;
use std::io;

use super::csv_text::push_record;
use crate::canonical::{Object, Value, canonical, float_text};
use crate::report::{AggregateRow, Row, Status};

/// What a table says besides its rows: identities that every row repeats.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identity<'a> {
    pub benchmark_id: &'a str,
    pub protocol_id: &'a str,
}

/// One value of a row.
#[derive(Debug, Clone, Copy)]
enum Cell<'a> {
    Null,
    Text(&'a str),
    Float(f64),
    Count(u64),
    Bool(bool),
}

impl<'a> From<Option<&'a str>> for Cell<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Self::Null, Self::Text)
    }
}

impl From<Option<f64>> for Cell<'_> {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::Null, Self::Float)
    }
}

impl From<Option<u64>> for Cell<'_> {
    fn from(value: Option<u64>) -> Self {
        value.map_or(Self::Null, Self::Count)
    }
}

impl Cell<'_> {
    fn value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Text(text) => text.into(),
            Self::Float(number) => number.into(),
            Self::Count(count) => count_value(count),
            Self::Bool(truth) => truth.into(),
        }
    }

    fn text(self) -> String {
        match self {
            Self::Null => String::new(),
            Self::Text(text) => text.to_owned(),
            Self::Float(number) => float_text(number),
            Self::Count(count) => count.to_string(),
            Self::Bool(true) => "True".to_owned(),
            Self::Bool(false) => "False".to_owned(),
        }
    }
}

/// A count as a JSON integer, exact beyond 63 bits.
pub(super) fn count_value(count: u64) -> Value {
    i64::try_from(count).map_or_else(|_| Value::BigInt(count.to_string().into()), Value::Int)
}

/// Which optional columns a table of rows has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowColumns {
    error: bool,
    selected_threshold: bool,
    extra: BTreeSet<String>,
}

impl RowColumns {
    /// The columns these rows need.
    pub(super) fn of(rows: &[Row]) -> Self {
        Self {
            error: rows.iter().any(|row| row.error.is_some()),
            selected_threshold: rows.iter().any(|row| row.selected_threshold.is_some()),
            extra: rows
                .iter()
                .filter_map(|row| row.extra.as_ref())
                .flat_map(|extra| extra.keys())
                .map(str::to_owned)
                .collect(),
        }
    }

    /// The known columns of a row in CSV order (specs/matheel.md section e).
    fn cells<'a>(&self, row: &'a Row, identity: Identity<'a>) -> Vec<(&'static str, Cell<'a>)> {
        let mut cells = vec![
            ("domain", Cell::Text(&row.domain)),
            ("task_type", Cell::Text(&row.domain)),
            ("task_family", Cell::Text(row.family.name())),
            ("dataset_name", Cell::Text(&row.dataset_name)),
            ("algorithm_name", Cell::Text(&row.algorithm_name)),
            ("algorithm_id", Cell::Text(&row.algorithm_id)),
            ("metric", Cell::Text(&row.metric)),
            ("score", row.score.into()),
            ("sample_count", Cell::Count(row.sample_count)),
            ("dataset_source", Cell::Text(&row.dataset_source)),
            ("algorithm_kind", Cell::Text(&row.algorithm_kind)),
            ("status", row.status.map(Status::name).into()),
            (
                "not_applicable_reason",
                row.not_applicable_reason.as_deref().into(),
            ),
            ("elapsed_seconds", Cell::Float(row.elapsed_seconds)),
        ];
        if self.error {
            cells.push(("error", row.error.as_deref().into()));
        }
        cells.push(("eligible", Cell::Bool(row.eligible)));
        cells.push(("rank", row.rank.into()));
        if self.selected_threshold {
            cells.push(("selected_threshold", row.selected_threshold.into()));
        }
        cells.push(("dataset_fingerprint", Cell::Text(&row.dataset_fingerprint)));
        cells.push(("benchmark_id", Cell::Text(identity.benchmark_id)));
        cells.push(("protocol_id", Cell::Text(identity.protocol_id)));
        cells
    }

    fn extra_of<'a>(&self, row: &'a Row) -> impl Iterator<Item = (&str, Option<&'a Value>)> {
        self.extra.iter().map(|name| {
            (
                name.as_str(),
                row.extra.as_ref().and_then(|extra| extra.get(name)),
            )
        })
    }

    /// A row as JSON; every row of a table has the same keys.
    pub(super) fn value(&self, row: &Row, identity: Identity<'_>) -> Value {
        let known = self.cells(row, identity);
        let mut object: Object = known
            .into_iter()
            .map(|(name, cell)| (name, cell.value()))
            .collect();
        for (name, value) in self.extra_of(row) {
            object.insert(name, value.cloned().unwrap_or(Value::Null));
        }
        Value::Object(object)
    }

    /// Writes the table as CSV.
    pub(super) fn write_csv(
        &self,
        out: &mut dyn io::Write,
        rows: &[Row],
        identity: Identity<'_>,
    ) -> io::Result<()> {
        let mut writer = Records::new(out);
        for row in rows {
            let cells = self.cells(row, identity);
            writer.header(|| {
                let known = cells.iter().map(|(name, _)| *name);
                known.chain(self.extra.iter().map(String::as_str)).collect()
            });
            let known = cells.iter().map(|(_, cell)| cell.text());
            let extra = self.extra_of(row).map(|(_, value)| free_text(value));
            writer.record(known.chain(extra))?;
        }
        writer.finish()
    }
}

/// A value of an unknown column in a CSV file.
fn free_text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.to_string(),
        Some(Value::Bool(truth)) => Cell::Bool(*truth).text(),
        Some(other) => canonical(other),
    }
}

/// The columns of an aggregate row in CSV order.
fn aggregate_cells<'a>(
    row: &'a AggregateRow,
    identity: Identity<'a>,
) -> [(&'static str, Cell<'a>); 20] {
    [
        ("domain", Cell::Text(&row.domain)),
        ("task_family", Cell::Text(row.family.name())),
        ("algorithm_name", Cell::Text(&row.algorithm_name)),
        ("algorithm_id", Cell::Text(&row.algorithm_id)),
        ("metric", Cell::Text(&row.metric)),
        ("status", Cell::Text(row.status.name())),
        (
            "not_applicable_reason",
            row.not_applicable_reason.as_deref().into(),
        ),
        ("mean_score", row.mean_score.into()),
        ("median_score", row.median_score.into()),
        ("dataset_count", Cell::Count(row.dataset_count)),
        (
            "expected_dataset_count",
            Cell::Count(row.expected_dataset_count),
        ),
        ("coverage", Cell::Float(row.coverage)),
        ("complete_coverage", Cell::Bool(row.complete_coverage)),
        ("eligible", Cell::Bool(row.eligible)),
        ("sample_count", Cell::Count(row.sample_count)),
        ("elapsed_seconds", Cell::Float(row.elapsed_seconds)),
        ("task_type", Cell::Text(&row.domain)),
        ("rank", row.rank.into()),
        ("benchmark_id", Cell::Text(identity.benchmark_id)),
        ("protocol_id", Cell::Text(identity.protocol_id)),
    ]
}

/// An aggregate row as JSON.
pub(super) fn aggregate_value(row: &AggregateRow, identity: Identity<'_>) -> Value {
    let cells = aggregate_cells(row, identity);
    Value::Object(
        cells
            .into_iter()
            .map(|(name, cell)| (name, cell.value()))
            .collect(),
    )
}

/// Writes the aggregate as CSV.
pub(super) fn write_aggregate_csv(
    out: &mut dyn io::Write,
    rows: &[AggregateRow],
    identity: Identity<'_>,
) -> io::Result<()> {
    let mut writer = Records::new(out);
    for row in rows {
        let cells = aggregate_cells(row, identity);
        writer.header(|| cells.iter().map(|(name, _)| *name).collect());
        writer.record(cells.iter().map(|(_, cell)| cell.text()))?;
    }
    writer.finish()
}

/// Writes records in pieces of some 64 KiB.
struct Records<'a> {
    out: &'a mut dyn io::Write,
    buffer: String,
    begun: bool,
}

impl<'a> Records<'a> {
    fn new(out: &'a mut dyn io::Write) -> Self {
        Self {
            out,
            buffer: String::new(),
            begun: false,
        }
    }

    /// Writes the header before the first record only.
    fn header<'b>(&mut self, names: impl FnOnce() -> Vec<&'b str>) {
        if !self.begun {
            self.begun = true;
            push_record(&mut self.buffer, names());
        }
    }

    fn record(&mut self, fields: impl Iterator<Item = String>) -> io::Result<()> {
        let fields: Vec<String> = fields.collect();
        push_record(&mut self.buffer, fields.iter().map(String::as_str));
        if self.buffer.len() > 64 << 10 {
            self.out.write_all(self.buffer.as_bytes())?;
            self.buffer.clear();
        }
        Ok(())
    }

    fn finish(self) -> io::Result<()> {
        self.out.write_all(self.buffer.as_bytes())
    }
}
