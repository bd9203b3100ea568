//! A frozen protocol: the type, its forms, and its re-validation on load.

pub(crate) mod check;
pub(crate) mod data;
mod limits;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use data::LoadedEntry;
pub use limits::{ExecutionLimits, Limit};
use proctor_wire::Family;

use crate::canonical::{Limits, Value, pretty};
use crate::input::{InputError, read_named_json};

/// Why a protocol is refused.
pub type ProtocolError = InputError;

/// How the decision threshold of pair datasets is found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ThresholdPolicy {
    /// The same threshold for every method and dataset.
    Fixed(f64),
    /// Calibrated for each method and dataset on held-out validation data.
    ValidationF1,
}

/// One frozen dataset of a protocol.
#[derive(Debug, Clone, PartialEq)]
pub struct DatasetEntry {
    /// Its unique name.
    pub name: String,
    /// Its domain, that of the benchmark.
    pub domain: String,
    /// Pair or retrieval.
    pub family: Family,
    /// Where the data lies; absent in a public protocol.
    pub path: Option<PathBuf>,
    /// Where the validation data lies, for `validation_f1`; absent in a public protocol.
    pub validation_path: Option<PathBuf>,
    /// Lower-case hex SHA-256 of the normalized content.
    pub content_sha256: String,
    /// Rows per table: `files`, `pairs` or `files`, `queries`, `corpus`, `qrels`.
    pub counts: Vec<(String, u64)>,
    /// How many scores a complete result holds.
    pub expected_result_count: u64,
    /// The cut-off of the `_at_k` metrics.
    pub k: u64,
    /// Retrieval: candidates whose query and document are the same file are left out.
    pub exclude_same_file: bool,
    /// The programming language the benchmark declares, if any.
    pub code_language: Option<String>,
    /// Content hash of the validation data, for `validation_f1`.
    pub validation_sha256: Option<String>,
    /// The whole entry, as frozen, with paths.
    pub value: Value,
}

impl DatasetEntry {
    /// The frozen number of rows of a table; 0 for a table the dataset does not have.
    pub fn count(&self, table: &str) -> u64 {
        self.counts
            .iter()
            .find(|(name, _)| name == table)
            .map_or(0, |(_, rows)| *rows)
    }

    /// The files that tell the answers, links resolved: every table of its test and validation data that is there. A
    /// table may be a link that leads out of the dataset's folder, so hiding the folder alone does not hide it.
    pub fn answer_files(&self) -> Vec<PathBuf> {
        [&self.path, &self.validation_path]
            .into_iter()
            .flatten()
            .flat_map(|folder| TABLES.iter().map(|table| folder.join(table)))
            .filter_map(|file| file.canonicalize().ok())
            .collect()
    }
}

/// Every file of a normalized dataset but its source texts.
const TABLES: [&str; 6] = [
    "corpus.csv",
    "files.csv",
    "metadata.json",
    "pairs.csv",
    "qrels.csv",
    "queries.csv",
];

/// A frozen protocol that passed every check that needs no data.
#[derive(Debug, Clone, PartialEq)]
pub struct Protocol {
    value: Value,
    id: String,
    benchmark_id: String,
    domain: String,
    datasets: Vec<DatasetEntry>,
    pair_metrics: Vec<String>,
    retrieval_metrics: Vec<String>,
    threshold: ThresholdPolicy,
    max_method_seconds: f64,
    limits: ExecutionLimits,
}

static NULL: Value = Value::Null;

impl Protocol {
    /// Reads a protocol file and re-validates it; relative dataset paths count from the file's folder.
    ///
    /// # Errors
    /// The file cannot be read, is not JSON, or breaks a rule of specs/matheel.md section b.
    pub fn load(path: &Path) -> Result<Self, ProtocolError> {
        let value = read_named_json(path, Limits::default())?;
        // The parent of a bare file name is the empty path, which joins like the current folder.
        let base = path.parent().unwrap_or(Path::new(""));
        Self::from_value(&value, Some(base)).map_err(|error| error.in_file(path))
    }

    /// Re-validates a protocol, with or without dataset paths. With `base`, relative paths count from there.
    ///
    /// # Errors
    /// The first rule of specs/matheel.md section b that it breaks, by field.
    pub fn from_value(value: &Value, base: Option<&Path>) -> Result<Self, ProtocolError> {
        check::check(value, base)
    }

    /// The protocol id: SHA-256 of the public form.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name of the benchmark.
    pub fn benchmark_id(&self) -> &str {
        &self.benchmark_id
    }

    /// The domain of all its datasets.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// The datasets in frozen order.
    pub fn datasets(&self) -> &[DatasetEntry] {
        &self.datasets
    }

    /// The metrics of a family, in frozen order.
    pub fn metrics(&self, family: Family) -> &[String] {
        match family {
            Family::Pair => &self.pair_metrics,
            Family::Retrieval => &self.retrieval_metrics,
        }
    }

    /// How thresholds of pair datasets are found.
    pub fn threshold(&self) -> &ThresholdPolicy {
        &self.threshold
    }

    /// The budget of one method, in seconds.
    pub fn max_method_seconds(&self) -> f64 {
        self.max_method_seconds
    }

    /// What a method may use besides its budget, where the protocol says so.
    pub fn limits(&self) -> &ExecutionLimits {
        &self.limits
    }

    /// The seed, copied verbatim from the manifest.
    pub fn seed(&self) -> &Value {
        self.value.get("seed").unwrap_or(&NULL)
    }

    /// The whole protocol, with paths.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The public form: without local paths, with `protocol_id`. Nothing else is changed.
    pub fn public_value(&self) -> Value {
        let mut value = public_form(&self.value);
        if let Some(object) = value.as_object_mut() {
            object.insert("protocol_id", self.id.as_str());
        }
        value
    }

    /// The text of a protocol file with paths, in the form of specs/matheel.md section b.
    pub fn file_text(&self) -> String {
        pretty(&self.value)
    }

    /// The text of a portable protocol file: paths removed, nothing else changed.
    pub fn export(&self) -> String {
        pretty(&self.public_value())
    }
}

/// What the protocol id is the digest of: no `protocol_id`, no local paths.
pub(crate) fn public_form(protocol: &Value) -> Value {
    let mut public = protocol.clone();
    if let Some(object) = public.as_object_mut() {
        object.remove("protocol_id");
        let entries = object.get_mut("datasets").and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten() {
            if let Some(entry) = entry.as_object_mut() {
                entry.remove("path");
                entry.remove("validation_path");
            }
        }
    }
    public
}
