//! Sums in the order numpy adds, so that means over many datasets agree to the last bit.

/// Below this many values numpy adds one by one.
const LANES: usize = 8;
/// Above this many values numpy halves the range first.
const BLOCK: usize = 128;

/// The sum of `values` in numpy's pairwise order.
pub(crate) fn pairwise_sum(values: &[f64]) -> f64 {
    let count = values.len();
    if count < LANES {
        return values.iter().fold(0.0, |sum, value| sum + value);
    }
    if count > BLOCK {
        let half = count / 2;
        let half = half - half % LANES;
        return pairwise_sum(&values[..half]) + pairwise_sum(&values[half..]);
    }
    let mut lanes = [0.0; LANES];
    lanes.copy_from_slice(&values[..LANES]);
    let whole = count - count % LANES;
    for chunk in values[LANES..whole].chunks_exact(LANES) {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    let sum = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3]))
        + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
    values[whole..].iter().fold(sum, |sum, value| sum + value)
}

/// The mean in numpy's order of addition; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| pairwise_sum(values) / values.len() as f64)
}

/// The middle value, or the mean of the two middle ones; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_sum_is_a_plain_loop_and_a_long_one_has_eight_lanes() {
        assert_eq!(
            pairwise_sum(&[0.1; 7]),
            0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1
        );
        // numpy.sum([0.1] * 10), where a plain loop gives 0.9999999999999999.
        assert_eq!(pairwise_sum(&[0.1; 10]), 1.0);
        // numpy.sum(1 / numpy.arange(1, 301)): blocks of 144 and 156.
        let harmonic: Vec<f64> = (1..=300).map(|n| 1.0 / f64::from(n)).collect();
        assert_eq!(pairwise_sum(&harmonic), 6.282_663_880_299_504);
    }

    #[test]
    fn a_median_of_an_even_count_lies_between_the_middle_two() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[0.5, 1.0]), Some(0.75));
    }
}
