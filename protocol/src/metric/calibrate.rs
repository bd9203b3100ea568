//! The threshold of `validation_f1`.

use super::pair::Steps;

/// The threshold that does best on validation data: the maximum of (F1, precision, recall, accuracy, threshold) over a
/// margin below and above the scores, every distinct score and every midpoint of neighbours. `labels` are 0 or 1,
/// `scores` finite, in the same order. `None` of nothing, or when a candidate overflows.
pub fn calibrate_f1(labels: &[u8], scores: &[f64]) -> Option<f64> {
    if labels.len() != scores.len() {
        return None;
    }
    let steps = Steps::new(labels, scores);
    let margin = steps.margin()?;
    let (first, last) = (*steps.scores.first()?, *steps.scores.last()?);
    // This order matters only between 0.0 and -0.0: the first of equal candidates stands.
    let mut candidates = Vec::with_capacity(2 * steps.scores.len() + 1);
    candidates.extend([first - margin, last + margin]);
    candidates.extend_from_slice(&steps.scores);
    candidates.extend(steps.scores.windows(2).map(|two| middle(two[0], two[1])));
    if candidates.iter().any(|candidate| !candidate.is_finite()) {
        return None;
    }
    candidates.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    candidates.dedup();
    let mut best: Option<([f64; 4], f64)> = None;
    for threshold in candidates {
        let counts = steps.counts_at(threshold);
        let key = [
            counts.f1(),
            counts.precision(),
            counts.recall(),
            counts.accuracy(),
        ];
        // Ascending candidates: on a full tie the later, higher threshold wins.
        if best.as_ref().is_none_or(|(other, _)| key >= *other) {
            best = Some((key, threshold));
        }
    }
    best.map(|(_, threshold)| threshold)
}

/// Halfway, by way of a sum that may overflow: then there is no threshold.
#[expect(
    clippy::manual_midpoint,
    reason = "midpoint() would hide the overflow that Matheel refuses"
)]
fn middle(a: f64, b: f64) -> f64 {
    (a + b) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_of_equally_good_thresholds_is_taken() {
        // Everything in (0.2, 0.8] decides perfectly; 0.8 is the highest candidate of them.
        assert_eq!(calibrate_f1(&[1, 0], &[0.8, 0.2]), Some(0.8));
    }

    #[test]
    fn without_positives_the_threshold_above_all_scores_is_most_accurate() {
        assert_eq!(calibrate_f1(&[0, 0], &[0.25, 0.75]), Some(0.75 + 1e-12));
    }

    #[test]
    fn one_distinct_score_has_candidates_around_it() {
        assert_eq!(calibrate_f1(&[1, 1], &[0.5, 0.5]), Some(0.5));
        assert_eq!(calibrate_f1(&[0, 0], &[0.5, 0.5]), Some(0.5 + 1e-12));
    }

    #[test]
    fn nothing_and_overflow_have_no_threshold() {
        assert_eq!(calibrate_f1(&[], &[]), None);
        assert_eq!(calibrate_f1(&[1, 0], &[1.7e308, -1.7e308]), None);
    }
}
