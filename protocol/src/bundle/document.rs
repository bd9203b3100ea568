//! A bundle's document: the payload with typed rows, and the files it is written to.

use std::io::{self, Write};

use super::columns::{Identity, RowColumns, aggregate_value, write_aggregate_csv};
use super::owed::is_incomplete;
use super::sanitize::sanitized;
use super::validate::{Validation, Verdict, check};
use super::{Finding, Payload, html};
use crate::canonical::{Object, Value, is_alnum, pretty, py_strip, write_pretty};
use crate::report::{AggregateRow, Row, rank};

/// A bundle's document. One is only made by [`super::assemble`] and [`super::merge`], or read by [`Document::accept`],
/// so its rows are consistent.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub(super) metadata: Object,
    pub(super) manifest: Value,
    pub(super) cards: Value,
    pub(super) rows: Vec<Row>,
    pub(super) aggregate: Vec<AggregateRow>,
}

/// The files of a document (specs/matheel.md section f).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Artifact {
    /// The rows as CSV.
    PerDatasetCsv,
    /// The aggregate as CSV.
    AggregateCsv,
    /// The payload.
    Json,
    /// The page of rankings.
    Html,
    /// The page of every row and card.
    DetailsHtml,
    /// What is needed to run it again.
    ReproducibilityJson,
}

impl Artifact {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::PerDatasetCsv,
        Self::AggregateCsv,
        Self::Json,
        Self::Html,
        Self::DetailsHtml,
        Self::ReproducibilityJson,
    ];

    /// The file name for a [`stem`].
    pub fn file_name(self, stem: &str) -> String {
        let end = match self {
            Self::PerDatasetCsv => "_per_dataset.csv",
            Self::AggregateCsv => "_aggregate.csv",
            Self::Json => ".json",
            Self::Html => ".html",
            Self::DetailsHtml => "_details.html",
            Self::ReproducibilityJson => "_reproducibility.json",
        };
        format!("{stem}{end}")
    }
}

/// The stem of a bundle's file names: characters other than letters, digits and `._-` become `_`, outer `.` and `_` go;
/// `leaderboard` when nothing is left.
pub fn stem(basename: &str) -> String {
    let safe: String = py_strip(basename)
        .chars()
        .map(|c| {
            if is_alnum(c) || ['.', '_', '-'].contains(&c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    match safe.trim_matches(['.', '_']) {
        "" => "leaderboard".to_owned(),
        safe => safe.to_owned(),
    }
}

impl Document {
    /// Takes somebody's payload if it is valid.
    ///
    /// # Errors
    /// The first rule it breaks.
    pub fn accept(payload: Payload, options: &Validation<'_>) -> Result<(Self, Verdict), Finding> {
        let checked = check(&payload, options)?;
        let mut frame = payload.frame;
        let mut part = |key| frame.remove(key).unwrap_or(Value::Null);
        let metadata = match part("metadata") {
            Value::Object(metadata) => metadata,
            _ => Object::new(),
        };
        let mut rows = checked.rows;
        rank(&mut rows);
        let document = Self {
            metadata,
            manifest: part("manifest"),
            cards: part("cards"),
            rows,
            aggregate: checked.aggregate,
        };
        Ok((document, checked.verdict))
    }

    /// The metadata.
    pub fn metadata(&self) -> &Object {
        &self.metadata
    }

    /// The rows, ranked.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The aggregate, ranked.
    pub fn aggregate(&self) -> &[AggregateRow] {
        &self.aggregate
    }

    /// The manifest, `null` when there is none.
    pub fn manifest(&self) -> &Value {
        &self.manifest
    }

    /// The cards, `null` when there are none.
    pub fn cards(&self) -> &Value {
        &self.cards
    }

    /// True when some method is owed another attempt: it was interrupted or cancelled, or our machine failed.
    pub fn is_incomplete(&self) -> bool {
        is_incomplete(&self.metadata, &self.rows)
    }

    fn text(&self, key: &str) -> &str {
        self.metadata
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The protocol the document was made under.
    pub fn protocol_id(&self) -> &str {
        self.text("protocol_id")
    }

    /// The benchmark it was made under.
    pub fn benchmark_id(&self) -> &str {
        self.text("benchmark_id")
    }

    pub(super) fn identity(&self) -> Identity<'_> {
        Identity {
            benchmark_id: self.benchmark_id(),
            protocol_id: self.protocol_id(),
        }
    }

    /// The whole payload as a value. For large documents [`Document::write`] needs much less memory.
    pub fn payload(&self) -> Value {
        let columns = RowColumns::of(&self.rows);
        let rows = self
            .rows
            .iter()
            .map(|row| columns.value(row, self.identity()));
        let aggregate = self
            .aggregate
            .iter()
            .map(|row| aggregate_value(row, self.identity()));
        let mut payload = self.frame();
        payload.insert("per_dataset", Value::Array(rows.collect()));
        payload.insert("aggregate", Value::Array(aggregate.collect()));
        Value::Object(payload)
    }

    /// The payload without its tables.
    fn frame(&self) -> Object {
        let mut frame = Object::new();
        frame.insert("schema_version", 1i64);
        frame.insert("metadata", self.metadata.clone());
        for (key, value) in [("manifest", &self.manifest), ("cards", &self.cards)] {
            if !value.is_null() {
                frame.insert(key, value.clone());
            }
        }
        frame
    }

    /// Writes one of the document's files. `stem` is the [`stem`] of the bundle; pages link to their neighbours by it.
    ///
    /// # Errors
    /// Whatever `out` answers.
    pub fn write(&self, artifact: Artifact, stem: &str, out: &mut dyn Write) -> io::Result<()> {
        match artifact {
            Artifact::PerDatasetCsv => {
                RowColumns::of(&self.rows).write_csv(out, &self.rows, self.identity())
            }
            Artifact::AggregateCsv => write_aggregate_csv(out, &self.aggregate, self.identity()),
            Artifact::Json => self.write_json(out),
            Artifact::Html => out.write_all(html::ranking_page(self, stem).as_bytes()),
            Artifact::DetailsHtml => out.write_all(html::details_page(self, stem).as_bytes()),
            Artifact::ReproducibilityJson => write_pretty(out, &self.reproducibility()),
        }
    }

    /// Writes the payload row by row.
    fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let columns = RowColumns::of(&self.rows);
        let mut frame = self.frame();
        frame.insert("per_dataset", Value::Null);
        frame.insert("aggregate", Value::Null);
        let mut opener = "{";
        for (key, value) in frame.iter() {
            write!(out, "{opener}\n  \"{key}\": ")?;
            opener = ",";
            match key {
                "per_dataset" => {
                    let rows = self
                        .rows
                        .iter()
                        .map(|row| columns.value(row, self.identity()));
                    write_array(out, rows)?;
                }
                "aggregate" => {
                    let rows = self.aggregate.iter();
                    write_array(out, rows.map(|row| aggregate_value(row, self.identity())))?;
                }
                _ => out.write_all(indented(value, "\n  ").as_bytes())?,
            }
        }
        out.write_all(b"\n}")
    }

    /// The reproducibility snapshot with the manifest as its run configuration.
    fn reproducibility(&self) -> Value {
        let mut snapshot = match self.metadata.get("reproducibility") {
            Some(Value::Object(snapshot)) => snapshot.clone(),
            _ => Object::new(),
        };
        snapshot.insert("run_configs", Value::Array(vec![sanitized(&self.manifest)]));
        Value::Object(snapshot)
    }
}

/// The pretty text moved to the right. Line breaks inside texts are escaped, so every one is layout.
fn indented(value: &Value, line: &str) -> String {
    pretty(value).replace('\n', line)
}

fn write_array(out: &mut dyn Write, items: impl Iterator<Item = Value>) -> io::Result<()> {
    let mut opener = "[";
    for item in items {
        write!(out, "{opener}\n    {}", indented(&item, "\n    "))?;
        opener = ",";
    }
    out.write_all(if opener == "[" { b"[]" } else { b"\n  ]" })
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn a_stem_is_a_safe_file_name() {
        assert_eq!(stem("My run/2: ü"), "My_run_2__ü");
        assert_eq!(stem(" ..a_b-c.d._ "), "a_b-c.d");
        assert_eq!(stem("../.."), "leaderboard");
        assert_eq!(stem(""), "leaderboard");
    }
}
