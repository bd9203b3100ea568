//! Ranks within a dataset and metric.

use std::cmp::Ordering;

use super::Row;

/// Order of groups: a ranking is one of domain, family, dataset and metric.
fn by_group(a: &Row, b: &Row) -> Ordering {
    a.domain
        .cmp(&b.domain)
        .then_with(|| a.family.name().cmp(b.family.name()))
        .then_with(|| a.dataset_name.cmp(&b.dataset_name))
        .then_with(|| a.metric.cmp(&b.metric))
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
    for group in rows.chunk_by_mut(|a, b| by_group(a, b).is_eq()) {
        let scores: Vec<_> = group.iter().map(|row| row.score).collect();
        for (row, rank) in group.iter_mut().zip(competition_ranks(&scores)) {
            row.rank = rank;
        }
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
