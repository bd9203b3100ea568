//! The tables of a payload as they were read: any type in any cell, and which columns there are at all.

use crate::bundle::Finding;
use crate::canonical::{Object, Value};

static NULL: Value = Value::Null;

/// Names of the known columns, and a table's cells by those names.
macro_rules! table {
    ($row:ident, $($field:ident),* $(,)?) => {
        /// The cells of one row; `null` where the row does not have the column.
        #[derive(Debug, Clone, Copy)]
        pub(super) struct $row<'a> {
            $(pub $field: &'a Value,)*
        }

        impl<'a> $row<'a> {
            /// The known columns; bit `n` of a mask is column `n`.
            const COLUMNS: &'static [&'static str] = &[$(stringify!($field)),*];

            /// Reads a row, marks its columns in `present`, and gives back entries of unknown columns.
            fn read(object: &'a Object, present: &mut u32) -> (Self, Vec<(&'a str, &'a Value)>) {
                let mut row = Self { $($field: &NULL,)* };
                let mut unknown = Vec::new();
                for (key, value) in object.iter() {
                    match key {
                        $(stringify!($field) => {
                            row.$field = value;
                            *present |= Self::bit(key);
                        })*
                        _ => unknown.push((key, value)),
                    }
                }
                (row, unknown)
            }

            fn bit(column: &str) -> u32 {
                let at = Self::COLUMNS.iter().position(|name| *name == column);
                at.map_or(0, |at| 1 << at)
            }
        }
    };
}

table!(
    RawRow,
    algorithm_id,
    algorithm_kind,
    algorithm_name,
    benchmark_id,
    dataset_fingerprint,
    dataset_name,
    dataset_source,
    domain,
    elapsed_seconds,
    eligible,
    error,
    metric,
    not_applicable_reason,
    protocol_id,
    rank,
    sample_count,
    score,
    selected_threshold,
    status,
    task_family,
    task_type,
);

table!(
    RawTotal,
    algorithm_id,
    benchmark_id,
    complete_coverage,
    coverage,
    dataset_count,
    domain,
    elapsed_seconds,
    eligible,
    expected_dataset_count,
    mean_score,
    median_score,
    metric,
    not_applicable_reason,
    protocol_id,
    rank,
    sample_count,
    status,
    task_family,
);

/// The rows of `per_dataset`.
#[derive(Debug)]
pub(super) struct RawRows<'a> {
    pub rows: Vec<RawRow<'a>>,
    /// Columns nobody here knows, by row; empty for most.
    pub unknown: Vec<Vec<(&'a str, &'a Value)>>,
    present: u32,
}

impl<'a> RawRows<'a> {
    /// Reads the rows; there must be at least one.
    pub(super) fn read(payload: &'a Value) -> Result<Self, Finding> {
        let empty = || {
            Finding::new(
                "rows",
                "per_dataset",
                "must be a list of at least one row; failed methods keep rows with a null score",
            )
        };
        let items = payload.get("per_dataset").and_then(Value::as_array);
        let items = items.filter(|items| !items.is_empty()).ok_or_else(empty)?;
        let mut table = Self {
            rows: Vec::with_capacity(items.len()),
            unknown: Vec::with_capacity(items.len()),
            present: 0,
        };
        for (at, item) in items.iter().enumerate() {
            let object = item.as_object().ok_or_else(|| {
                let problem = format!("is {}; every row must be an object", item.type_name());
                Finding::new("rows", format!("per_dataset[{at}]"), problem)
            })?;
            let (row, unknown) = RawRow::read(object, &mut table.present);
            table.rows.push(row);
            table.unknown.push(unknown);
        }
        if table.present == 0 {
            return Err(empty());
        }
        Ok(table)
    }

    /// True when any row has the column.
    pub(super) fn has(&self, column: &str) -> bool {
        self.present & RawRow::bit(column) != 0
    }

    /// Section h, step 5.
    pub(super) fn check_columns(&self) -> Result<(), Finding> {
        let required = [
            "algorithm_id",
            "algorithm_name",
            "dataset_fingerprint",
            "dataset_name",
            "domain",
            "elapsed_seconds",
            "eligible",
            "metric",
            "rank",
            "sample_count",
            "score",
            "task_family",
            "task_type",
        ];
        let missing: Vec<&str> = required
            .into_iter()
            .filter(|column| !self.has(column))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let problem = format!("no row has the column {}", missing.join(", "));
        Err(Finding::new("columns", "per_dataset", problem))
    }

    /// The aggregate of rows with a status needs their reasons.
    pub(super) fn check_reason_column(&self) -> Result<(), Finding> {
        if self.has("status") && !self.has("not_applicable_reason") {
            return Err(Finding::new(
                "columns",
                "per_dataset",
                "rows have a status, so they need the column not_applicable_reason too",
            ));
        }
        Ok(())
    }
}

/// The rows of `aggregate`. It may be absent; what that means is said where it is judged.
#[derive(Debug)]
pub(super) struct RawAggregate<'a> {
    pub rows: Vec<RawTotal<'a>>,
    /// Position of the first item that is no object.
    pub broken: Option<usize>,
    present: u32,
}

impl<'a> RawAggregate<'a> {
    pub(super) fn read(payload: &'a Value) -> Self {
        let items = payload.get("aggregate").and_then(Value::as_array);
        let items = items.unwrap_or_default();
        let mut table = Self {
            rows: Vec::with_capacity(items.len()),
            broken: items.iter().position(|item| item.as_object().is_none()),
            present: 0,
        };
        for object in items.iter().filter_map(Value::as_object) {
            let (row, _) = RawTotal::read(object, &mut table.present);
            table.rows.push(row);
        }
        table
    }

    /// True when any row has the column.
    pub(super) fn has(&self, column: &str) -> bool {
        self.present & RawTotal::bit(column) != 0
    }
}
