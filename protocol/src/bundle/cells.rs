//! The tables of a payload as they were read: any type in any cell, and which columns there are at all.

use std::sync::Arc;

use super::Finding;
use crate::canonical::{Object, Value};

/// One value of a row, small.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cell {
    /// `null`, or the row does not have the column.
    Null,
    Bool(bool),
    Number(f64),
    /// A text of [`RawRows::text`]. Equal texts may have different numbers.
    Text(u32),
    /// An array or object.
    Nested,
}

impl Cell {
    pub(super) fn is_null(self) -> bool {
        self == Self::Null
    }

    pub(super) fn number(self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(super) fn type_name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::Nested => "an array or object",
        }
    }
}

macro_rules! columns {
    ($($column:ident $name:literal),* $(,)?) => {
        /// A known column of `per_dataset`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Column { $($column,)* }

        impl Column {
            const COUNT: usize = [$($name),*].len();

            /// Its name.
            pub(super) fn name(self) -> &'static str {
                match self { $(Self::$column => $name,)* }
            }

            fn find(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$column),)* _ => None }
            }
        }
    };
}

columns!(
    AlgorithmId "algorithm_id",
    AlgorithmKind "algorithm_kind",
    AlgorithmName "algorithm_name",
    BenchmarkId "benchmark_id",
    DatasetFingerprint "dataset_fingerprint",
    DatasetName "dataset_name",
    DatasetSource "dataset_source",
    Domain "domain",
    ElapsedSeconds "elapsed_seconds",
    Eligible "eligible",
    Error "error",
    Metric "metric",
    NotApplicableReason "not_applicable_reason",
    ProtocolId "protocol_id",
    Rank "rank",
    SampleCount "sample_count",
    Score "score",
    SelectedThreshold "selected_threshold",
    Status "status",
    TaskFamily "task_family",
    TaskType "task_type",
);

/// The cells of a row of `per_dataset`.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawRow([Cell; Column::COUNT]);

impl RawRow {
    /// The cell of a column.
    pub(super) fn get(&self, column: Column) -> Cell {
        self.0[column as usize]
    }
}

/// The texts of many rows. Readers give equal texts one allocation, so a text is mostly found by its address; one that is
/// not is kept twice.
#[derive(Debug, Default)]
struct Texts {
    list: Vec<Arc<str>>,
    /// Number of the text last seen at a place of this table.
    slots: Vec<u32>,
}

impl Texts {
    const SLOTS: usize = 1 << 12;

    fn number(&mut self, text: &Arc<str>) -> u32 {
        self.slots.resize(Self::SLOTS, u32::MAX);
        let address = text.as_ptr() as usize;
        let slot = &mut self.slots[(address >> 4) % Self::SLOTS];
        let known = self.list.get(*slot as usize);
        if !known.is_some_and(|known| Arc::ptr_eq(known, text)) {
            *slot = self.list.len() as u32;
            self.list.push(text.clone());
        }
        *slot
    }
}

/// The rows of `per_dataset`.
#[derive(Debug, Default)]
pub(super) struct RawRows {
    pub rows: Vec<RawRow>,
    /// Entries of unknown columns, by row.
    pub unknown: Vec<(usize, Object)>,
    texts: Texts,
    present: u32,
    /// The first item that is no object, and what it is.
    broken: Option<(usize, &'static str)>,
}

impl RawRows {
    /// True when there is not even a broken row.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.broken.is_none()
    }

    /// Takes in a row.
    pub(super) fn push(&mut self, item: &Value) {
        let mut row = RawRow([Cell::Null; Column::COUNT]);
        let mut unknown = Object::new();
        match item {
            Value::Object(object) => {
                for (key, value) in object.iter() {
                    match Column::find(key) {
                        Some(column) => {
                            row.0[column as usize] = self.cell(value);
                            self.present |= 1 << column as u32;
                        }
                        None => drop(unknown.insert(key, value.clone())),
                    }
                }
            }
            other => self.broken = self.broken.or(Some((self.rows.len(), other.type_name()))),
        }
        if !unknown.is_empty() {
            self.unknown.push((self.rows.len(), unknown));
        }
        self.rows.push(row);
    }

    fn cell(&mut self, value: &Value) -> Cell {
        match value {
            Value::Null => Cell::Null,
            Value::Bool(truth) => Cell::Bool(*truth),
            Value::String(text) => Cell::Text(self.texts.number(text)),
            Value::Array(_) | Value::Object(_) => Cell::Nested,
            number => number.as_number().map_or(Cell::Nested, Cell::Number),
        }
    }

    /// The text of a cell.
    pub(super) fn text(&self, cell: Cell) -> Option<&Arc<str>> {
        match cell {
            Cell::Text(number) => self.texts.list.get(number as usize),
            _ => None,
        }
    }

    /// How many numbers of texts there are.
    pub(super) fn text_count(&self) -> usize {
        self.texts.list.len()
    }

    /// There must be at least one row, and only objects.
    pub(super) fn check_shape(&self) -> Result<(), Finding> {
        if let Some((at, what)) = self.broken {
            let problem = format!("is {what}; every row must be an object");
            return Err(Finding::new("rows", format!("per_dataset[{at}]"), problem));
        }
        if self.present == 0 && self.unknown.is_empty() {
            return Err(Finding::new(
                "rows",
                "per_dataset",
                "must be a list of at least one row; failed methods keep rows with a null score",
            ));
        }
        Ok(())
    }

    /// True when any row has the column.
    pub(super) fn has(&self, column: Column) -> bool {
        self.present & (1 << column as u32) != 0
    }

    /// Section h, step 5.
    pub(super) fn check_columns(&self) -> Result<(), Finding> {
        let required = [
            Column::AlgorithmId,
            Column::AlgorithmName,
            Column::DatasetFingerprint,
            Column::DatasetName,
            Column::Domain,
            Column::ElapsedSeconds,
            Column::Eligible,
            Column::Metric,
            Column::Rank,
            Column::SampleCount,
            Column::Score,
            Column::TaskFamily,
            Column::TaskType,
        ];
        let missing: Vec<&str> = required
            .into_iter()
            .filter(|column| !self.has(*column))
            .map(Column::name)
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let problem = format!("no row has the column {}", missing.join(", "));
        Err(Finding::new("columns", "per_dataset", problem))
    }

    /// The aggregate of rows with a status needs their reasons.
    pub(super) fn check_reason_column(&self) -> Result<(), Finding> {
        if self.has(Column::Status) && !self.has(Column::NotApplicableReason) {
            return Err(Finding::new(
                "columns",
                "per_dataset",
                "rows have a status, so they need the column not_applicable_reason too",
            ));
        }
        Ok(())
    }
}

/// Answers about texts, each asked once.
pub(super) struct Memo(Vec<Answer>);

/// An answer about a text.
#[derive(Clone, Copy)]
enum Answer {
    NotAsked,
    Nothing,
    At(usize),
}

impl Memo {
    pub(super) fn new(rows: &RawRows) -> Self {
        Self(vec![Answer::NotAsked; rows.text_count()])
    }

    /// The answer for a text; `None` for a cell of another type.
    pub(super) fn ask(
        &mut self,
        cell: Cell,
        answer: impl FnOnce() -> Option<usize>,
    ) -> Option<usize> {
        let Cell::Text(number) = cell else {
            return None;
        };
        let known = self.0.get_mut(number as usize)?;
        if matches!(known, Answer::NotAsked) {
            *known = answer().map_or(Answer::Nothing, Answer::At);
        }
        match known {
            Answer::At(place) => Some(*place),
            _ => None,
        }
    }
}

/// The rows of `aggregate`. It may be absent; what that means is said where it is judged.
#[derive(Debug)]
pub(super) struct RawAggregate<'a> {
    pub rows: Vec<&'a Object>,
    /// Position of the first item that is no object.
    pub broken: Option<usize>,
}

impl<'a> RawAggregate<'a> {
    pub(super) fn of(frame: &'a Object) -> Self {
        let items = frame.get("aggregate").and_then(Value::as_array);
        let items = items.unwrap_or_default();
        Self {
            rows: items.iter().filter_map(Value::as_object).collect(),
            broken: items.iter().position(|item| item.as_object().is_none()),
        }
    }

    /// True when any row has the column.
    pub(super) fn has(&self, column: &str) -> bool {
        self.rows.iter().any(|row| row.contains_key(column))
    }
}
