//! Edit distances that are not bit-parallel, and the bounds of the weighted one.

use super::strip_affix;
use crate::text::Symbol;

/// How a Levenshtein distance with weights is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Costs {
    /// All costs are this: the plain distance times it.
    Uniform(u64),
    /// A substitution is never cheaper than a deletion and an insertion: the longest common subsequence decides.
    Indel {
        /// Cost of an insertion.
        insert: u64,
        /// Cost of a deletion.
        delete: u64,
    },
    /// Anything else: the whole matrix.
    General {
        /// Cost of an insertion.
        insert: u64,
        /// Cost of a deletion.
        delete: u64,
        /// Cost of a substitution.
        substitute: u64,
    },
}

impl Costs {
    /// Sorts weights (insertion, deletion, substitution) by how their distance is found.
    pub fn new([insert, delete, substitute]: [u64; 3]) -> Self {
        if insert == delete && delete == substitute {
            Self::Uniform(insert)
        } else if substitute >= insert + delete {
            Self::Indel { insert, delete }
        } else {
            Self::General {
                insert,
                delete,
                substitute,
            }
        }
    }

    /// The largest distance two texts of these lengths can have.
    pub fn maximum(self, left: u64, right: u64) -> u64 {
        let (insert, delete, substitute) = match self {
            Self::Uniform(cost) => (cost, cost, cost),
            Self::Indel { insert, delete } => (insert, delete, insert + delete),
            Self::General {
                insert,
                delete,
                substitute,
            } => (insert, delete, substitute),
        };
        let replaced = if left >= right {
            right * substitute + (left - right) * delete
        } else {
            left * substitute + (right - left) * insert
        };
        replaced.min(left * delete + right * insert)
    }
}

/// The weighted distance from `left` to `right` by the whole matrix.
pub fn weighted(
    left: &[Symbol],
    right: &[Symbol],
    insert: u64,
    delete: u64,
    substitute: u64,
) -> u64 {
    let (mut left, mut right) = (left, right);
    strip_affix(&mut left, &mut right);
    let mut column: Vec<u64> = (0..=left.len() as u64).map(|i| i * delete).collect();
    for &target in right {
        let mut diagonal = column[0];
        column[0] += insert;
        for (at, &source) in left.iter().enumerate() {
            let replaced = diagonal + if source == target { 0 } else { substitute };
            diagonal = column[at + 1];
            column[at + 1] = replaced.min(column[at] + delete).min(diagonal + insert);
        }
    }
    column[left.len()]
}

/// Positions that differ, where the shorter text is thought to go on with something else.
pub fn hamming(left: &[Symbol], right: &[Symbol]) -> usize {
    let differing = left.iter().zip(right).filter(|(a, b)| a != b).count();
    differing + left.len().abs_diff(right.len())
}

/// Memory of the Damerau-Levenshtein distance: the last row each symbol was seen in.
#[derive(Debug)]
pub struct Damerau {
    last_row: Vec<u32>,
}

impl Damerau {
    /// For symbols below `alphabet`.
    pub fn new(alphabet: usize) -> Self {
        Self {
            last_row: vec![0; alphabet],
        }
    }

    /// The unrestricted Damerau-Levenshtein distance: swapped neighbours may be edited again. Zhao and Sahinalp's
    /// form of the recurrence, in linear memory: besides two rows it keeps, for each column, the cell from which a
    /// swap that ends there would start.
    pub fn distance(&mut self, mut left: &[Symbol], mut right: &[Symbol]) -> usize {
        strip_affix(&mut left, &mut right);
        // Cells of a row are at their column plus 1; cell 0 is the border left of column 0. A sum of two borders
        // must not wrap.
        let border = (left.len().max(right.len()) + 1) as u32;
        let width = right.len() + 2;
        let mut from = vec![border; width];
        let mut above = vec![border; width];
        let mut row: Vec<u32> = std::iter::once(border)
            .chain(0..=right.len() as u32)
            .collect();
        for (i, &source) in (1_u32..).zip(left) {
            std::mem::swap(&mut row, &mut above);
            let mut last_match = 0_u32;
            let mut two_above = row[1];
            row[1] = i;
            let mut swap_start = border;
            for (j, &target) in (1_u32..).zip(right) {
                let at = j as usize + 1;
                let mut best = (above[at - 1] + u32::from(source != target))
                    .min(row[at - 1] + 1)
                    .min(above[at] + 1);
                if source == target {
                    last_match = j;
                    from[at] = above[at - 2];
                    swap_start = two_above;
                } else {
                    let last_row = self.last_row[target as usize];
                    if last_match + 1 == j && last_match > 0 {
                        best = best.min(from[at] + (i - last_row));
                    } else if last_row + 1 == i && last_row > 0 {
                        best = best.min(swap_start + (j - last_match));
                    }
                }
                two_above = row[at];
                row[at] = best;
            }
            self.last_row[source as usize] = i;
        }
        for &symbol in left {
            self.last_row[symbol as usize] = 0;
        }
        row[right.len() + 1] as usize
    }
}
