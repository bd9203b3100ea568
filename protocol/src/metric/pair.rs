//! The six pair metrics. A pair is decided positive when `score >= threshold`.

/// The counts of one threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    /// Positive pairs decided positive.
    pub true_positive: u64,
    /// Negative pairs decided positive.
    pub false_positive: u64,
    /// Negative pairs decided negative.
    pub true_negative: u64,
    /// Positive pairs decided negative.
    pub false_negative: u64,
}

/// `numerator / denominator`, 0 on an empty denominator.
fn share(numerator: u64, denominator: u64) -> f64 {
    if denominator == 0 {
        0.0
    } else {
        numerator as f64 / denominator as f64
    }
}

impl Counts {
    pub(super) fn precision(self) -> f64 {
        share(self.true_positive, self.true_positive + self.false_positive)
    }

    pub(super) fn recall(self) -> f64 {
        share(self.true_positive, self.true_positive + self.false_negative)
    }

    /// `(2 * p * r) / (p + r)` in that order; other forms differ in the last bit.
    pub(super) fn f1(self) -> f64 {
        let (precision, recall) = (self.precision(), self.recall());
        let sum = precision + recall;
        if sum == 0.0 {
            0.0
        } else {
            2.0 * precision * recall / sum
        }
    }

    pub(super) fn accuracy(self) -> f64 {
        let total =
            self.true_positive + self.false_positive + self.true_negative + self.false_negative;
        share(self.true_positive + self.true_negative, total)
    }
}

/// The distinct scores ascending, each with how many pairs and positive pairs lie below it.
#[derive(Debug)]
pub(super) struct Steps {
    /// Distinct scores. Of equal ones (`0.0` and `-0.0`) the first in input order stands.
    pub scores: Vec<f64>,
    /// `below[i]` of `scores[i]`; one more entry holds the totals.
    below: Vec<(u64, u64)>,
}

impl Steps {
    /// Sorts once. Scores must be finite.
    pub(super) fn new(labels: &[u8], scores: &[f64]) -> Self {
        let mut order: Vec<(f64, bool)> = scores
            .iter()
            .copied()
            .zip(labels.iter().map(|&label| label == 1))
            .collect();
        // Stable, so that of 0.0 and -0.0 the first given one stands for both, as in a Python set.
        order.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(std::cmp::Ordering::Equal));
        let mut steps = Self {
            scores: Vec::new(),
            below: Vec::new(),
        };
        let (mut seen, mut positive) = (0, 0);
        for (score, label) in order {
            if steps.scores.last() != Some(&score) {
                steps.scores.push(score);
                steps.below.push((seen, positive));
            }
            seen += 1;
            positive += u64::from(label);
        }
        steps.below.push((seen, positive));
        steps
    }

    /// How many pairs and how many positive ones there are.
    fn totals(&self) -> (u64, u64) {
        self.below.last().copied().unwrap_or((0, 0))
    }

    /// The counts when everything from `scores[step]` on is positive; `step == scores.len()` decides nothing positive.
    fn counts_from(&self, step: usize) -> Counts {
        let (total, positive) = self.totals();
        let (below, false_negative) = self.below[step];
        let true_negative = below - false_negative;
        Counts {
            true_positive: positive - false_negative,
            false_positive: total - positive - true_negative,
            true_negative,
            false_negative,
        }
    }

    /// The counts at a threshold.
    pub(super) fn counts_at(&self, threshold: f64) -> Counts {
        self.counts_from(self.scores.partition_point(|&score| score < threshold))
    }

    /// The smallest step beyond the scores at both ends: a trillionth of their span, of the one score, or 1e-12.
    pub(super) fn margin(&self) -> Option<f64> {
        let (first, last) = (*self.scores.first()?, *self.scores.last()?);
        let scale = if self.scores.len() == 1 {
            first.abs()
        } else {
            last - first
        };
        Some((scale * 1e-12).max(1e-12))
    }

    /// The counts along the curve, from a threshold above all scores to one below all. `None` unless both classes occur,
    /// or when a threshold at an end or between two scores is not finite: Matheel gives no curve of such scores either.
    fn curve(&self) -> Option<impl Iterator<Item = Counts> + '_> {
        let (total, positive) = self.totals();
        if positive == 0 || positive == total {
            return None;
        }
        let margin = self.margin()?;
        let lower = self.scores.first()? - margin;
        let upper = self.scores.last()? + margin;
        // Of all sums of neighbours, those at the ends are the largest.
        let ends = [
            self.scores.first_chunk::<2>(),
            self.scores.last_chunk::<2>(),
        ];
        let between = ends.into_iter().flatten().map(|[a, b]| a + b);
        if !between.chain([lower, upper]).all(f64::is_finite) {
            return None;
        }
        // Among huge scores `upper` may round to the largest one, so it is compared like any threshold.
        let inner = (0..self.scores.len()).rev();
        Some(
            std::iter::once(self.counts_at(upper))
                .chain(inner.map(|step| self.counts_from(step)))
                .chain(std::iter::once(self.counts_at(lower))),
        )
    }

    /// Trapezoids over (false positive rate, recall).
    fn auroc(&self) -> Option<f64> {
        let (total, positive) = self.totals();
        let negative = (total - positive) as f64;
        let mut points = self
            .curve()?
            .map(|counts| (counts.false_positive as f64 / negative, counts.recall()));
        let (mut x, mut y) = points.next()?;
        let mut area = 0.0;
        for (next_x, next_y) in points {
            area += (next_x - x) * (y + next_y) / 2.0;
            (x, y) = (next_x, next_y);
        }
        Some(area)
    }

    /// Precision over the steps of recall.
    fn average_precision(&self) -> Option<f64> {
        let (mut best, mut sum) = (0.0_f64, 0.0);
        for counts in self.curve()? {
            let recall = counts.recall();
            sum += (recall - best).max(0.0) * counts.precision();
            best = best.max(recall);
        }
        Some(sum)
    }
}

/// The pair metrics of one dataset; one sort serves all of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairMetrics {
    /// See [`super::METRICS`].
    pub f1: f64,
    /// See [`super::METRICS`].
    pub accuracy: f64,
    /// See [`super::METRICS`].
    pub precision: f64,
    /// See [`super::METRICS`].
    pub recall: f64,
    /// `None` unless both classes occur.
    pub auroc: Option<f64>,
    /// `None` unless both classes occur.
    pub average_precision: Option<f64>,
}

impl PairMetrics {
    /// Computes all of them. `labels` (0 or 1) and finite `scores` are in the same order and equally many; `None` of
    /// nothing.
    pub fn compute(labels: &[u8], scores: &[f64], threshold: f64) -> Option<Self> {
        if scores.is_empty() || labels.len() != scores.len() {
            return None;
        }
        let steps = Steps::new(labels, scores);
        let counts = steps.counts_at(threshold);
        Some(Self {
            f1: counts.f1(),
            accuracy: counts.accuracy(),
            precision: counts.precision(),
            recall: counts.recall(),
            auroc: steps.auroc(),
            average_precision: steps.average_precision(),
        })
    }

    /// The value of a metric by name; `None` when it is undefined here or is no pair metric.
    pub fn get(&self, name: &str) -> Option<f64> {
        match name {
            "f1" => Some(self.f1),
            "accuracy" => Some(self.accuracy),
            "precision" => Some(self.precision),
            "recall" => Some(self.recall),
            "auroc" => self.auroc,
            "average_precision" => self.average_precision,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair_metric(name: &str, labels: &[u8], scores: &[f64], threshold: f64) -> Option<f64> {
        PairMetrics::compute(labels, scores, threshold)?.get(name)
    }

    #[test]
    fn decisions_include_the_threshold_itself() {
        let metrics = PairMetrics::compute(&[1, 1, 0, 0], &[0.9, 0.5, 0.5, 0.1], 0.5).unwrap();
        assert_eq!(metrics.precision, 2.0 / 3.0);
        assert_eq!(metrics.recall, 1.0);
        assert_eq!(metrics.f1, 0.8);
        assert_eq!(metrics.accuracy, 0.75);
    }

    #[test]
    fn ties_are_one_step_of_both_curves() {
        // Points (0, 0), (0, 1/2), (1/2, 1), (1, 1): one tie of a positive and a negative.
        let metrics = PairMetrics::compute(&[1, 1, 0, 0], &[0.9, 0.5, 0.5, 0.1], 0.5).unwrap();
        assert_eq!(metrics.auroc, Some(0.875));
        // 1/2 * 1 + 1/2 * 2/3.
        assert_eq!(metrics.average_precision, Some(0.5 + 0.5 * (2.0 / 3.0)));
    }

    #[test]
    fn one_class_leaves_the_curves_undefined_and_f1_zero() {
        let metrics = PairMetrics::compute(&[0, 0], &[0.9, 0.1], 0.5).unwrap();
        assert_eq!((metrics.auroc, metrics.average_precision), (None, None));
        assert_eq!(
            (metrics.f1, metrics.recall, metrics.accuracy),
            (0.0, 0.0, 0.5)
        );
        assert_eq!(pair_metric("auroc", &[1, 1], &[0.9, 0.1], 0.5), None);
    }

    #[test]
    fn thresholds_that_overflow_leave_the_curves_undefined_as_in_matheel() {
        for scores in [[1.7e308, 1.6e308], [-1.6e308, -1.7e308]] {
            assert_eq!(pair_metric("auroc", &[1, 0], &scores, 0.0), None);
        }
        for (scores, value) in [([1.7e308, 1.7e308], 0.5), ([1e308, -0.5e308], 1.0)] {
            let metrics = PairMetrics::compute(&[1, 0], &scores, 0.0).unwrap();
            assert_eq!(
                (metrics.auroc, metrics.average_precision),
                (Some(value), Some(value))
            );
        }
        let metrics = PairMetrics::compute(&[1, 0], &[1.7e308, -1.7e308], 0.0).unwrap();
        assert_eq!((metrics.auroc, metrics.average_precision), (None, None));
        assert_eq!(metrics.f1, 1.0);
    }

    #[test]
    fn nothing_and_unequal_lengths_have_no_metrics() {
        assert_eq!(PairMetrics::compute(&[], &[], 0.5), None);
        assert_eq!(PairMetrics::compute(&[1], &[0.1, 0.2], 0.5), None);
    }
}
