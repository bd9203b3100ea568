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
    document.symbols.len().max(document.sorted.len())
}

/// Tiles for pairs in any order: each text takes the pairs it is in that no busier text has taken, and lays the other
/// texts of them side by side, equal lengths together.
pub fn pairs(corpus: &Corpus, left: &[u32], right: &[u32]) -> Vec<Task> {
    let texts = corpus.documents.len();
    let mut degree = vec![0_u32; texts];
    for &text in left.iter().chain(right) {
        degree[text as usize] += 1;
    }
    // For each pair the text that takes it: the one in more pairs, of equals the left one.
    let mut groups: Vec<Vec<u32>> = vec![Vec::new(); texts];
    for (pair, (&a, &b)) in (0..).zip(left.iter().zip(right)) {
        let owner = if degree[b as usize] > degree[a as usize] {
            b
        } else {
            a
        };
        groups[owner as usize].push(pair);
    }
    let mut tasks = Vec::new();
    for (owner, group) in (0_u32..).zip(groups) {
        let (mut as_left, mut as_right): (Vec<u32>, Vec<u32>) = group
            .into_iter()
            .partition(|&pair| left[pair as usize] == owner);
        as_left.sort_by_key(|&pair| length(corpus, right[pair as usize]));
        as_right.sort_by_key(|&pair| length(corpus, left[pair as usize]));
        for (side, others, lanes_right) in [(as_left, right, true), (as_right, left, false)] {
            for chunk in side.chunks(LANES) {
                tasks.push(Task {
                    tile: Tile {
                        lanes: chunk.iter().map(|&pair| others[pair as usize]).collect(),
                        texts: vec![owner],
                        lanes_right,
                    },
                    places: chunk.to_vec(),
                });
            }
        }
    }
    tasks
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
                    lanes_right: true,
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
