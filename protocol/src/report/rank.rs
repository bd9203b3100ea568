//! Ranks within a dataset and metric.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Row;

/// Order of texts; rows mostly share theirs, which spares the comparison.
pub(super) fn by_text(a: &Arc<str>, b: &Arc<str>) -> Ordering {
    if Arc::ptr_eq(a, b) {
        Ordering::Equal
    } else {
        a.cmp(b)
    }
}

/// Order of groups: a ranking is one of domain, family, dataset and metric.
fn by_group(a: &Row, b: &Row) -> Ordering {
    by_text(&a.domain, &b.domain)
        .then_with(|| a.family.name().cmp(b.family.name()))
        .then_with(|| by_text(&a.dataset_name, &b.dataset_name))
        .then_with(|| by_text(&a.metric, &b.metric))
}

/// Higher first, no score last.
pub(super) fn by_score(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => b.partial_cmp(&a).unwrap_or(Ordering::Equal),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

/// Competition ranks ("1, 1, 3") of scores already in [`by_score`] order; none without a score.
pub(super) fn competition_ranks(scores: &[Option<f64>]) -> Vec<Option<u64>> {
    let mut first = 0;
    (0..scores.len())
        .map(|at| {
            if scores[at] != scores[first] {
                first = at;
            }
            scores[at].map(|_| first as u64 + 1)
        })
        .collect()
}

/// The rank of every row, in the order given: its place among the scores of its domain, family, dataset and metric, from
/// 1, ties sharing the smallest; `None` without a score.
pub fn ranks(rows: &[Row]) -> Vec<Option<u64>> {
    let mut order: Vec<u32> = (0..rows.len() as u32).collect();
    let row = |at: &u32| &rows[*at as usize];
    order.sort_by(|a, b| {
        by_group(row(a), row(b)).then_with(|| by_score(row(a).score, row(b).score))
    });
    let mut ranks = vec![None; rows.len()];
    for group in order.chunk_by(|a, b| by_group(row(a), row(b)).is_eq()) {
        let scores: Vec<_> = group.iter().map(|at| row(at).score).collect();
        for (at, rank) in group.iter().zip(competition_ranks(&scores)) {
            ranks[*at as usize] = rank;
        }
    }
    ranks
}

/// Sets `eligible` and `rank` of every row, and orders rows by domain, family, dataset, metric, rank and name; rows
/// without a rank come last in their group.
pub fn rank(rows: &mut [Row]) {
    for row in rows.iter_mut() {
        row.score = row.score.filter(|score| score.is_finite());
        row.eligible = row.score.is_some();
    }
    rows.sort_by(|a, b| {
        by_group(a, b)
            .then_with(|| by_score(a.score, b.score))
            .then_with(|| a.algorithm_name.cmp(&b.algorithm_name))
    });
    let ranks = ranks(rows);
    for (row, rank) in rows.iter_mut().zip(ranks) {
        row.rank = rank;
    }
}

#[cfg(test)]
mod tests {
    use super::competition_ranks;

    #[test]
    fn ties_share_the_smallest_rank() {
        let scores = [Some(0.9), Some(0.5), Some(0.5), Some(0.1), None];
        assert_eq!(
            competition_ranks(&scores),
            [Some(1), Some(2), Some(2), Some(4), None]
        );
        assert_eq!(competition_ranks(&[None, None]), [None, None]);
        assert_eq!(competition_ranks(&[]), []);
    }
}
