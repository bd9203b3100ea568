//! The bit-parallel kernels and distances against plain recurrences and strsim, on every instruction set.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test panics when something is amiss and says what it skipped"
)]

use proctor_wire::builtin::Feature;
use proctor_worker::Scorer;
use proctor_worker::corpus::Corpus;
use proctor_worker::metric::edit::{Costs, Damerau, weighted};
use proctor_worker::metric::{Pairwise, normalized};
use proctor_worker::plan;
use proctor_worker::scorer::Tile;
use proctor_worker::simd::{self, LANES, Level};
use proctor_worker::text::{Alphabet, Symbol};
use proptest::prelude::*;
use serde_json::json;
use std::collections::HashMap;

/// Texts around the borders of words of 64 bits, from few characters so that much matches, and any Unicode.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ab]{0,70}",
        4 => "[a-d]{55,75}",
        2 => "[a-f]{120,200}",
        1 => "[a\\u{e9}\\u{4e00}\\u{1f600}]{0,80}",
        1 => "\\PC{0,40}",
    ]
}

/// Length of the longest common subsequence by the whole matrix.
fn plain_lcs(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row = vec![0; right.len() + 1];
    for a in left.chars() {
        let mut diagonal = 0;
        for (at, &b) in right.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if a == b {
                diagonal + 1
            } else {
                above.max(row[at])
            };
            diagonal = above;
        }
    }
    row[right.len()]
}

/// The unrestricted Damerau-Levenshtein distance by Lowrance and Wagner's recurrence, the whole matrix kept.
fn plain_damerau(left: &[char], right: &[char]) -> usize {
    let border = left.len() + right.len();
    let mut matrix = vec![vec![border; right.len() + 2]; left.len() + 2];
    for (i, row) in matrix.iter_mut().enumerate().skip(1) {
        row[1] = i - 1;
    }
    for j in 0..=right.len() {
        matrix[1][j + 1] = j;
    }
    let mut last_row: HashMap<char, usize> = HashMap::new();
    for i in 1..=left.len() {
        let mut last_match = 0;
        for j in 1..=right.len() {
            let (k, l) = (
                last_row.get(&right[j - 1]).copied().unwrap_or(0),
                last_match,
            );
            let same = left[i - 1] == right[j - 1];
            if same {
                last_match = j;
            }
            matrix[i + 1][j + 1] = (matrix[i][j] + usize::from(!same))
                .min(matrix[i + 1][j] + 1)
                .min(matrix[i][j + 1] + 1)
                .min(matrix[k][l] + (i - k - 1) + 1 + (j - l - 1));
        }
        last_row.insert(left[i - 1], i);
    }
    matrix[left.len() + 1][right.len() + 1]
}

/// Weighted Levenshtein distance by the whole matrix.
fn plain_weighted(
    left: &[Symbol],
    right: &[Symbol],
    [insert, delete, substitute]: [u64; 3],
) -> u64 {
    let mut matrix = vec![vec![0; right.len() + 1]; left.len() + 1];
    for i in 0..=left.len() {
        for j in 0..=right.len() {
            matrix[i][j] = match (i, j) {
                (0, 0) => 0,
                (0, j) => matrix[0][j - 1] + insert,
                (i, 0) => matrix[i - 1][0] + delete,
                (i, j) => {
                    let same = left[i - 1] == right[j - 1];
                    (matrix[i - 1][j - 1] + if same { 0 } else { substitute })
                        .min(matrix[i][j - 1] + insert)
                        .min(matrix[i - 1][j] + delete)
                }
            };
        }
    }
    matrix[left.len()][right.len()]
}

/// Both texts as symbols, and the size of their alphabet.
fn symbols(left: &str, right: &str) -> (Vec<Symbol>, Vec<Symbol>, usize) {
    let mut alphabet = Alphabet::default();
    let left = alphabet.symbols(left.chars());
    let right = alphabet.symbols(right.chars());
    (left, right, alphabet.len())
}

fn longest(left: &str, right: &str) -> usize {
    left.chars().count().max(right.chars().count())
}

/// What a feature must give for a pair.
fn expected(feature: Feature, left: &str, right: &str) -> f64 {
    match feature {
        Feature::Levenshtein => normalized(strsim::levenshtein(left, right), longest(left, right)),
        Feature::Osa => normalized(strsim::osa_distance(left, right), longest(left, right)),
        Feature::Lcs => {
            let longest = longest(left, right);
            normalized(longest - plain_lcs(left, right), longest)
        }
        _ => unreachable!("only bit-parallel features"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn lanes_of_every_level_give_the_plain_distances(
        lanes in prop::collection::vec(text(), 1..=LANES),
        texts in prop::collection::vec(text(), 1..3),
        right_lanes in any::<u8>(),
    ) {
        let all: Vec<String> = lanes.iter().chain(&texts).cloned().collect();
        let tile = Tile {
            lanes: (0..lanes.len() as u32).collect(),
            texts: (lanes.len() as u32..all.len() as u32).collect(),
            right_lanes,
        };
        for feature in [Feature::Levenshtein, Feature::Osa, Feature::Lcs] {
            let configuration = json!({"similarity_options": {"feature_weights": {feature.name(): 1}}});
            for level in Level::available() {
                let scorer = Scorer::from_configuration(&configuration).unwrap().with_level(level);
                let corpus = Corpus::prepare(&all, scorer.settings(), None, 1);
                let scores = scorer.score(&corpus, &mut scorer.memory(&corpus), &tile);
                let mut scores = scores.into_iter();
                for text in &texts {
                    for lane in &lanes {
                        // Preprocessing strips, and so do we.
                        let trimmed = |text: &str| {
                            proctor_worker::text::preprocess(text, scorer.settings().preprocess, None)
                        };
                        let expected = expected(feature, &trimmed(text), &trimmed(lane));
                        prop_assert_eq!(scores.next(), Some(expected), "{:?} {:?}", feature, level);
                    }
                }
            }
        }
    }

    #[test]
    fn one_pair_gives_the_plain_distances(left in text(), right in text()) {
        let (a, b, alphabet) = symbols(&left, &right);
        let mut work = Pairwise::new(alphabet);
        prop_assert_eq!(work.lcs(&a, &b), plain_lcs(&left, &right));
        prop_assert_eq!(work.levenshtein(&a, &b), strsim::levenshtein(&left, &right));
        prop_assert_eq!(work.osa(&a, &b), strsim::osa_distance(&left, &right));
    }

    #[test]
    fn damerau_is_unrestricted(left in "[a-d]{0,30}", right in "[a-d]{0,30}") {
        let (a, b, alphabet) = symbols(&left, &right);
        let mut damerau = Damerau::new(alphabet);
        let chars = |text: &str| text.chars().collect::<Vec<char>>();
        let expected = plain_damerau(&chars(&left), &chars(&right));
        prop_assert_eq!(damerau.distance(&a, &b), expected);
        // What it kept from the first pair does not matter.
        prop_assert_eq!(damerau.distance(&b, &a), expected);
    }

    #[test]
    fn weights_give_the_weighted_distance_within_its_maximum(
        left in "[a-c]{0,40}",
        right in "[a-c]{0,40}",
        weights in prop::array::uniform3(1_u64..6),
    ) {
        let (a, b, alphabet) = symbols(&left, &right);
        let expected = plain_weighted(&a, &b, weights);
        let costs = Costs::new(weights);
        let found = match costs {
            Costs::Uniform(cost) => Pairwise::new(alphabet).levenshtein(&a, &b) as u64 * cost,
            Costs::Indel { insert, delete } => {
                let common = Pairwise::new(alphabet).lcs(&a, &b);
                (a.len() - common) as u64 * delete + (b.len() - common) as u64 * insert
            }
            Costs::General { insert, delete, substitute } => weighted(&a, &b, insert, delete, substitute),
        };
        prop_assert_eq!(found, expected);
        prop_assert!(found <= costs.maximum(a.len() as u64, b.len() as u64));
    }

    #[test]
    fn each_pair_is_planned_once_with_its_sides(
        pairs in prop::collection::vec((0_u32..12, 0_u32..12), 0..200),
    ) {
        let texts = vec![String::new(); 12];
        let scorer = Scorer::from_configuration(&json!({"similarity_options": {"feature_weights": {"lcs": 1}}})).unwrap();
        let corpus = Corpus::prepare(&texts, scorer.settings(), None, 1);
        let (left, right): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
        let mut seen = vec![0; pairs.len()];
        for task in plan::pairs(&corpus, &left, &right) {
            prop_assert!(task.tile.lanes.len() <= LANES);
            prop_assert_eq!(task.tile.len(), task.places.len());
            for (lane, (&number, &place)) in task.tile.lanes.iter().zip(&task.places).enumerate() {
                let text = task.tile.texts[0];
                let is_right = task.tile.right_lanes >> lane & 1 == 1;
                let pair = if is_right { (text, number) } else { (number, text) };
                prop_assert_eq!(pair, pairs[place as usize]);
                seen[place as usize] += 1;
            }
        }
        prop_assert_eq!(seen, vec![1; pairs.len()]);
    }

    #[test]
    fn the_inner_product_is_close_and_repeats(
        values in prop::collection::vec((-1.0..1.0_f64, -1.0..1.0_f64), 0..300),
    ) {
        let (left, right): (Vec<f64>, Vec<f64>) = values.into_iter().unzip();
        let plain: f64 = left.iter().zip(&right).map(|(a, b)| a * b).sum();
        let dot = simd::dot(&left, &right);
        prop_assert!((dot - plain).abs() < 1e-12);
        prop_assert_eq!(dot.to_bits(), simd::dot(&right, &left).to_bits());
    }
}

#[test]
fn rows_are_planned_query_by_query_in_document_order() {
    let texts: Vec<String> = (0..30).map(|n| "x".repeat(n * 7 % 11)).collect();
    let scorer =
        Scorer::from_configuration(&json!({"similarity_options": {"feature_weights": {"lcs": 1}}}))
            .unwrap();
    let corpus = Corpus::prepare(&texts, scorer.settings(), None, 1);
    let documents = plan::by_length(&corpus, 3, 30);
    let mut seen = vec![0; 2 * 27];
    for task in plan::rows(&[1, 2], 3, &documents) {
        let mut places = task.places.iter();
        for &text in &task.tile.texts {
            for &lane in &task.tile.lanes {
                let place = *places.next().unwrap();
                assert_eq!(place, (text - 1) * 27 + (lane - 3));
                seen[place as usize] += 1;
            }
        }
    }
    assert_eq!(seen, [1; 54]);
}
