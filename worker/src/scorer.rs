//! A method: its settings, and the score of a block of pairs.

use crate::corpus::{Characters, Corpus, Document};
use crate::kernel::{State, Table};
use crate::metric::edit::{Costs, Damerau, hamming, weighted};
use crate::metric::fuzz::Fuzz;
use crate::metric::jaro::Jaro;
use crate::metric::{
    Pairwise, common_prefix, common_suffix, gst, indel, normalized, partial, static_hash, winnowing,
};
use crate::simd::{self, LANES, Lanes, Level};
use crate::text::Symbol;
use proctor_wire::builtin::{Feature, Refusal, Settings};

/// A built-in scorer.
#[derive(Debug, Clone)]
pub struct Scorer {
    settings: Settings,
    costs: Costs,
    level: Level,
}

/// Pairs that are scored together: every text of `texts` with every one of `lanes`.
#[derive(Debug, Clone)]
pub struct Tile {
    /// At most [`LANES`] text numbers.
    pub lanes: Vec<u32>,
    /// Text numbers.
    pub texts: Vec<u32>,
    /// Bit `i` is set when lane `i` is the right text of its pairs, clear when it is the left one.
    pub right_lanes: u8,
}

impl Tile {
    /// How many pairs it has.
    pub fn len(&self) -> usize {
        self.lanes.len() * self.texts.len()
    }

    /// True when the lane is the right text of its pairs.
    fn is_right(&self, lane: usize) -> bool {
        self.right_lanes >> lane & 1 == 1
    }

    /// True without pairs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a thread that scores needs; no answer depends on what was in it.
#[derive(Debug)]
pub struct Memory {
    pairwise: Pairwise,
    jaro: Jaro,
    damerau: Damerau,
    table: Table<Lanes>,
    state: State<Lanes>,
    lane_vectors: Vec<(Vec<f64>, f64)>,
    text_vector: Vec<f64>,
    values: Vec<f64>,
}

impl Scorer {
    /// Reads the effective configuration of a method.
    ///
    /// # Errors
    /// [`Refusal`] when the configuration is unsound or needs more than is built in.
    pub fn from_configuration(configuration: &serde_json::Value) -> Result<Self, Refusal> {
        Settings::read(configuration).map(Self::new)
    }

    /// A scorer with these settings.
    pub fn new(settings: Settings) -> Self {
        Self {
            costs: Costs::new(settings.levenshtein_weights),
            level: Level::best(),
            settings,
        }
    }

    /// The same scorer with the kernels of another instruction set, which the processor must have.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// The settings it was made of.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Memory for one thread that scores texts of `corpus`.
    pub fn memory(&self, corpus: &Corpus) -> Memory {
        let dimension = self.settings.static_hash.map_or(0, |hash| hash.dimension);
        Memory {
            pairwise: Pairwise::new(corpus.alphabet),
            jaro: Jaro::new(corpus.alphabet),
            damerau: Damerau::new(corpus.alphabet),
            table: Table::<Lanes>::new(corpus.alphabet),
            state: State::default(),
            lane_vectors: vec![(vec![0.0; dimension], 0.0); LANES],
            text_vector: vec![0.0; dimension],
            values: Vec::new(),
        }
    }

    /// The scores of a tile, text by text, lane by lane.
    pub fn score(&self, corpus: &Corpus, memory: &mut Memory, tile: &Tile) -> Vec<f64> {
        let weights = &self.settings.weights;
        let mut scores = vec![0.0; tile.len()];
        let mut values = std::mem::take(&mut memory.values);
        values.resize(tile.len(), 0.0);
        if weights.semantic > 0.0 {
            self.semantic(corpus, memory, tile, &mut values);
            for (score, value) in scores.iter_mut().zip(&values) {
                *score += weights.semantic * value;
            }
        }
        if weights.lexical_total > 0.0 {
            let mut sums = vec![0.0; tile.len()];
            for &(feature, weight) in &weights.lexical {
                self.lexical(feature, corpus, memory, tile, &mut values);
                for (sum, value) in sums.iter_mut().zip(&values) {
                    *sum += weight * value;
                }
            }
            for (score, sum) in scores.iter_mut().zip(&sums) {
                *score += weights.lexical_total * sum;
            }
        }
        memory.values = values;
        scores
    }

    fn semantic(&self, corpus: &Corpus, memory: &mut Memory, tile: &Tile, values: &mut [f64]) {
        let Some(settings) = &self.settings.static_hash else {
            return;
        };
        let document = |number: u32| &corpus.documents[number as usize].vector;
        for (&lane, (dense, length)) in tile.lanes.iter().zip(&mut memory.lane_vectors) {
            document(lane).spread(dense);
            *length = static_hash::length(dense);
        }
        for (row, &text) in values.chunks_exact_mut(tile.lanes.len()).zip(&tile.texts) {
            document(text).spread(&mut memory.text_vector);
            let text = (
                memory.text_vector.as_slice(),
                static_hash::length(&memory.text_vector),
            );
            for (at, (value, (dense, length))) in
                row.iter_mut().zip(&memory.lane_vectors).enumerate()
            {
                let lane = (dense.as_slice(), *length);
                let (left, right) = if tile.is_right(at) {
                    (text, lane)
                } else {
                    (lane, text)
                };
                *value = static_hash::similarity(settings, left, right);
            }
        }
    }

    fn lexical(
        &self,
        feature: Feature,
        corpus: &Corpus,
        memory: &mut Memory,
        tile: &Tile,
        values: &mut [f64],
    ) {
        match feature {
            Feature::Levenshtein => self.levenshtein(corpus, memory, tile, values),
            Feature::Osa => {
                let distance = Kernel {
                    lanes: simd::osa,
                    pair: Pairwise::osa,
                    read: Answer::Distance,
                };
                self.kernel(&distance, raw, corpus, memory, tile, values, |a, b, d| {
                    normalized(d, a.max(b))
                });
            }
            Feature::Lcs => self.lcs(raw, corpus, memory, tile, values, |a, b, common| {
                let longest = a.max(b);
                normalized(longest - common, longest)
            }),
            Feature::Indel => self.lcs(raw, corpus, memory, tile, values, indel),
            Feature::Ratio => {
                self.lcs(raw, corpus, memory, tile, values, |a, b, common| {
                    indel(a, b, common) * 100.0 / 100.0
                });
            }
            Feature::QRatio => self.lcs(raw, corpus, memory, tile, values, |a, b, common| {
                if a == 0 || b == 0 {
                    return 0.0;
                }
                indel(a, b, common) * 100.0 / 100.0
            }),
            Feature::TokenSortRatio => {
                self.lcs(sorted, corpus, memory, tile, values, |a, b, common| {
                    indel(a, b, common) * 100.0 / 100.0
                });
            }
            other => {
                for_each_pair(corpus, tile, values, |left, right| {
                    self.pair(other, corpus, memory, left, right)
                });
            }
        }
    }

    fn levenshtein(&self, corpus: &Corpus, memory: &mut Memory, tile: &Tile, values: &mut [f64]) {
        let costs = self.costs;
        let normalized = |left: usize, right: usize, distance: u64| {
            let maximum = costs.maximum(left as u64, right as u64);
            normalized(distance as usize, maximum as usize)
        };
        match costs {
            Costs::Uniform(cost) => {
                let kernel = Kernel {
                    lanes: simd::levenshtein,
                    pair: Pairwise::levenshtein,
                    read: Answer::Distance,
                };
                self.kernel(&kernel, raw, corpus, memory, tile, values, |a, b, d| {
                    normalized(a, b, d as u64 * cost)
                });
            }
            Costs::Indel { insert, delete } => {
                self.lcs(raw, corpus, memory, tile, values, |a, b, common| {
                    let deleted = (a - common) as u64 * delete;
                    normalized(a, b, deleted + (b - common) as u64 * insert)
                });
            }
            Costs::General {
                insert,
                delete,
                substitute,
            } => for_each_pair(corpus, tile, values, |left, right| {
                let distance = weighted(
                    &left.raw.symbols,
                    &right.raw.symbols,
                    insert,
                    delete,
                    substitute,
                );
                normalized(left.raw.symbols.len(), right.raw.symbols.len(), distance)
            }),
        }
    }

    fn lcs(
        &self,
        view: View,
        corpus: &Corpus,
        memory: &mut Memory,
        tile: &Tile,
        values: &mut [f64],
        finish: impl Fn(usize, usize, usize) -> f64,
    ) {
        let kernel = Kernel {
            lanes: simd::lcs,
            pair: Pairwise::lcs,
            read: Answer::Common,
        };
        self.kernel(&kernel, view, corpus, memory, tile, values, finish);
    }

    /// Runs a bit-parallel kernel over a tile; `finish` makes a similarity of both lengths and the kernel's number.
    #[expect(
        clippy::too_many_arguments,
        reason = "one place that knows how tiles are walked"
    )]
    fn kernel(
        &self,
        kernel: &Kernel,
        view: View,
        corpus: &Corpus,
        memory: &mut Memory,
        tile: &Tile,
        values: &mut [f64],
        finish: impl Fn(usize, usize, usize) -> f64,
    ) {
        let characters = |number: u32| view(&corpus.documents[number as usize]);
        let symbols = |number: u32| characters(number).symbols.as_slice();
        let oriented = |at: usize, text: usize, lane: usize, number: usize| {
            if tile.is_right(at) {
                finish(text, lane, number)
            } else {
                finish(lane, text, number)
            }
        };
        let rows = values.chunks_exact_mut(tile.lanes.len()).zip(&tile.texts);
        let patterns = tile.lanes.iter().map(|&lane| &characters(lane).pattern);
        if tile.lanes.len() < self.fewest_lanes() || !memory.table.has_room(patterns.clone()) {
            for (row, &text) in rows {
                let text = symbols(text);
                for (at, (value, &lane)) in row.iter_mut().zip(&tile.lanes).enumerate() {
                    let lane = symbols(lane);
                    let number = (kernel.pair)(&mut memory.pairwise, text, lane);
                    *value = oriented(at, text.len(), lane.len(), number);
                }
            }
            return;
        }
        memory.table.load(patterns);
        for (row, &text) in rows {
            let text = symbols(text);
            memory.state.begin(&memory.table);
            (kernel.lanes)(self.level, &memory.table, text, &mut memory.state);
            for (at, (value, &lane)) in row.iter_mut().zip(&tile.lanes).enumerate() {
                let length = symbols(lane).len();
                let number = match kernel.read {
                    Answer::Common => memory.state.common(at, length),
                    Answer::Distance => memory.state.distance(at, length, text.len()),
                };
                *value = oriented(at, text.len(), length, number);
            }
        }
    }

    /// With fewer pairs than this side by side, one by one is faster.
    fn fewest_lanes(&self) -> usize {
        match self.level {
            Level::Plain => LANES + 1,
            Level::Avx2 => 4,
            Level::Avx512 => 3,
        }
    }

    fn pair(
        &self,
        feature: Feature,
        corpus: &Corpus,
        memory: &mut Memory,
        left: &Document,
        right: &Document,
    ) -> f64 {
        let (a, b) = (left.raw.symbols.as_slice(), right.raw.symbols.as_slice());
        let longest = a.len().max(b.len());
        let mut fuzz = Fuzz {
            vocabulary: &corpus.vocabulary,
            work: &mut memory.pairwise,
        };
        let (text, other) = (left.text(), right.text());
        match feature {
            Feature::JaroWinkler => {
                let weight = self.settings.prefix_weight;
                memory.jaro.jaro_winkler(a, b, weight)
            }
            Feature::Jaro => memory.jaro.jaro(a, b),
            Feature::Winnowing => winnowing::similarity(&left.fingerprints, &right.fingerprints),
            Feature::Gst => {
                gst::similarity(&left.tokens, &right.tokens, self.settings.gst_min_match)
            }
            Feature::DamerauLevenshtein => normalized(memory.damerau.distance(a, b), longest),
            Feature::Hamming => normalized(hamming(a, b), longest),
            Feature::Prefix => normalized(longest - common_prefix(a, b), longest),
            Feature::Postfix => normalized(longest - common_suffix(a, b), longest),
            Feature::PartialRatio => fuzz.partial_ratio(a, b) / 100.0,
            Feature::TokenSetRatio => fuzz.token_set_ratio(text, other) / 100.0,
            Feature::TokenRatio => fuzz.token_ratio(text, other, 0.0) / 100.0,
            Feature::PartialTokenSortRatio => {
                partial::partial_ratio(fuzz.work, text.sorted, other.sorted) / 100.0
            }
            Feature::PartialTokenSetRatio => fuzz.partial_token_set_ratio(text, other) / 100.0,
            Feature::PartialTokenRatio => fuzz.partial_token_ratio(text, other, 0.0) / 100.0,
            Feature::WRatio => fuzz.w_ratio(text, other) / 100.0,
            // The others are scored by tiles and never come here.
            _ => 0.0,
        }
    }
}

/// Which characters of a document a kernel looks at.
type View = fn(&Document) -> &Characters;

fn raw(document: &Document) -> &Characters {
    &document.raw
}

fn sorted(document: &Document) -> &Characters {
    &document.sorted
}

/// A bit-parallel kernel in both forms.
struct Kernel {
    lanes: fn(Level, &Table<Lanes>, &[Symbol], &mut State<Lanes>),
    pair: fn(&mut Pairwise, &[Symbol], &[Symbol]) -> usize,
    read: Answer,
}

/// What is read from a kernel's state.
#[derive(Clone, Copy)]
enum Answer {
    Common,
    Distance,
}

/// Scores a tile pair by pair, as left and right text.
fn for_each_pair(
    corpus: &Corpus,
    tile: &Tile,
    values: &mut [f64],
    mut score: impl FnMut(&Document, &Document) -> f64,
) {
    let document = |number: u32| &corpus.documents[number as usize];
    for (row, &text) in values.chunks_exact_mut(tile.lanes.len()).zip(&tile.texts) {
        for (at, (value, &lane)) in row.iter_mut().zip(&tile.lanes).enumerate() {
            *value = if tile.is_right(at) {
                score(document(text), document(lane))
            } else {
                score(document(lane), document(text))
            };
        }
    }
}
