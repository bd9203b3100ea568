//! The typed row of a report.

use std::sync::Arc;

use proctor_wire::Family;

use crate::canonical::{Object, Value};
use crate::method::{Method, MethodKind};

/// How the error text of a failure begins that is no fault of the method (design section 6).
pub const NOT_CHARGED: &str = "NotCharged: ";

/// What became of one method on one dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// Scored; the metric may still be undefined.
    Completed,
    /// Not scored; the row's error says why.
    Failed,
    /// Excluded by the method's own declaration before the run.
    NotApplicable,
}

impl Status {
    /// The word in the `status` column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::NotApplicable => "not_applicable",
        }
    }

    /// The status of a word.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Completed, Self::Failed, Self::NotApplicable]
            .into_iter()
            .find(|status| status.name() == name)
    }
}

/// Who a method is, in reports and bundles.
#[derive(Debug, Clone, PartialEq)]
pub struct MethodIdentity {
    /// The display name; not part of the identity.
    pub name: Arc<str>,
    /// The method id: SHA-256 of `configuration`.
    pub id: Arc<str>,
    /// The `algorithm_kind` column: `builtin` or `custom`.
    pub kind: Arc<str>,
    /// The effective configuration.
    pub configuration: Value,
    /// The row of `manifest.algorithms`.
    pub manifest_entry: Value,
}

impl From<&Method> for MethodIdentity {
    fn from(method: &Method) -> Self {
        let custom = match &method.kind {
            MethodKind::Builtin => false,
            MethodKind::Program(_) => true,
            MethodKind::Unsupported(_) => method.configuration.get("algorithm_sha256").is_some(),
        };
        Self {
            name: method.name.as_str().into(),
            id: method.id.as_str().into(),
            kind: if custom { "custom" } else { "builtin" }.into(),
            configuration: method.configuration.clone(),
            manifest_entry: method.manifest_entry.clone(),
        }
    }
}

/// One row: a method, a dataset and a metric (specs/matheel.md section e). `task_type` equals `domain`, and the benchmark
/// and protocol ids are those of the document, so they are not stored here.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The domain of the benchmark.
    pub domain: Arc<str>,
    /// Pair or retrieval.
    pub family: Family,
    /// The dataset's name in the protocol.
    pub dataset_name: Arc<str>,
    /// The dataset's content hash.
    pub dataset_fingerprint: Arc<str>,
    /// Where the dataset came from; always `local` in ours.
    pub dataset_source: Arc<str>,
    /// The method's display name.
    pub algorithm_name: Arc<str>,
    /// The method id.
    pub algorithm_id: Arc<str>,
    /// `builtin` or `custom`.
    pub algorithm_kind: Arc<str>,
    /// The metric's name.
    pub metric: Arc<str>,
    /// The value, within [0, 1]; `None` when there is none.
    pub score: Option<f64>,
    /// Items scored; 0 when not scored.
    pub sample_count: u64,
    /// `None` in rows of other writers that do not say.
    pub status: Option<Status>,
    /// The declared reason of an exclusion.
    pub not_applicable_reason: Option<Arc<str>>,
    /// Why scoring failed, `<Type>: <message>`.
    pub error: Option<Arc<str>>,
    /// Seconds the method took on this dataset; the same on each of its metrics.
    pub elapsed_seconds: f64,
    /// The calibrated threshold, for pair datasets under `validation_f1`.
    pub selected_threshold: Option<f64>,
    /// True when there is a score, and only such rows are ranked.
    pub eligible: bool,
    /// Place among the eligible rows of its dataset and metric; ties share the smallest.
    pub rank: Option<u64>,
    /// Columns of other writers that we do not know; kept when bundles are merged.
    pub extra: Option<Box<Object>>,
}

impl Row {
    /// True when the row failed through no fault of the method: it was interrupted, cancelled or our machine failed.
    pub fn not_charged(&self) -> bool {
        self.error
            .as_deref()
            .is_some_and(|error| error.starts_with(NOT_CHARGED))
    }
}
