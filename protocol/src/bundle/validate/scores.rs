//! Step 8, and beyond Matheel: score files are not only hashed, their metrics are computed again.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use proctor_wire::Family;
use rayon::prelude::*;

use super::Validation;
use super::identity::Methods;
use crate::bundle::Finding;
use crate::bundle::score::{ScoreFile, Values, read_score_file};
use crate::canonical::{Value, is_sha256};
use crate::frozen::{Protocol, ThresholdPolicy};
use crate::report::Row;

const RULE: &str = "score_artifacts";

/// An entry of the index of score files.
#[derive(Debug)]
struct Artifact<'a> {
    dataset: usize,
    method_id: Arc<str>,
    method_name: Option<&'a str>,
    filename: &'a str,
    sha256: &'a str,
    rows: Option<i64>,
    columns: &'a Value,
}

/// The index of score files.
#[derive(Debug)]
pub(super) struct Artifacts<'a>(Vec<Artifact<'a>>);

fn at(index: usize, field: &str) -> String {
    format!("metadata.score_artifacts[{index}].{field}")
}

impl<'a> Artifacts<'a> {
    /// Step 8, as far as it needs no files.
    pub(super) fn read(
        metadata: &'a Value,
        protocol: &Protocol,
        methods: &Methods<'_>,
    ) -> Result<Self, Finding> {
        let entries = match metadata.get("score_artifacts") {
            None => return Ok(Self(Vec::new())),
            Some(Value::Array(entries)) => entries,
            Some(other) => {
                let problem = format!("is {}, not a list", other.type_name());
                return Err(Finding::new(RULE, "metadata.score_artifacts", problem));
            }
        };
        let mut artifacts = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            let refuse = |field, problem: &str| Err(Finding::new(RULE, at(index, field), problem));
            let text = |key| entry.get(key).and_then(Value::as_str);
            let filename = text("filename").unwrap_or_default();
            let bare = !filename.contains(['/', '\\', ':']);
            if !bare || filename.strip_suffix(".csv").is_none() {
                return refuse(
                    "filename",
                    "must be the bare name of a .csv file, without a folder",
                );
            }
            let Some(sha256) = text("sha256").filter(|text| is_sha256(text)) else {
                return refuse("sha256", "must be 64 lower-case hex digits");
            };
            let id = text("algorithm_id");
            let Some(method) = id.and_then(|id| methods.find(id)) else {
                return refuse("algorithm_id", "is no method of this bundle");
            };
            let name = text("dataset_name").unwrap_or_default();
            let dataset = protocol
                .datasets()
                .iter()
                .position(|entry| entry.name == name);
            let Some(dataset) = dataset else {
                return refuse("dataset_name", "is no dataset of the protocol");
            };
            artifacts.push(Artifact {
                dataset,
                method_id: methods.list[method].0.clone(),
                method_name: text("algorithm_name"),
                filename,
                sha256,
                rows: entry.get("rows").and_then(Value::as_int),
                columns: entry.get("columns").unwrap_or(&Value::Null),
            });
        }
        Ok(Self(artifacts))
    }

    /// Reads the files: hash, shape, and the metrics they give. Without a folder nothing is read.
    pub(super) fn recompute(
        &self,
        metadata: &Value,
        protocol: &Protocol,
        options: &Validation<'_>,
    ) -> Result<Recomputed, Finding> {
        let Some(folder) = options.scores else {
            return Ok(Recomputed::default());
        };
        let thresholds = Thresholds::read(metadata);
        let files: Vec<Result<Given, Finding>> = self
            .0
            .par_iter()
            .enumerate()
            .map(|(index, artifact)| artifact.read(index, folder, protocol, &thresholds, options))
            .collect();
        let mut recomputed = Recomputed::default();
        for (artifact, file) in self.0.iter().zip(files) {
            let key = (artifact.dataset, artifact.method_id.clone());
            if recomputed.0.insert(key, file?).is_some() {
                let problem = format!(
                    "two score files are for method {} on {:?}",
                    artifact.method_id,
                    protocol.datasets()[artifact.dataset].name
                );
                return Err(Finding::new(RULE, "metadata.score_artifacts", problem));
            }
        }
        Ok(recomputed)
    }
}

impl Artifact<'_> {
    fn read(
        &self,
        index: usize,
        folder: &Path,
        protocol: &Protocol,
        thresholds: &Thresholds<'_>,
        options: &Validation<'_>,
    ) -> Result<Given, Finding> {
        let refuse = |field, problem: String| Finding::new(RULE, at(index, field), problem);
        let entry = &protocol.datasets()[self.dataset];
        let threshold = match (entry.family, protocol.threshold()) {
            (Family::Retrieval, _) => None,
            (Family::Pair, ThresholdPolicy::Fixed(value)) => Some(*value),
            (Family::Pair, ThresholdPolicy::ValidationF1) => {
                let threshold = thresholds.find(&entry.name, self.method_name);
                Some(threshold.ok_or_else(|| {
                    let problem = format!("holds no threshold of this method for {:?}", entry.name);
                    Finding::new(RULE, "metadata.thresholds", problem)
                })?)
            }
        };
        let data = options.data.and_then(|data| data.get(self.dataset));
        let path = folder.join(self.filename);
        let file = read_score_file(
            &path,
            entry,
            threshold.unwrap_or(0.5),
            data.map(|data| &data.test),
        )
        .map_err(|problem| refuse("filename", problem))?;
        if file.sha256 != self.sha256 {
            let problem = format!("{} has SHA-256 {}", path.display(), file.sha256);
            return Err(refuse("sha256", problem));
        }
        self.check_shape(&file)
            .map_err(|(field, problem)| refuse(field, problem))?;
        Ok(Given {
            index,
            rows: file.rows,
            values: file.values.map_err(|problem| refuse("filename", problem))?,
            threshold: threshold.filter(|_| *protocol.threshold() == ThresholdPolicy::ValidationF1),
        })
    }

    fn check_shape(&self, file: &ScoreFile) -> Result<(), (&'static str, String)> {
        if self.rows.and_then(|rows| u64::try_from(rows).ok()) != Some(file.rows) {
            return Err(("rows", format!("the file has {} rows", file.rows)));
        }
        let columns = self.columns.as_array().unwrap_or_default();
        let same = columns
            .iter()
            .map(Value::as_str)
            .eq(file.columns.iter().map(|c| Some(c.as_str())));
        if !same {
            return Err((
                "columns",
                format!("the file has {}", file.columns.join(", ")),
            ));
        }
        Ok(())
    }
}

/// The calibrated thresholds of `metadata.thresholds`, by dataset and display name.
#[derive(Debug)]
struct Thresholds<'a>(HashMap<(&'a str, &'a str), f64>);

impl<'a> Thresholds<'a> {
    fn read(metadata: &'a Value) -> Self {
        let entries = metadata.get("thresholds").and_then(Value::as_array);
        let read = |entry: &'a Value| {
            let dataset = entry.get("dataset_name")?.as_str()?;
            let method = entry.get("algorithm_name")?.as_str()?;
            Some(((dataset, method), entry.get("threshold")?.as_number()?))
        };
        Self(
            entries
                .unwrap_or_default()
                .iter()
                .filter_map(read)
                .collect(),
        )
    }

    fn find(&self, dataset: &str, method: Option<&str>) -> Option<f64> {
        self.0.get(&(dataset, method?)).copied()
    }
}

/// What a score file gives.
#[derive(Debug)]
struct Given {
    index: usize,
    rows: u64,
    values: Values,
    threshold: Option<f64>,
}

/// What all score files give, by dataset and method.
#[derive(Debug, Default)]
pub(super) struct Recomputed(HashMap<(usize, Arc<str>), Given>);

impl Recomputed {
    /// Compares rows with what the score files give; how many rows with a score were computed again.
    pub(super) fn check(&self, rows: &[Row], protocol: &Protocol) -> Result<usize, Finding> {
        if self.0.is_empty() {
            return Ok(0);
        }
        let names = protocol.datasets().iter().map(|entry| entry.name.as_str());
        let dataset_of: HashMap<&str, usize> = names.zip(0..).collect();
        let mut count = 0;
        for row in rows {
            let dataset = dataset_of
                .get(&*row.dataset_name)
                .copied()
                .unwrap_or_default();
            let Some(given) = self.0.get(&(dataset, row.algorithm_id.clone())) else {
                continue;
            };
            let refuse = |problem: String| {
                let at = format!("metadata.score_artifacts[{}]", given.index);
                let (method, metric, dataset) =
                    (&row.algorithm_name, &row.metric, &row.dataset_name);
                let problem = format!("{problem} for {metric} of {method:?} on {dataset:?}");
                Err(Finding::new("recomputed_score", at, problem))
            };
            let text = |value: Option<f64>| {
                value.map_or("no value".to_owned(), crate::canonical::float_text)
            };
            let computed = given.values.get(&row.metric);
            if computed != row.score {
                return refuse(format!(
                    "the scores give {}, the row says {}",
                    text(computed),
                    text(row.score)
                ));
            }
            if given.rows != row.sample_count {
                return refuse(format!(
                    "{} scores, the row says {}",
                    given.rows, row.sample_count
                ));
            }
            if given.threshold.is_some() && given.threshold != row.selected_threshold {
                return refuse(format!(
                    "metadata.thresholds says {}, selected_threshold says {}",
                    text(given.threshold),
                    text(row.selected_threshold)
                ));
            }
            count += usize::from(row.eligible);
        }
        Ok(count)
    }
}
