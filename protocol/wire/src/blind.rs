//! A dataset as a worker sees it: texts and items by number, in wire order, and nothing else.

use crate::limits::{PAIR_BATCH, TEXT_BATCH, TEXT_PIECE_BYTES};
use crate::message::{Family, ToWorker};

/// The questions of one dataset, already in wire order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlindDataset {
    /// The texts; for retrieval the queries first, then the documents.
    pub texts: Vec<std::sync::Arc<str>>,
    /// What is asked.
    pub items: BlindItems,
    /// The programming language the benchmark declares, if any.
    pub code_language: Option<String>,
}

/// What is asked of the texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlindItems {
    /// These pairs of text numbers.
    Pairs {
        /// Left texts.
        left: Vec<u32>,
        /// Right texts, as many.
        right: Vec<u32>,
    },
    /// Every query with every document, row by row.
    Matrix {
        /// How many of the texts are queries; the rest are documents.
        queries: u32,
    },
}

impl BlindDataset {
    /// The task family.
    pub fn family(&self) -> Family {
        match self.items {
            BlindItems::Pairs { .. } => Family::Pair,
            BlindItems::Matrix { .. } => Family::Retrieval,
        }
    }

    /// How many scores are asked for.
    pub fn item_count(&self) -> u64 {
        match &self.items {
            BlindItems::Pairs { left, .. } => left.len() as u64,
            BlindItems::Matrix { queries } => {
                u64::from(*queries) * (self.texts.len() as u64 - u64::from(*queries))
            }
        }
    }

    /// The messages that put dataset number `dataset` to a worker, the closing [`ToWorker::Score`] included. They are
    /// made one by one, so a large dataset is never held twice.
    pub fn messages(&self, dataset: u32) -> impl Iterator<Item = ToWorker> + '_ {
        let (queries, documents) = match &self.items {
            BlindItems::Pairs { .. } => (None, None),
            BlindItems::Matrix { queries } => {
                (Some(*queries), Some(self.texts.len() as u32 - queries))
            }
        };
        let open = ToWorker::Dataset {
            dataset,
            family: self.family(),
            texts: self.texts.len() as u32,
            items: self.item_count(),
            queries,
            documents,
            code_language: self.code_language.clone(),
        };
        std::iter::once(open)
            .chain(TextMessages {
                texts: &self.texts,
                index: 0,
                offset: 0,
            })
            .chain(self.pair_messages())
            .chain(std::iter::once(ToWorker::Score { dataset }))
    }

    fn pair_messages(&self) -> impl Iterator<Item = ToWorker> + '_ {
        let (left, right): (&[u32], &[u32]) = match &self.items {
            BlindItems::Pairs { left, right } => (left, right),
            BlindItems::Matrix { .. } => (&[], &[]),
        };
        left.chunks(PAIR_BATCH)
            .zip(right.chunks(PAIR_BATCH))
            .enumerate()
            .map(|(batch, (left, right))| ToWorker::Pairs {
                start: (batch * PAIR_BATCH) as u64,
                left: left.to_vec(),
                right: right.to_vec(),
            })
    }
}

/// Batches of short texts and pieces of long ones.
struct TextMessages<'a> {
    texts: &'a [std::sync::Arc<str>],
    index: usize,
    offset: usize,
}

impl Iterator for TextMessages<'_> {
    type Item = ToWorker;

    fn next(&mut self) -> Option<ToWorker> {
        let text = self.texts.get(self.index)?;
        if text.len() > TEXT_PIECE_BYTES {
            let rest = &text[self.offset..];
            let mut end = rest.len().min(TEXT_PIECE_BYTES);
            while !rest.is_char_boundary(end) {
                end -= 1;
            }
            let last = end == rest.len();
            let message = ToWorker::TextPart {
                index: self.index as u32,
                last,
                value: rest[..end].to_owned(),
            };
            if last {
                self.index += 1;
                self.offset = 0;
            } else {
                self.offset += end;
            }
            return Some(message);
        }
        let start = self.index;
        let mut bytes = 0;
        let mut values = Vec::new();
        while let Some(text) = self.texts.get(self.index) {
            if values.len() == TEXT_BATCH || bytes + text.len() > TEXT_PIECE_BYTES {
                break;
            }
            bytes += text.len();
            values.push(text.to_string());
            self.index += 1;
        }
        Some(ToWorker::Texts {
            start: start as u32,
            values,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MAX_LINE_BYTES;
    use proptest::prelude::*;

    fn texts_of(messages: &[ToWorker]) -> Vec<String> {
        let mut texts = Vec::new();
        let mut part = String::new();
        for message in messages {
            match message {
                ToWorker::Texts { start, values } => {
                    assert_eq!(*start as usize, texts.len());
                    texts.extend(values.iter().cloned());
                }
                ToWorker::TextPart { index, last, value } => {
                    assert_eq!(*index as usize, texts.len());
                    part.push_str(value);
                    if *last {
                        texts.push(std::mem::take(&mut part));
                    }
                }
                _ => {}
            }
        }
        texts
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn texts_arrive_whole_and_lines_stay_short(
            lengths in prop::collection::vec(prop_oneof![0usize..2000, 150_000usize..400_000], 0..12),
            filler in prop_oneof![Just('\u{1}'), Just('x'), Just('\u{1F600}'), Just('é')],
        ) {
            let texts: Vec<std::sync::Arc<str>> = lengths
                .iter()
                .map(|&n| filler.to_string().repeat(n / filler.len_utf8()).into())
                .collect();
            let set = BlindDataset {
                texts: texts.clone(),
                items: BlindItems::Matrix { queries: 0 },
                code_language: None,
            };
            let messages: Vec<_> = set.messages(0).collect();
            for message in &messages {
                prop_assert!(serde_json::to_vec(message).unwrap().len() <= MAX_LINE_BYTES);
            }
            let sent: Vec<String> = texts.iter().map(ToString::to_string).collect();
            prop_assert_eq!(texts_of(&messages), sent);
        }
    }

    #[test]
    fn pairs_come_in_contiguous_batches() {
        let n = PAIR_BATCH as u32 * 2 + 3;
        let set = BlindDataset {
            texts: vec!["a".into(); 2],
            items: BlindItems::Pairs {
                left: vec![0; n as usize],
                right: vec![1; n as usize],
            },
            code_language: Some("java".into()),
        };
        let starts: Vec<u64> = set
            .messages(4)
            .filter_map(|m| match m {
                ToWorker::Pairs { start, .. } => Some(start),
                _ => None,
            })
            .collect();
        assert_eq!(starts, [0, PAIR_BATCH as u64, 2 * PAIR_BATCH as u64]);
        assert_eq!(set.item_count(), u64::from(n));
    }
}
