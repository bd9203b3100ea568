//! RapidFuzz's `partial_ratio`: the best place of the shorter text in the longer one.

use super::{Pairwise, normalized, shorter_first};
use crate::text::Symbol;

/// `fuzz.partial_ratio`: the best `fuzz.ratio` of the shorter text with any stretch of the longer one that has its
/// length or is a shorter start or end of it, 0 to 100. Between texts of one length both take both parts.
pub fn partial_ratio(work: &mut Pairwise, left: &[Symbol], right: &[Symbol]) -> f64 {
    let (short, long) = shorter_first(left, right);
    if short.is_empty() {
        return if long.is_empty() { 100.0 } else { 0.0 };
    }
    let mut best = best_place(work, short, long);
    if best < 100.0 && short.len() == long.len() {
        best = best.max(best_place(work, long, short));
    }
    best
}

fn best_place(work: &mut Pairwise, short: &[Symbol], long: &[Symbol]) -> f64 {
    let length = short.len();
    let reversed: Vec<Symbol> = short.iter().rev().copied().collect();
    work.load(&reversed);
    let ends = best_start(work, length, long.iter().rev().copied().take(length));
    work.load(short);
    let starts = best_start(work, length, long.iter().copied().take(length - 1));
    let best = starts.max(ends);
    match best_window(work, length, long, best) {
        Some(distance) => best.max(normalized(distance, 2 * length) * 100.0),
        None => best,
    }
}

/// The best ratio of the loaded pattern with any non-empty start of a text.
fn best_start(work: &mut Pairwise, pattern: usize, text: impl Iterator<Item = Symbol>) -> f64 {
    let mut best = 0.0_f64;
    work.state.begin(&work.table);
    for (at, symbol) in text.enumerate() {
        crate::kernel::lcs::<u64>(&work.table, &[symbol], &mut work.state);
        let common = work.state.common(pattern);
        let ratio = super::indel(pattern, at + 1, common) * 100.0;
        best = best.max(ratio);
    }
    best
}

/// The smallest Indel distance of the loaded pattern with a window of its length that is not the last one, if it is
/// better than `best`.
///
/// The distances of windows one step apart differ by at most 2, so between two known windows nothing can be better
/// than their mean less the steps between them; such stretches are left out.
fn best_window(work: &mut Pairwise, length: usize, long: &[Symbol], best: f64) -> Option<usize> {
    let windows = long.len() - length;
    if windows == 0 {
        return None;
    }
    // Anything below this may be better; the margin makes up for rounding.
    let bound = (1.0 - best / 100.0) * (2 * length) as f64;
    let mut bound = (bound + 1.0).ceil() as usize;
    let mut found = None;
    let mut measure = |work: &mut Pairwise, at: usize, bound: &mut usize| {
        let common = work.lcs_of_loaded(length, &long[at..at + length]);
        let distance = 2 * (length - common);
        if distance < *bound {
            *bound = distance;
            found = Some(distance);
        }
        distance
    };
    let first = measure(work, 0, &mut bound);
    let last = if windows > 1 {
        measure(work, windows - 1, &mut bound)
    } else {
        first
    };
    let mut open = vec![(0, first, windows - 1, last)];
    let mut next = Vec::new();
    while !open.is_empty() && bound > 0 {
        for (from, at_from, to, at_to) in open.drain(..) {
            let steps = to - from;
            if steps < 2 || at_from.midpoint(at_to) >= bound + steps {
                continue;
            }
            let middle = from + steps / 2;
            let at_middle = measure(work, middle, &mut bound);
            next.push((from, at_from, middle, at_middle));
            next.push((middle, at_middle, to, at_to));
        }
        std::mem::swap(&mut open, &mut next);
    }
    found
}
