//! The aggregate: one row per method, family and metric over all declared datasets (specs/matheel.md section e).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use proctor_wire::Family;

use super::rank::{by_score, by_text, competition_ranks};
use super::{Row, Status};
use crate::frozen::Protocol;
use crate::metric::{mean, median, pairwise_sum};

/// A dataset that a ranking must cover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedDataset {
    /// Its name.
    pub name: Arc<str>,
    /// Its domain.
    pub domain: Arc<str>,
    /// Its family.
    pub family: Family,
}

/// The datasets a protocol declares.
pub fn expected_datasets(protocol: &Protocol) -> Vec<ExpectedDataset> {
    protocol
        .datasets()
        .iter()
        .map(|entry| ExpectedDataset {
            name: entry.name.as_str().into(),
            domain: entry.domain.as_str().into(),
            family: entry.family,
        })
        .collect()
}

/// One row of the aggregate.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregateRow {
    /// The domain of the benchmark.
    pub domain: Arc<str>,
    /// Pair or retrieval; the two never mix.
    pub family: Family,
    /// The method's display name.
    pub algorithm_name: Arc<str>,
    /// The method id.
    pub algorithm_id: Arc<str>,
    /// The metric's name.
    pub metric: Arc<str>,
    /// `NotApplicable` when any dataset is excluded, else `Completed` when all are covered, else `Failed`.
    pub status: Status,
    /// The distinct reasons of the exclusions, sorted, joined by `; `.
    pub not_applicable_reason: Option<Arc<str>>,
    /// The mean over datasets; `None` unless eligible.
    pub mean_score: Option<f64>,
    /// The median over datasets; `None` unless eligible.
    pub median_score: Option<f64>,
    /// Datasets with a score.
    pub dataset_count: u64,
    /// Datasets the protocol declares for this family.
    pub expected_dataset_count: u64,
    /// `dataset_count / expected_dataset_count`.
    pub coverage: f64,
    /// True when every declared dataset has a score.
    pub complete_coverage: bool,
    /// True when covered completely and nothing is excluded; only such rows are ranked.
    pub eligible: bool,
    /// Items scored, over all datasets.
    pub sample_count: u64,
    /// Seconds over all datasets.
    pub elapsed_seconds: f64,
    /// Place among the eligible rows of its family and metric; ties share the smallest.
    pub rank: Option<u64>,
}

impl AggregateRow {
    fn by_ranking(a: &Self, b: &Self) -> std::cmp::Ordering {
        a.domain
            .cmp(&b.domain)
            .then_with(|| a.family.name().cmp(b.family.name()))
            .then_with(|| a.metric.cmp(&b.metric))
    }
}

/// Aggregates rows, ranks the eligible ones by mean score, and orders by domain, family, metric, rank and name.
pub fn aggregate(rows: &[Row], expected: &[ExpectedDataset]) -> Vec<AggregateRow> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    let mut places: HashMap<GroupKey<'_>, usize> = HashMap::new();
    for row in rows {
        match places.entry(GroupKey(row)) {
            Entry::Occupied(place) => groups[*place.get()].push(row),
            Entry::Vacant(place) => {
                place.insert(groups.len());
                groups.push(vec![row]);
            }
        }
    }
    let mut table: Vec<AggregateRow> = groups
        .iter()
        .filter_map(|group| aggregate_group(group, expected))
        .collect();
    table.sort_by(|a, b| {
        AggregateRow::by_ranking(a, b)
            .then_with(|| by_score(a.mean_score, b.mean_score))
            .then_with(|| a.algorithm_name.cmp(&b.algorithm_name))
    });
    for ranking in table.chunk_by_mut(|a, b| AggregateRow::by_ranking(a, b).is_eq()) {
        let scores: Vec<_> = ranking.iter().map(|row| row.mean_score).collect();
        for (row, rank) in ranking.iter_mut().zip(competition_ranks(&scores)) {
            row.rank = rank;
        }
    }
    table
}

/// What the rows of one aggregate row have in common.
struct GroupKey<'a>(&'a Row);

impl Hash for GroupKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The beginning of a digest tells methods apart as well as all of it.
        let id = self.0.algorithm_id.as_bytes();
        state.write(id.get(..16).unwrap_or(id));
        state.write(self.0.metric.as_bytes());
    }
}

impl PartialEq for GroupKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (self.0, other.0);
        let same = |a: &Arc<str>, b: &Arc<str>| by_text(a, b).is_eq();
        a.family == b.family
            && same(&a.metric, &b.metric)
            && same(&a.algorithm_id, &b.algorithm_id)
            && same(&a.algorithm_name, &b.algorithm_name)
            && same(&a.domain, &b.domain)
    }
}

impl Eq for GroupKey<'_> {}

/// Aggregates the rows of one method, family and metric; `None` of no rows.
fn aggregate_group(group: &[&Row], expected: &[ExpectedDataset]) -> Option<AggregateRow> {
    let first = group.first()?;
    let mut wanted: Vec<&str> = expected
        .iter()
        .filter(|dataset| dataset.family == first.family && dataset.domain == first.domain)
        .map(|dataset| dataset.name.as_ref())
        .collect();
    if wanted.is_empty() {
        wanted = group.iter().map(|row| row.dataset_name.as_ref()).collect();
    }
    let mut covered: Vec<&str> = Vec::with_capacity(group.len());
    let mut scores = Vec::with_capacity(group.len());
    for row in group {
        if let Some(score) = row.score {
            covered.push(&row.dataset_name);
            scores.push(score);
        }
    }
    for names in [&mut wanted, &mut covered] {
        names.sort_unstable();
        names.dedup();
    }
    let complete = covered == wanted && group.len() == wanted.len();
    let excluded = |row: &&&Row| row.status == Some(Status::NotApplicable);
    let is_excluded = group.iter().any(|row| excluded(&row));
    let eligible = complete && !is_excluded;
    let mut reasons: Vec<&str> = group
        .iter()
        .filter(excluded)
        .filter_map(|row| row.not_applicable_reason.as_deref())
        .collect();
    reasons.sort_unstable();
    reasons.dedup();
    let elapsed: Vec<f64> = group.iter().map(|row| row.elapsed_seconds).collect();
    Some(AggregateRow {
        domain: first.domain.clone(),
        family: first.family,
        algorithm_name: first.algorithm_name.clone(),
        algorithm_id: first.algorithm_id.clone(),
        metric: first.metric.clone(),
        status: match (is_excluded, complete) {
            (true, _) => Status::NotApplicable,
            (false, true) => Status::Completed,
            (false, false) => Status::Failed,
        },
        not_applicable_reason: (!reasons.is_empty()).then(|| reasons.join("; ").into()),
        mean_score: mean(&scores).filter(|_| eligible),
        median_score: median(&scores).filter(|_| eligible),
        dataset_count: covered.len() as u64,
        expected_dataset_count: wanted.len() as u64,
        coverage: covered.len() as f64 / wanted.len() as f64,
        complete_coverage: complete,
        eligible,
        sample_count: group.iter().map(|row| row.sample_count).sum(),
        elapsed_seconds: pairwise_sum(&elapsed),
        rank: None,
    })
}
