//! The texts of one dataset, prepared once for all the pairs they are in.

use crate::kernel::Pattern;
use crate::metric::fuzz::{Text, Vocabulary};
use crate::metric::gst::{self, WindowIndex};
use crate::metric::static_hash::Sparse;
use crate::metric::winnowing;
use crate::parallel;
use crate::text::tokens::tokens;
use crate::text::{Alphabet, Symbol, class, preprocess};
use proctor_wire::builtin::{Feature, Settings};
use std::collections::HashMap;

/// The characters of a text.
#[derive(Debug, Default)]
pub struct Characters {
    /// One by one.
    pub symbols: Vec<Symbol>,
    /// As a pattern; empty when no feature lays them side by side with others.
    pub pattern: Pattern,
}

/// One text, with what the active features look at.
#[derive(Debug, Default)]
pub struct Document {
    /// The prepared text; empty when no feature looks at characters.
    pub raw: Characters,
    /// Ranks of the words, sorted.
    words: Vec<u32>,
    /// The sorted words joined; empty when no feature looks at words.
    pub sorted: Characters,
    /// Winnowing fingerprints.
    pub fingerprints: Vec<u64>,
    /// Tokens for tiling.
    pub tokens: gst::Tokens,
    /// The vector of the semantic feature.
    pub vector: Sparse,
}

impl Document {
    /// As the `fuzz` scorers see it.
    pub fn text(&self) -> Text<'_> {
        Text {
            symbols: &self.raw.symbols,
            words: &self.words,
            sorted: &self.sorted.symbols,
        }
    }
}

/// All texts of a dataset.
#[derive(Debug, Default)]
pub struct Corpus {
    /// By wire number.
    pub documents: Vec<Document>,
    /// The words of all texts.
    pub vocabulary: Vocabulary,
    /// Every symbol is below.
    pub alphabet: usize,
}

/// What the active features look at.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "five independent needs")]
struct Needs {
    symbols: bool,
    /// Patterns of the texts.
    patterns: bool,
    /// Patterns of the sorted words.
    sorted_patterns: bool,
    words: bool,
    fingerprints: bool,
    tokens: bool,
}

impl Needs {
    fn of(settings: &Settings) -> Self {
        let mut needs = Self {
            symbols: false,
            patterns: false,
            sorted_patterns: false,
            words: false,
            fingerprints: false,
            tokens: false,
        };
        for (feature, _) in &settings.weights.lexical {
            match feature {
                Feature::Winnowing => needs.fingerprints = true,
                Feature::Gst => needs.tokens = true,
                Feature::TokenSortRatio => {
                    needs.words = true;
                    needs.sorted_patterns = true;
                }
                Feature::TokenSetRatio
                | Feature::TokenRatio
                | Feature::PartialTokenSortRatio
                | Feature::PartialTokenSetRatio
                | Feature::PartialTokenRatio => needs.words = true,
                Feature::WRatio => {
                    needs.words = true;
                    needs.symbols = true;
                }
                Feature::Levenshtein
                | Feature::Osa
                | Feature::Lcs
                | Feature::Indel
                | Feature::Ratio
                | Feature::QRatio => {
                    needs.symbols = true;
                    needs.patterns = true;
                }
                _ => needs.symbols = true,
            }
        }
        needs
    }
}

impl Corpus {
    /// Prepares the texts of a dataset on at most `threads` threads. `language` is the dataset's, if it declares one.
    pub fn prepare(
        texts: &[String],
        settings: &Settings,
        language: Option<&str>,
        threads: usize,
    ) -> Self {
        let needs = Needs::of(settings);
        let language = language.or(settings.code_language.as_deref());
        let prepared: Vec<(String, Document)> = parallel::map(
            threads,
            texts.len(),
            || (),
            |(), at| {
                let text = preprocess(&texts[at], settings.preprocess, language);
                let mut document = Document::default();
                if needs.fingerprints {
                    let tokens: Vec<&str> = tokens(&text).collect();
                    document.fingerprints = winnowing::fingerprints(
                        &tokens,
                        settings.winnowing_kgram,
                        settings.winnowing_window,
                    );
                }
                if let Some(hash) = &settings.static_hash {
                    document.vector = Sparse::new(&text, hash);
                }
                (text, document)
            },
        );
        let (texts, documents): (Vec<String>, Vec<Document>) = prepared.into_iter().unzip();
        let mut corpus = Self {
            documents,
            ..Self::default()
        };
        let mut alphabet = Alphabet::default();
        if needs.symbols {
            for (document, text) in corpus.documents.iter_mut().zip(&texts) {
                document.raw.symbols = alphabet.symbols(text.chars());
            }
        }
        if needs.words {
            corpus.take_words(&texts, &mut alphabet);
        }
        if needs.tokens {
            corpus.take_tokens(&texts, settings.gst_min_match);
        }
        corpus.alphabet = alphabet.len();
        if needs.patterns || needs.sorted_patterns {
            corpus.take_patterns(needs, threads);
        }
        corpus
    }

    fn take_patterns(&mut self, needs: Needs, threads: usize) {
        let documents = &self.documents;
        let pattern = |words: &mut Vec<u64>, wanted: bool, characters: &Characters| {
            if wanted {
                Pattern::new(&characters.symbols, words)
            } else {
                Pattern::default()
            }
        };
        let patterns = parallel::map(
            threads,
            documents.len(),
            || vec![0; self.alphabet],
            |words, at| {
                let document = &documents[at];
                (
                    pattern(words, needs.patterns, &document.raw),
                    pattern(words, needs.sorted_patterns, &document.sorted),
                )
            },
        );
        for (document, (raw, sorted)) in self.documents.iter_mut().zip(patterns) {
            document.raw.pattern = raw;
            document.sorted.pattern = sorted;
        }
    }

    fn take_words(&mut self, texts: &[String], alphabet: &mut Alphabet) {
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut words: Vec<&str> = Vec::new();
        for (document, text) in self.documents.iter_mut().zip(texts) {
            for word in split_words(text) {
                let number = *numbers.entry(word).or_insert_with(|| {
                    words.push(word);
                    words.len() as u32 - 1
                });
                document.words.push(number);
            }
        }
        let mut order: Vec<u32> = (0..words.len() as u32).collect();
        // The order of UTF-8 bytes is the order of code points.
        order.sort_unstable_by_key(|&number| words[number as usize]);
        let mut rank = vec![0; words.len()];
        for (at, &number) in (0..).zip(&order) {
            rank[number as usize] = at;
        }
        self.vocabulary = Vocabulary {
            words: order
                .iter()
                .map(|&number| alphabet.symbols(words[number as usize].chars()))
                .collect(),
            space: alphabet.symbols([' '])[0],
        };
        for document in &mut self.documents {
            for word in &mut document.words {
                *word = rank[*word as usize];
            }
            document.words.sort_unstable();
            document.sorted.symbols = self.vocabulary.join(&document.words);
        }
    }

    fn take_tokens(&mut self, texts: &[String], min_match: usize) {
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut index = WindowIndex::new(min_match);
        for (document, text) in self.documents.iter_mut().zip(texts) {
            let tokens = tokens(text)
                .map(|token| {
                    let fresh = numbers.len() as u32;
                    *numbers.entry(token).or_insert(fresh)
                })
                .collect();
            document.tokens = index.add(tokens);
        }
    }
}

/// Words as RapidFuzz splits them: where every character fits one byte, U+0085 and U+00A0 are not white space to it.
fn split_words(text: &str) -> impl Iterator<Item = &str> {
    let narrow = text.chars().all(|c| c <= '\u{ff}');
    text.split(move |c: char| class::is_space(c) && !(narrow && matches!(c, '\u{85}' | '\u{a0}')))
        .filter(|word| !word.is_empty())
}
