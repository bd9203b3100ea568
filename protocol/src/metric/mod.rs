//! The metrics: pure functions of gold and scores, and what each one is as data.
//!
//! Every function gives the same double as Matheel 0.7.1 (specs/matheel.md section d); where the last bit depends on
//! the order of operations, that order is written out.

mod calibrate;
mod pair;
mod retrieval;
mod sum;

pub use calibrate::calibrate_f1;
pub use pair::PairMetrics;
pub(crate) use retrieval::{QueryMeans, RankedQuery};
pub use retrieval::{RetrievalGold, RetrievalMetrics};
pub(crate) use sum::pairwise_sum;
pub use sum::{mean, median};

use proctor_wire::Family;

/// Which way a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// A larger value ranks first.
    HigherIsBetter,
}

/// How the value of a method over several datasets is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregation {
    /// The mean over all declared datasets with equal weight; undefined while one of them has no value.
    MacroMean,
}

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// The name protocols and rows use.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// The family of datasets it is defined on.
    pub family: Family,
    /// Smallest and largest value.
    pub range: (f64, f64),
    /// Which way is better.
    pub direction: Direction,
    /// How datasets are put together.
    pub aggregation: Aggregation,
    /// What it says, in a sentence.
    pub meaning: &'static str,
}

const fn metric(
    name: &'static str,
    title: &'static str,
    family: Family,
    meaning: &'static str,
) -> Metric {
    Metric {
        name,
        title,
        family,
        range: (0.0, 1.0),
        direction: Direction::HigherIsBetter,
        aggregation: Aggregation::MacroMean,
        meaning,
    }
}

/// Every metric a protocol can ask for.
pub const METRICS: [Metric; 11] = [
    metric(
        "f1",
        "F1",
        Family::Pair,
        "harmonic mean of precision and recall at the decision threshold",
    ),
    metric(
        "accuracy",
        "Accuracy",
        Family::Pair,
        "share of pairs decided rightly at the decision threshold",
    ),
    metric(
        "precision",
        "Precision",
        Family::Pair,
        "share of positive decisions that are right; 0 without positive decisions",
    ),
    metric(
        "recall",
        "Recall",
        Family::Pair,
        "share of positive pairs that are found; 0 without positive pairs",
    ),
    metric(
        "auroc",
        "AUROC",
        Family::Pair,
        "area under the curve of true against false positive rate; undefined unless both classes occur",
    ),
    metric(
        "average_precision",
        "Average precision",
        Family::Pair,
        "precision summed over the steps of recall; undefined unless both classes occur",
    ),
    metric(
        "mean_average_precision",
        "Mean average precision",
        Family::Retrieval,
        "mean over queries of the average precision of the full ranking",
    ),
    metric(
        "mean_reciprocal_rank",
        "Mean reciprocal rank",
        Family::Retrieval,
        "mean over queries of 1 / rank of the first relevant document",
    ),
    metric(
        "ndcg_at_k",
        "nDCG@k",
        Family::Retrieval,
        "mean over queries of the discounted gain of the first k documents against the best possible",
    ),
    metric(
        "precision_at_k",
        "Precision@k",
        Family::Retrieval,
        "mean over queries of the relevant share of k places",
    ),
    metric(
        "recall_at_k",
        "Recall@k",
        Family::Retrieval,
        "mean over queries of the share of relevant documents in the first k",
    ),
];

impl Metric {
    /// The metric of that name in that family.
    pub fn find(family: Family, name: &str) -> Option<&'static Self> {
        METRICS
            .iter()
            .find(|metric| metric.family == family && metric.name == name)
    }

    /// The names of a family's metrics, in the order of [`METRICS`].
    pub fn names(family: Family) -> impl Iterator<Item = &'static str> {
        METRICS
            .iter()
            .filter(move |metric| metric.family == family)
            .map(|metric| metric.name)
    }
}
