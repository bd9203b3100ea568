//! The scorers of one pair of texts. Each gives the same double as RapidFuzz 3.14 or Matheel 0.7.1.

pub mod edit;
pub mod fuzz;
pub mod gst;
pub mod jaro;
pub mod partial;
pub mod static_hash;
pub mod winnowing;

use crate::kernel::{self, State, Table};
use crate::text::Symbol;

/// A distance as a similarity: `1 - distance / maximum`, and 1 when nothing can differ.
pub fn normalized(distance: usize, maximum: usize) -> f64 {
    if maximum == 0 {
        return 1.0;
    }
    1.0 - distance as f64 / maximum as f64
}

/// Indel similarity of two lengths with this much in common.
pub fn indel(left: usize, right: usize, common: usize) -> f64 {
    normalized(left + right - 2 * common, left + right)
}

/// How many symbols two texts have in common at the start.
pub fn common_prefix(left: &[Symbol], right: &[Symbol]) -> usize {
    left.iter().zip(right).take_while(|(a, b)| a == b).count()
}

/// How many symbols two texts have in common at the end.
pub fn common_suffix(left: &[Symbol], right: &[Symbol]) -> usize {
    let ends = left.iter().rev().zip(right.iter().rev());
    ends.take_while(|(a, b)| a == b).count()
}

/// Cuts common start and end off; gives back how long they are together.
fn strip_affix(left: &mut &[Symbol], right: &mut &[Symbol]) -> usize {
    let start = common_prefix(left, right);
    *left = &left[start..];
    *right = &right[start..];
    let end = common_suffix(left, right);
    *left = &left[..left.len() - end];
    *right = &right[..right.len() - end];
    start + end
}

/// Bit-parallel work on single pairs, with memory that is used again.
#[derive(Debug)]
pub struct Pairwise {
    table: Table<u64>,
    state: State<u64>,
}

impl Pairwise {
    /// For symbols below `alphabet`.
    pub fn new(alphabet: usize) -> Self {
        Self {
            table: Table::<u64>::new(alphabet),
            state: State::default(),
        }
    }

    /// Length of the longest common subsequence.
    pub fn lcs(&mut self, mut left: &[Symbol], mut right: &[Symbol]) -> usize {
        let affix = strip_affix(&mut left, &mut right);
        if left.is_empty() || right.is_empty() {
            return affix;
        }
        let (pattern, text) = shorter_first(left, right);
        self.table.load(pattern);
        affix + self.lcs_of_loaded(pattern.len(), text)
    }

    /// Loads a pattern for [`Self::lcs_of_loaded`].
    fn load(&mut self, pattern: &[Symbol]) {
        self.table.load(pattern);
    }

    /// Length of the longest common subsequence of the loaded pattern and a text.
    fn lcs_of_loaded(&mut self, pattern: usize, text: &[Symbol]) -> usize {
        self.state.begin(&self.table);
        kernel::lcs::<u64>(&self.table, text, &mut self.state);
        self.state.common(pattern)
    }

    /// Levenshtein distance with every cost 1.
    pub fn levenshtein(&mut self, mut left: &[Symbol], mut right: &[Symbol]) -> usize {
        strip_affix(&mut left, &mut right);
        let (pattern, text) = shorter_first(left, right);
        self.table.load(pattern);
        self.state.begin(&self.table);
        kernel::levenshtein::<u64>(&self.table, text, &mut self.state);
        self.state.distance(pattern.len(), text.len())
    }

    /// Optimal string alignment distance.
    pub fn osa(&mut self, mut left: &[Symbol], mut right: &[Symbol]) -> usize {
        strip_affix(&mut left, &mut right);
        let (pattern, text) = shorter_first(left, right);
        self.table.load(pattern);
        self.state.begin(&self.table);
        kernel::osa::<u64>(&self.table, text, &mut self.state);
        self.state.distance(pattern.len(), text.len())
    }
}

fn shorter_first<'a>(left: &'a [Symbol], right: &'a [Symbol]) -> (&'a [Symbol], &'a [Symbol]) {
    if left.len() <= right.len() {
        (left, right)
    } else {
        (right, left)
    }
}
