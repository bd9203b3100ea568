//! Jaro and Jaro-Winkler.

use super::common_prefix;
use crate::text::Symbol;

const NONE: u32 = u32::MAX;

/// Jaro similarity with memory that is used again.
#[derive(Debug)]
pub struct Jaro {
    /// For each symbol the first position in the left text that can still be matched.
    head: Vec<u32>,
    /// For each position of the left text the next one with the same symbol.
    next: Vec<u32>,
    matched: Vec<bool>,
    partners: Vec<Symbol>,
}

impl Jaro {
    /// For symbols below `alphabet`.
    pub fn new(alphabet: usize) -> Self {
        Self {
            head: vec![NONE; alphabet],
            next: Vec::new(),
            matched: Vec::new(),
            partners: Vec::new(),
        }
    }

    /// `jaro_winkler(left, right, 0)` before the common start is looked at.
    fn similarity(&mut self, left: &[Symbol], right: &[Symbol]) -> f64 {
        if left.is_empty() && right.is_empty() {
            return 1.0;
        }
        let (common, swapped) = self.matches(left, right);
        if common == 0 {
            return 0.0;
        }
        let common = common as f64;
        let mut sum = common / left.len() as f64;
        sum += common / right.len() as f64;
        sum += (common - swapped as f64) / common;
        sum / 3.0
    }

    /// How many symbols match within the window, and how many pairs of them are out of order.
    ///
    /// Each symbol of the right text takes the first free equal symbol of the left one in its window. The window
    /// only moves on, so for each symbol the free positions are what is left of one list.
    fn matches(&mut self, left: &[Symbol], right: &[Symbol]) -> (usize, usize) {
        let reach = (left.len().max(right.len()) / 2).saturating_sub(1);
        self.next.clear();
        self.next.resize(left.len(), NONE);
        for (at, &symbol) in left.iter().enumerate().rev() {
            self.next[at] = self.head[symbol as usize];
            self.head[symbol as usize] = at as u32;
        }
        self.matched.clear();
        self.matched.resize(left.len(), false);
        self.partners.clear();
        for (at, &symbol) in right.iter().enumerate() {
            let head = &mut self.head[symbol as usize];
            while *head != NONE && (*head as usize) + reach < at {
                *head = self.next[*head as usize];
            }
            if *head != NONE && *head as usize <= at + reach {
                self.matched[*head as usize] = true;
                self.partners.push(symbol);
                *head = self.next[*head as usize];
            }
        }
        for &symbol in left {
            self.head[symbol as usize] = NONE;
        }
        let own = left
            .iter()
            .zip(&self.matched)
            .filter(|(_, matched)| **matched);
        let disordered = own
            .zip(&self.partners)
            .filter(|((own, _), partner)| own != partner)
            .count();
        (self.partners.len(), disordered / 2)
    }

    /// `Jaro.normalized_similarity` of RapidFuzz, which goes through the distance.
    pub fn jaro(&mut self, left: &[Symbol], right: &[Symbol]) -> f64 {
        1.0 - (1.0 - self.similarity(left, right))
    }

    /// `JaroWinkler.normalized_similarity` of RapidFuzz: above 0.7, up to four common symbols at the start lift it.
    pub fn jaro_winkler(&mut self, left: &[Symbol], right: &[Symbol], prefix_weight: f64) -> f64 {
        let mut similarity = self.similarity(left, right);
        if similarity > 0.7 {
            let prefix = common_prefix(left, right).min(4) as f64;
            similarity += prefix * prefix_weight * (1.0 - similarity);
            similarity = similarity.min(1.0);
        }
        1.0 - (1.0 - similarity)
    }
}
