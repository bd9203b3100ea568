//! Which pairs are scored together, so that vector lanes are full and share one text.

use crate::corpus::Corpus;
use crate::scorer::Tile;
use crate::simd::LANES;

/// A tile and where its scores go: score `i` of the tile to place `places[i]` of the block.
#[derive(Debug)]
pub struct Task {
    /// The pairs.
    pub tile: Tile,
    /// A place for each.
    pub places: Vec<u32>,
}

/// How long a text is for the features that look at characters.
fn length(corpus: &Corpus, number: u32) -> usize {
    let document = &corpus.documents[number as usize];
    document
        .raw
        .symbols
        .len()
        .max(document.sorted.symbols.len())
}

/// Tiles for pairs in any order.
///
/// Text after text, the busiest first, takes the pairs it is in and lays their other texts side by side, equal lengths
/// together. What does not fill the lanes is left to the other texts of those pairs, as long as their turn is still to
/// come.
pub fn pairs(corpus: &Corpus, left: &[u32], right: &[u32]) -> Vec<Task> {
    let of_text = Incidence::new(corpus.documents.len(), left, right);
    let mut order: Vec<u32> = (0..corpus.documents.len() as u32).collect();
    order.sort_by_key(|&text| std::cmp::Reverse(of_text.pairs(text).len()));
    let mut turn = vec![0; order.len()];
    for (at, &text) in (0_u32..).zip(&order) {
        turn[text as usize] = at;
    }
    let other = |pair: u32, text: u32| {
        let (a, b) = (left[pair as usize], right[pair as usize]);
        if a == text { b } else { a }
    };
    let mut taken = vec![false; left.len()];
    let mut tasks = Vec::new();
    for &text in &order {
        let is_later = |pair: u32| turn[other(pair, text) as usize] > turn[text as usize];
        let mut open: Vec<u32> = of_text.pairs(text).to_vec();
        open.retain(|&pair| !taken[pair as usize]);
        open.dedup();
        // Those that can wait come last, so that they are what is left over.
        open.sort_by_key(|&pair| (is_later(pair), length(corpus, other(pair, text))));
        let mut keep = open.len() - open.len() % LANES;
        while keep < open.len() && !is_later(open[keep]) {
            keep += 1;
        }
        open.truncate(keep);
        open.sort_by_key(|&pair| length(corpus, other(pair, text)));
        for chunk in open.chunks(LANES) {
            let right_lanes = chunk
                .iter()
                .enumerate()
                .filter(|&(_, &pair)| left[pair as usize] == text)
                .fold(0, |lanes, (lane, _)| lanes | 1 << lane);
            tasks.push(Task {
                tile: Tile {
                    lanes: chunk.iter().map(|&pair| other(pair, text)).collect(),
                    texts: vec![text],
                    right_lanes,
                },
                places: chunk.to_vec(),
            });
        }
        for pair in open {
            taken[pair as usize] = true;
        }
    }
    tasks
}

/// The pairs each text is in.
struct Incidence {
    starts: Vec<u32>,
    pairs: Vec<u32>,
}

impl Incidence {
    fn new(texts: usize, left: &[u32], right: &[u32]) -> Self {
        let mut starts = vec![0; texts + 1];
        for &text in left.iter().chain(right) {
            starts[text as usize + 1] += 1;
        }
        for text in 0..texts {
            starts[text + 1] += starts[text];
        }
        let mut next = starts.clone();
        let mut pairs = vec![0; left.len() + right.len()];
        for (pair, (&a, &b)) in (0..).zip(left.iter().zip(right)) {
            for text in [a, b] {
                let slot = &mut next[text as usize];
                pairs[*slot as usize] = pair;
                *slot += 1;
            }
        }
        Self { starts, pairs }
    }

    /// The pairs of a text in order; a pair of a text with itself comes twice.
    fn pairs(&self, text: u32) -> &[u32] {
        let text = text as usize;
        &self.pairs[self.starts[text] as usize..self.starts[text + 1] as usize]
    }
}

/// Tiles for some rows of the query x document matrix. `documents` are all documents, equal lengths together.
pub fn rows(queries: &[u32], first_document: u32, documents: &[u32]) -> Vec<Task> {
    let width = documents.len() as u32;
    documents
        .chunks(LANES)
        .map(|lanes| {
            let places = (0..queries.len() as u32)
                .flat_map(|row| {
                    lanes
                        .iter()
                        .map(move |lane| row * width + lane - first_document)
                })
                .collect();
            Task {
                tile: Tile {
                    lanes: lanes.to_vec(),
                    texts: queries.to_vec(),
                    right_lanes: u8::MAX,
                },
                places,
            }
        })
        .collect()
}

/// The documents `from..to`, equal lengths together.
pub fn by_length(corpus: &Corpus, from: u32, to: u32) -> Vec<u32> {
    let mut documents: Vec<u32> = (from..to).collect();
    documents.sort_by_key(|&document| length(corpus, document));
    documents
}
