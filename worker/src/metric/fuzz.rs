//! The `fuzz` scorers of RapidFuzz, 0 to 100, without its preprocessing.
//!
//! Words are what white space separates, in code point order; equal words have equal numbers and the numbers have
//! their order.

use super::partial::partial_ratio;
use super::{Pairwise, indel};
use crate::text::Symbol;
use std::cmp::Ordering;

/// The words of a dataset, by rank in code point order.
#[derive(Debug, Default)]
pub struct Vocabulary {
    /// The symbols of each word.
    pub words: Vec<Vec<Symbol>>,
    /// The symbol of the space.
    pub space: Symbol,
}

impl Vocabulary {
    /// The words with single spaces between.
    pub fn join(&self, ranks: &[u32]) -> Vec<Symbol> {
        let mut out = Vec::new();
        for (at, &rank) in ranks.iter().enumerate() {
            if at > 0 {
                out.push(self.space);
            }
            out.extend_from_slice(&self.words[rank as usize]);
        }
        out
    }

    /// Length of the words with single spaces between.
    fn joined_length(&self, ranks: &[u32]) -> usize {
        let letters: usize = ranks
            .iter()
            .map(|&rank| self.words[rank as usize].len())
            .sum();
        letters + ranks.len().saturating_sub(1)
    }
}

/// A text as RapidFuzz sees it.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    /// The characters.
    pub symbols: &'a [Symbol],
    /// The ranks of its words, sorted, repetitions kept.
    pub words: &'a [u32],
    /// The sorted words joined by spaces.
    pub sorted: &'a [Symbol],
}

/// Words of both texts, of the left one only, and of the right one only; each once.
struct Decomposition {
    both: Vec<u32>,
    left: Vec<u32>,
    right: Vec<u32>,
}

impl Decomposition {
    fn new(left: &[u32], right: &[u32]) -> Self {
        let mut parts = Self {
            both: Vec::new(),
            left: Vec::new(),
            right: Vec::new(),
        };
        let unique = |words: &[u32]| {
            let mut words = words.to_vec();
            words.dedup();
            words
        };
        let (left, right) = (unique(left), unique(right));
        let (mut i, mut j) = (0, 0);
        while i < left.len() && j < right.len() {
            match left[i].cmp(&right[j]) {
                Ordering::Less => {
                    parts.left.push(left[i]);
                    i += 1;
                }
                Ordering::Greater => {
                    parts.right.push(right[j]);
                    j += 1;
                }
                Ordering::Equal => {
                    parts.both.push(left[i]);
                    i += 1;
                    j += 1;
                }
            }
        }
        parts.left.extend_from_slice(&left[i..]);
        parts.right.extend_from_slice(&right[j..]);
        parts
    }

    /// One text's words are all in the other.
    fn contained(&self) -> bool {
        !self.both.is_empty() && (self.left.is_empty() || self.right.is_empty())
    }
}

/// `100 - 100 * distance / sum`, in that order.
fn percent(distance: usize, sum: usize) -> f64 {
    if sum == 0 {
        return 100.0;
    }
    100.0 - 100.0 * distance as f64 / sum as f64
}

/// `score` if it reaches the cutoff, else 0.
fn reaching(score: f64, cutoff: f64) -> f64 {
    if score >= cutoff { score } else { 0.0 }
}

/// The `fuzz` scorers over one dataset.
#[derive(Debug)]
pub struct Fuzz<'a> {
    /// Where the words come from.
    pub vocabulary: &'a Vocabulary,
    /// Memory.
    pub work: &'a mut Pairwise,
}

impl Fuzz<'_> {
    /// `fuzz.ratio`
    pub fn ratio(&mut self, left: &[Symbol], right: &[Symbol]) -> f64 {
        let common = self.work.lcs(left, right);
        indel(left.len(), right.len(), common) * 100.0
    }

    /// `fuzz.partial_ratio`
    pub fn partial_ratio(&mut self, left: &[Symbol], right: &[Symbol]) -> f64 {
        partial_ratio(self.work, left, right)
    }

    /// `fuzz.token_set_ratio`
    pub fn token_set_ratio(&mut self, left: Text<'_>, right: Text<'_>) -> f64 {
        if left.words.is_empty() || right.words.is_empty() {
            return 0.0;
        }
        let parts = Decomposition::new(left.words, right.words);
        if parts.contained() {
            return 100.0;
        }
        self.set_ratio(&parts, 0.0)
    }

    /// The best of the three comparisons of what both have, with and without what one has.
    fn set_ratio(&mut self, parts: &Decomposition, cutoff: f64) -> f64 {
        let left = self.vocabulary.join(&parts.left);
        let right = self.vocabulary.join(&parts.right);
        let both = self.vocabulary.joined_length(&parts.both);
        let glue = usize::from(both > 0);
        let with_left = both + glue + left.len();
        let with_right = both + glue + right.len();
        let distance = left.len() + right.len() - 2 * self.work.lcs(&left, &right);
        let best = reaching(percent(distance, with_left + with_right), cutoff);
        if both == 0 {
            return best;
        }
        let left_ratio = percent(glue + left.len(), both + with_left);
        let right_ratio = percent(glue + right.len(), both + with_right);
        best.max(reaching(left_ratio, cutoff))
            .max(reaching(right_ratio, cutoff))
    }

    /// `fuzz.token_ratio` with a score cutoff.
    pub fn token_ratio(&mut self, left: Text<'_>, right: Text<'_>, cutoff: f64) -> f64 {
        if cutoff > 100.0 {
            return 0.0;
        }
        let parts = Decomposition::new(left.words, right.words);
        if parts.contained() {
            return 100.0;
        }
        let sorted = reaching(self.ratio(left.sorted, right.sorted), cutoff);
        sorted.max(self.set_ratio(&parts, cutoff))
    }

    /// `fuzz.partial_token_set_ratio`
    pub fn partial_token_set_ratio(&mut self, left: Text<'_>, right: Text<'_>) -> f64 {
        if left.words.is_empty() || right.words.is_empty() {
            return 0.0;
        }
        let parts = Decomposition::new(left.words, right.words);
        if !parts.both.is_empty() {
            return 100.0;
        }
        let (left, right) = (
            self.vocabulary.join(&parts.left),
            self.vocabulary.join(&parts.right),
        );
        self.partial_ratio(&left, &right)
    }

    /// `fuzz.partial_token_ratio` with a score cutoff.
    pub fn partial_token_ratio(&mut self, left: Text<'_>, right: Text<'_>, cutoff: f64) -> f64 {
        if cutoff > 100.0 {
            return 0.0;
        }
        let parts = Decomposition::new(left.words, right.words);
        if !parts.both.is_empty() {
            return 100.0;
        }
        let best = reaching(self.partial_ratio(left.sorted, right.sorted), cutoff);
        if left.words.len() == parts.left.len() && right.words.len() == parts.right.len() {
            return best;
        }
        let (left, right) = (
            self.vocabulary.join(&parts.left),
            self.vocabulary.join(&parts.right),
        );
        best.max(reaching(self.partial_ratio(&left, &right), cutoff))
    }

    /// `fuzz.WRatio`: the cutoffs it hands down are kept, since they decide in a last bit which score wins.
    pub fn w_ratio(&mut self, left: Text<'_>, right: Text<'_>) -> f64 {
        const WORD_SCALE: f64 = 0.95;
        let (shorter, longer) = match (left.symbols.len(), right.symbols.len()) {
            (0, _) | (_, 0) => return 0.0,
            (a, b) => (a.min(b), a.max(b)),
        };
        let length_ratio = longer as f64 / shorter as f64;
        let mut best = self.ratio(left.symbols, right.symbols);
        if length_ratio < 1.5 {
            let words = self.token_ratio(left, right, best / WORD_SCALE);
            return best.max(words * WORD_SCALE);
        }
        let part_scale = if length_ratio <= 8.0 { 0.9 } else { 0.6 };
        let cutoff = best / part_scale;
        if cutoff <= 100.0 {
            let part = reaching(self.partial_ratio(left.symbols, right.symbols), cutoff);
            best = best.max(part * part_scale);
        }
        let words = self.partial_token_ratio(left, right, best / WORD_SCALE);
        best.max(words * WORD_SCALE * part_scale)
    }
}
