//! From raw scores and gold to rows.

use std::sync::Arc;

use super::{MethodIdentity, Row, Status};
use crate::dataset::Dataset;
use crate::frozen::{DatasetEntry, LoadedEntry, Protocol, ThresholdPolicy};
use crate::metric::{PairMetrics, RetrievalGold, RetrievalMetrics, calibrate_f1};

/// The answer key of one dataset, prepared once for all methods.
#[derive(Debug)]
pub enum Gold {
    /// Labels of the pairs, in frozen order.
    Pair {
        /// 0 or 1 for each pair.
        labels: Vec<u8>,
        /// Labels of the validation pairs, under `validation_f1`.
        validation: Option<Vec<u8>>,
    },
    /// Judgments of a query x document matrix.
    Retrieval(RetrievalGold),
}

impl Gold {
    /// The gold of a frozen dataset.
    pub fn new(entry: &DatasetEntry, data: &LoadedEntry) -> Self {
        match &data.test {
            Dataset::Pair(test) => Self::Pair {
                labels: test.labels.clone(),
                validation: match &data.validation {
                    Some(Dataset::Pair(validation)) => Some(validation.labels.clone()),
                    _ => None,
                },
            },
            Dataset::Retrieval(test) => Self::Retrieval(RetrievalGold::new(
                &test.query_ids,
                &test.document_ids,
                &test.judgments,
                entry
                    .exclude_same_file
                    .then_some((&test.query_file, &test.document_file)),
            )),
        }
    }

    /// How many scores the metrics are made of: pairs, or candidates that are not left out.
    pub fn sample_count(&self) -> u64 {
        match self {
            Self::Pair { labels, .. } => labels.len() as u64,
            Self::Retrieval(gold) => gold.candidates(),
        }
    }
}

/// What is known of one method on one dataset.
#[derive(Debug, Clone, PartialEq)]
pub enum DatasetResult {
    /// Every item has a score.
    Scored {
        /// Scores in frozen order; for retrieval the full matrix, query by query.
        scores: Vec<f64>,
        /// Scores of the validation pairs in frozen order, under `validation_f1`.
        validation_scores: Option<Vec<f64>>,
        /// Seconds the method took on it.
        elapsed_seconds: f64,
    },
    /// There are no scores.
    Failed {
        /// `<Type>: <message>`.
        error: String,
        /// Seconds spent on it.
        elapsed_seconds: f64,
    },
    /// The method declares that the dataset does not apply to it; the reason.
    NotApplicable(String),
}

/// Scores that cannot belong to the dataset. This is a damaged or mistaken record, not a failure of the method.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateError {
    /// Another number of scores than items.
    #[error("dataset {dataset}: {found} {which} were recorded, but it has {expected} items")]
    Count {
        /// The dataset.
        dataset: String,
        /// `scores` or `validation scores`.
        which: &'static str,
        /// Scores found.
        found: usize,
        /// Items of the dataset.
        expected: usize,
    },
    /// The protocol calibrates, but there is nothing to calibrate on.
    #[error("dataset {dataset}: the protocol calibrates on validation data, but {missing} missing")]
    Validation {
        /// The dataset.
        dataset: String,
        /// What is missing.
        missing: &'static str,
    },
}

/// The rows of one method on one dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluated {
    /// One row per metric of the family, in frozen order, without ranks.
    pub rows: Vec<Row>,
    /// The calibrated threshold, under `validation_f1`.
    pub threshold: Option<f64>,
}

/// Values of one dataset by metric name.
enum Values {
    Pair(Option<PairMetrics>),
    Retrieval(Option<RetrievalMetrics>),
}

impl Values {
    fn get(&self, metric: &str) -> Option<f64> {
        match self {
            Self::Pair(values) => values.as_ref()?.get(metric),
            Self::Retrieval(values) => values.as_ref()?.get(metric),
        }
    }
}

/// Why there are no values.
enum Trouble {
    /// The method's failure, as an error text.
    Method(String),
    /// A record that does not belong to the dataset.
    Record(EvaluateError),
}

impl From<EvaluateError> for Trouble {
    fn from(error: EvaluateError) -> Self {
        Self::Record(error)
    }
}

/// Makes the rows of one method on one dataset. Scores that are not finite, and validation scores that give no threshold,
/// are the method's failure and become failed rows.
///
/// # Errors
/// The scores do not belong to the dataset.
pub fn rows(
    protocol: &Protocol,
    entry: &DatasetEntry,
    gold: &Gold,
    method: &MethodIdentity,
    result: &DatasetResult,
) -> Result<Evaluated, EvaluateError> {
    let metrics = protocol.metrics(entry.family);
    let blank = BlankRow::new(entry, method);
    let plain = |rows| Evaluated {
        rows,
        threshold: None,
    };
    match result {
        DatasetResult::NotApplicable(reason) => {
            let reason: Arc<str> = reason.as_str().into();
            Ok(plain(blank.rows(metrics, 0.0, |row| {
                row.status = Some(Status::NotApplicable);
                row.not_applicable_reason = Some(reason.clone());
            })))
        }
        DatasetResult::Failed {
            error,
            elapsed_seconds,
        } => Ok(plain(blank.failed(metrics, error, *elapsed_seconds))),
        DatasetResult::Scored {
            scores,
            validation_scores,
            elapsed_seconds,
        } => match values(protocol, entry, gold, scores, validation_scores.as_deref()) {
            Err(Trouble::Record(error)) => Err(error),
            Err(Trouble::Method(error)) => {
                Ok(plain(blank.failed(metrics, &error, *elapsed_seconds)))
            }
            Ok((values, threshold)) => {
                let rows = blank.rows(metrics, *elapsed_seconds, |row| {
                    row.status = Some(Status::Completed);
                    row.score = values.get(&row.metric);
                    row.eligible = row.score.is_some();
                    row.sample_count = gold.sample_count();
                    row.selected_threshold = threshold;
                });
                Ok(Evaluated { rows, threshold })
            }
        },
    }
}

/// The values of one dataset, and the calibrated threshold where one is used.
fn values(
    protocol: &Protocol,
    entry: &DatasetEntry,
    gold: &Gold,
    scores: &[f64],
    validation_scores: Option<&[f64]>,
) -> Result<(Values, Option<f64>), Trouble> {
    match gold {
        Gold::Retrieval(gold) => {
            check_scores(entry, "scores", scores, gold.queries() * gold.documents())?;
            Ok((Values::Retrieval(gold.compute(scores, entry.k)), None))
        }
        Gold::Pair { labels, validation } => {
            check_scores(entry, "scores", scores, labels.len())?;
            let (threshold, calibrated) = match protocol.threshold() {
                ThresholdPolicy::Fixed(value) => (*value, None),
                ThresholdPolicy::ValidationF1 => {
                    let value = calibrated(entry, validation.as_deref(), validation_scores)?;
                    (value, Some(value))
                }
            };
            let metrics = PairMetrics::compute(labels, scores, threshold);
            Ok((Values::Pair(metrics), calibrated))
        }
    }
}

/// The threshold from validation data.
fn calibrated(
    entry: &DatasetEntry,
    labels: Option<&[u8]>,
    scores: Option<&[f64]>,
) -> Result<f64, Trouble> {
    let missing = |missing| EvaluateError::Validation {
        dataset: entry.name.clone(),
        missing,
    };
    let labels = labels.ok_or_else(|| missing("its validation labels are"))?;
    let scores = scores.ok_or_else(|| missing("the validation scores are"))?;
    check_scores(entry, "validation scores", scores, labels.len())?;
    calibrate_f1(labels, scores).ok_or_else(|| {
        Trouble::Method("ValueError: the validation scores give no finite threshold".into())
    })
}

/// Checks that there are as many scores as items, and that they are finite.
fn check_scores(
    entry: &DatasetEntry,
    which: &'static str,
    scores: &[f64],
    expected: usize,
) -> Result<(), Trouble> {
    if scores.len() != expected {
        return Err(Trouble::Record(EvaluateError::Count {
            dataset: entry.name.clone(),
            which,
            found: scores.len(),
            expected,
        }));
    }
    let Some(score) = scores.iter().find(|score| !score.is_finite()) else {
        return Ok(());
    };
    let text = if score.is_nan() {
        "nan"
    } else if *score > 0.0 {
        "inf"
    } else {
        "-inf"
    };
    Err(Trouble::Method(format!(
        "ValueError: Algorithm score must be finite. Got: {text}"
    )))
}

/// What the rows of one method on one dataset have in common.
struct BlankRow(Row);

impl BlankRow {
    fn new(entry: &DatasetEntry, method: &MethodIdentity) -> Self {
        Self(Row {
            domain: entry.domain.as_str().into(),
            family: entry.family,
            dataset_name: entry.name.as_str().into(),
            dataset_fingerprint: entry.content_sha256.as_str().into(),
            dataset_source: "local".into(),
            algorithm_name: method.name.clone(),
            algorithm_id: method.id.clone(),
            algorithm_kind: method.kind.clone(),
            metric: "".into(),
            score: None,
            sample_count: 0,
            status: None,
            not_applicable_reason: None,
            error: None,
            elapsed_seconds: 0.0,
            selected_threshold: None,
            eligible: false,
            rank: None,
            extra: None,
        })
    }

    fn rows(&self, metrics: &[String], elapsed: f64, fill: impl Fn(&mut Row)) -> Vec<Row> {
        metrics
            .iter()
            .map(|metric| {
                let mut row = self.0.clone();
                row.metric = metric.as_str().into();
                row.elapsed_seconds = elapsed;
                fill(&mut row);
                row
            })
            .collect()
    }

    fn failed(&self, metrics: &[String], error: &str, elapsed: f64) -> Vec<Row> {
        let error: Arc<str> = error.into();
        self.rows(metrics, elapsed, |row| {
            row.status = Some(Status::Failed);
            row.error = Some(error.clone());
        })
    }
}
