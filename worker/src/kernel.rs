//! Bit-parallel distances: a pattern lies in the bits of words, a text runs over it character by character.
//!
//! [`lcs`] is the recurrence of Hyyrö (2004), [`levenshtein`] and [`osa`] those of Hyyrö (2003), which carry horizontal
//! differences from block to block, so no addition carries between words. Patterns of different lengths lie side by
//! side; bits above a pattern's end never come down, so they are simply not counted.

#![allow(
    clippy::inline_always,
    reason = "kernels must become part of functions compiled for an instruction set"
)]

use crate::simd::{LANES, Lanes, Word};
use crate::text::Symbol;

/// For each symbol of some patterns, where it occurs: one row of cells a symbol, one cell for 64 positions.
#[derive(Debug)]
pub struct Table<C> {
    blocks: usize,
    cells: Vec<C>,
    /// The row of each symbol; 0 is the row without a bit.
    row_of: Vec<u32>,
    used: Vec<Symbol>,
}

impl<C: Copy + Default> Table<C> {
    /// A table for symbols below `alphabet`.
    pub fn new(alphabet: usize) -> Self {
        Self {
            blocks: 0,
            cells: Vec::new(),
            row_of: vec![0; alphabet],
            used: Vec::new(),
        }
    }

    /// Empties the table and makes rows of cells for patterns of at most `length` symbols.
    fn reset(&mut self, length: usize) {
        for symbol in self.used.drain(..) {
            self.row_of[symbol as usize] = 0;
        }
        self.blocks = length.div_ceil(64);
        self.cells.clear();
        self.cells.resize(self.blocks, C::default());
    }

    /// The start of a symbol's row, which is made if it has none.
    fn row_start(&mut self, symbol: Symbol) -> usize {
        let slot = &mut self.row_of[symbol as usize];
        if *slot == 0 {
            self.used.push(symbol);
            *slot = self.used.len() as u32;
            let end = self.cells.len() + self.blocks;
            self.cells.resize(end, C::default());
        }
        *slot as usize * self.blocks
    }
}

impl<C> Table<C> {
    #[inline(always)]
    fn row(&self, symbol: Symbol) -> &[C] {
        let start = self.row_of[symbol as usize] as usize * self.blocks;
        &self.cells[start..start + self.blocks]
    }
}

impl Table<u64> {
    /// Loads one pattern.
    pub fn load(&mut self, pattern: &[Symbol]) {
        self.reset(pattern.len());
        for (at, &symbol) in pattern.iter().enumerate() {
            let start = self.row_start(symbol);
            self.cells[start + at / 64] |= 1 << (at % 64);
        }
    }

    /// The positions of a symbol as bits, 64 a word.
    pub fn positions(&self, symbol: Symbol) -> &[u64] {
        self.row(symbol)
    }
}

/// The largest table for lanes, in bytes; longer texts from larger alphabets are scored one by one.
const LARGEST_TABLE: usize = 256 << 20;

impl Table<Lanes> {
    /// True when the table of these patterns is not larger than 256 MiB.
    pub fn has_room<'a>(&self, patterns: impl Iterator<Item = &'a Pattern>) -> bool {
        let (mut longest, mut entries) = (0, 0);
        for pattern in patterns {
            longest = longest.max(pattern.length);
            entries += pattern.entries.len();
        }
        let rows = entries.min(self.row_of.len()) + 1;
        rows * longest.div_ceil(64) <= LARGEST_TABLE / size_of::<Lanes>()
    }

    /// Loads at most [`LANES`] patterns side by side; missing ones are empty.
    pub fn load<'a>(&mut self, patterns: impl Iterator<Item = &'a Pattern> + Clone) {
        let longest = patterns.clone().map(|pattern| pattern.length).max();
        self.reset(longest.unwrap_or(0));
        let mut rest: [&[Entry]; LANES] = [&[]; LANES];
        for (rest, pattern) in rest.iter_mut().zip(patterns) {
            *rest = &pattern.entries;
        }
        // Block by block, since all lanes of a cell lie in one cache line.
        for block in 0..self.blocks {
            for (lane, rest) in rest.iter_mut().enumerate() {
                let here = rest
                    .iter()
                    .take_while(|entry| entry.block as usize == block);
                let mut count = 0;
                for entry in here {
                    let start = self.row_start(entry.symbol);
                    self.cells[start + block].0[lane] = entry.word;
                    count += 1;
                }
                *rest = &rest[count..];
            }
        }
    }
}

/// Where a symbol occurs among 64 places.
#[derive(Debug, Clone, Copy)]
struct Entry {
    symbol: Symbol,
    block: u32,
    word: u64,
}

/// A text as a pattern, made once and loaded into many tables.
#[derive(Debug, Clone, Default)]
pub struct Pattern {
    length: usize,
    entries: Vec<Entry>,
}

impl Pattern {
    /// The pattern of a text. `words` is memory of one word for each symbol of the alphabet, all 0 before and after.
    pub fn new(text: &[Symbol], words: &mut [u64]) -> Self {
        let mut entries = Vec::new();
        for (block, chunk) in (0..).zip(text.chunks(64)) {
            let first = entries.len();
            for (bit, &symbol) in chunk.iter().enumerate() {
                let word = &mut words[symbol as usize];
                if *word == 0 {
                    entries.push(Entry {
                        symbol,
                        block,
                        word: 0,
                    });
                }
                *word |= 1 << bit;
            }
            for entry in &mut entries[first..] {
                entry.word = std::mem::take(&mut words[entry.symbol as usize]);
            }
        }
        entries.shrink_to_fit();
        Self {
            length: text.len(),
            entries,
        }
    }
}

/// The words a kernel works on; afterwards the answer is read from them.
#[derive(Debug, Default)]
pub struct State<C> {
    /// For [`lcs`] the row vector, whose zeros count; else the positive vertical differences.
    first: Vec<C>,
    /// The negative vertical differences.
    second: Vec<C>,
    /// For [`osa`] the diagonal matches of the last column.
    diagonal: Vec<C>,
    /// For [`osa`] the matches of the last symbol.
    matches: Vec<C>,
}

fn fill<C: Copy>(cells: &mut Vec<C>, count: usize, value: C) {
    cells.clear();
    cells.resize(count, value);
}

impl<C: Copy> State<C> {
    fn start(&mut self, blocks: usize, first: C, rest: C) {
        fill(&mut self.first, blocks, first);
        fill(&mut self.second, blocks, rest);
        fill(&mut self.diagonal, blocks, rest);
        fill(&mut self.matches, blocks, rest);
    }
}

impl State<u64> {
    /// Prepares for the pattern of a table.
    pub fn begin(&mut self, table: &Table<u64>) {
        self.start(table.blocks, u64::MAX, 0);
    }

    /// After [`lcs`]: the length of the longest common subsequence with the pattern, which has `length` symbols.
    pub fn common(&self, length: usize) -> usize {
        zeros(self.first.iter().copied(), length)
    }

    /// After [`levenshtein`] or [`osa`]: the distance between the pattern of `length` symbols and the text.
    pub fn distance(&self, length: usize, text_length: usize) -> usize {
        let words = self.first.iter().copied().zip(self.second.iter().copied());
        difference(words, length, text_length)
    }
}

impl State<Lanes> {
    /// Prepares for the patterns of a table.
    pub fn begin(&mut self, table: &Table<Lanes>) {
        self.start(table.blocks, Lanes([u64::MAX; LANES]), Lanes::default());
    }

    /// As [`State::<u64>::common`], for the pattern in a lane.
    pub fn common(&self, lane: usize, length: usize) -> usize {
        zeros(self.first.iter().map(|cell| cell.0[lane]), length)
    }

    /// As [`State::<u64>::distance`], for the pattern in a lane.
    pub fn distance(&self, lane: usize, length: usize, text_length: usize) -> usize {
        let words = self.first.iter().map(|cell| cell.0[lane]);
        let words = words.zip(self.second.iter().map(|cell| cell.0[lane]));
        difference(words, length, text_length)
    }
}

/// How many of the lowest `length` bits, 64 a word, belong to word `block`, as a mask.
fn mask(block: usize, length: usize) -> u64 {
    match length - (block * 64).min(length) {
        0 => 0,
        bits @ 1..64 => (1 << bits) - 1,
        _ => u64::MAX,
    }
}

fn zeros(words: impl Iterator<Item = u64>, length: usize) -> usize {
    words
        .enumerate()
        .map(|(block, word)| (!word & mask(block, length)).count_ones() as usize)
        .sum()
}

/// The last column begins at `text_length` in row 0 and changes by the vertical differences.
fn difference(words: impl Iterator<Item = (u64, u64)>, length: usize, text_length: usize) -> usize {
    let mut up = text_length;
    let mut down = 0;
    for (block, (plus, minus)) in words.enumerate() {
        let mask = mask(block, length);
        up += (plus & mask).count_ones() as usize;
        down += (minus & mask).count_ones() as usize;
    }
    up - down
}

/// Runs a text over patterns for their longest common subsequences; `state` was begun with the same table.
#[inline(always)]
pub fn lcs<W: Word>(table: &Table<W::Cell>, text: &[Symbol], state: &mut State<W::Cell>) {
    for &symbol in text {
        let mut carry = W::zero();
        for (cell, matches) in state.first.iter_mut().zip(table.row(symbol)) {
            let row = W::load(cell);
            let matches = W::load(matches);
            let both = row.and(matches);
            let sum = row.add(both).add(carry);
            // `both` is part of `row`, so the addition carries out where both are set or where `row` is and the sum
            // is not.
            carry = W::or_without(both, row, sum).top();
            W::or_without(sum, row, matches).store(cell);
        }
    }
}

/// Runs a text over patterns for their Levenshtein distances; `state` was begun with the same table.
#[inline(always)]
pub fn levenshtein<W: Word>(table: &Table<W::Cell>, text: &[Symbol], state: &mut State<W::Cell>) {
    for &symbol in text {
        // Row 0 grows by 1 in every column.
        let mut plus_below = top_bit::<W>();
        let mut minus_below = W::zero();
        let cells = state.first.iter_mut().zip(&mut state.second);
        for ((plus_cell, minus_cell), matches) in cells.zip(table.row(symbol)) {
            let plus = W::load(plus_cell);
            let minus = W::load(minus_cell);
            let matches = W::load(matches).or(minus_below.top());
            let diagonal = W::xor_or(matches.and(plus).add(plus), plus, matches.or(minus));
            let across_plus = W::or_nor(minus, diagonal, plus);
            let across_minus = diagonal.and(plus);
            let shifted_plus = across_plus.shift_in(plus_below);
            let shifted_minus = across_minus.shift_in(minus_below);
            plus_below = across_plus;
            minus_below = across_minus;
            W::or_nor(shifted_minus, diagonal, shifted_plus).store(plus_cell);
            diagonal.and(shifted_plus).store(minus_cell);
        }
    }
}

/// Runs a text over patterns for their optimal string alignment distances; `state` was begun with the same table.
#[inline(always)]
pub fn osa<W: Word>(table: &Table<W::Cell>, text: &[Symbol], state: &mut State<W::Cell>) {
    for &symbol in text {
        let mut plus_below = top_bit::<W>();
        let mut minus_below = W::zero();
        let mut swap_below = W::zero();
        let cells = state.first.iter_mut().zip(&mut state.second);
        let last = state.diagonal.iter_mut().zip(&mut state.matches);
        for (((plus_cell, minus_cell), (diagonal_cell, matches_cell)), matches) in
            cells.zip(last).zip(table.row(symbol))
        {
            let plus = W::load(plus_cell);
            let minus = W::load(minus_cell);
            let own = W::load(matches);
            let swap = W::load(diagonal_cell).without(own);
            let swapped = swap.shift_in(swap_below).and(W::load(matches_cell));
            swap_below = swap;
            let matches = own.or(minus_below.top());
            let diagonal =
                W::xor_or(matches.and(plus).add(plus), plus, matches.or(minus)).or(swapped);
            let across_plus = W::or_nor(minus, diagonal, plus);
            let across_minus = diagonal.and(plus);
            let shifted_plus = across_plus.shift_in(plus_below);
            let shifted_minus = across_minus.shift_in(minus_below);
            plus_below = across_plus;
            minus_below = across_minus;
            W::or_nor(shifted_minus, diagonal, shifted_plus).store(plus_cell);
            diagonal.and(shifted_plus).store(minus_cell);
            diagonal.store(diagonal_cell);
            own.store(matches_cell);
        }
    }
}

/// A word whose highest bit comes in as 1 when another is shifted.
#[inline(always)]
fn top_bit<W: Word>() -> W {
    // All bits; only the highest is looked at.
    W::or_nor(W::zero(), W::zero(), W::zero())
}
