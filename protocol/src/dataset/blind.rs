//! The blind view: what a worker is asked, in wire order, and the way back to frozen order.

use std::sync::Arc;

use proctor_wire::Order;
use proctor_wire::blind::{BlindDataset, BlindItems};

use super::{Dataset, PairDataset, RetrievalDataset};

/// A dataset as a worker gets it, with what is needed to read its answers.
///
/// No id, name, path, label, relevance or further column goes in, and the order of texts and items depends on
/// protocol, role and method alone.
#[derive(Debug, Clone)]
pub struct Blind {
    /// What goes over the wire.
    pub dataset: BlindDataset,
    back: Back,
}

/// Frozen positions by wire position.
#[derive(Debug, Clone)]
enum Back {
    Pairs(Order),
    Matrix { queries: Order, documents: Order },
}

impl Blind {
    /// Makes the view of one dataset for one method. `role` tells the datasets of a protocol and their validation
    /// data apart, for example `0/test` or `0/validation`.
    pub fn new(
        dataset: &Dataset,
        protocol_id: &str,
        role: &str,
        method_id: &str,
        code_language: Option<&str>,
    ) -> Self {
        let order = |what: &str, len: usize| {
            Order::derive(&[protocol_id, role, method_id, what], len as u32)
        };
        let (texts, items, back) = match dataset {
            Dataset::Pair(data) => pairs(data, &order),
            Dataset::Retrieval(data) => matrix(data, &order),
        };
        Self {
            dataset: BlindDataset {
                texts,
                items,
                code_language: code_language.map(str::to_owned),
            },
            back,
        }
    }

    /// Brings scores from wire order into frozen order: pairs as in `pairs.csv`; for retrieval row by row of
    /// `queries.csv`, each in the order of `corpus.csv`, with nothing masked.
    ///
    /// # Panics
    /// When there are not as many scores as items.
    pub fn to_frozen(&self, wire_scores: &[f64]) -> Vec<f64> {
        assert_eq!(
            wire_scores.len() as u64,
            self.dataset.item_count(),
            "one score for every item"
        );
        let mut frozen = vec![0.0; wire_scores.len()];
        match &self.back {
            Back::Pairs(order) => {
                for (&place, &score) in order.frozen().iter().zip(wire_scores) {
                    frozen[place as usize] = score;
                }
            }
            Back::Matrix { queries, documents } => {
                let width = documents.len();
                if width > 0 {
                    for (&query, scores) in queries.frozen().iter().zip(wire_scores.chunks(width)) {
                        let row = &mut frozen[query as usize * width..][..width];
                        for (&document, &score) in documents.frozen().iter().zip(scores) {
                            row[document as usize] = score;
                        }
                    }
                }
            }
        }
        frozen
    }
}

type Parts = (Vec<Arc<str>>, BlindItems, Back);

fn pairs(data: &PairDataset, order: &dyn Fn(&str, usize) -> Order) -> Parts {
    let texts = order("texts", data.texts.len());
    let items = order("pairs", data.left.len());
    let number = texts.wire();
    let side = |files: &[u32]| {
        items
            .frozen()
            .iter()
            .map(|&pair| number[files[pair as usize] as usize])
            .collect()
    };
    let wire_items = BlindItems::Pairs {
        left: side(&data.left),
        right: side(&data.right),
    };
    (
        permuted(&data.texts, texts.frozen().iter().copied()).collect(),
        wire_items,
        Back::Pairs(items),
    )
}

fn matrix(data: &RetrievalDataset, order: &dyn Fn(&str, usize) -> Order) -> Parts {
    let queries = order("queries", data.query_file.len());
    let documents = order("documents", data.document_file.len());
    let files = |order: &Order, rows: &[u32]| -> Vec<u32> {
        order
            .frozen()
            .iter()
            .map(|&row| rows[row as usize])
            .collect()
    };
    let query_files = files(&queries, &data.query_file);
    let document_files = files(&documents, &data.document_file);
    let texts = permuted(&data.texts, query_files.into_iter().chain(document_files)).collect();
    let items = BlindItems::Matrix {
        queries: queries.len() as u32,
    };
    (texts, items, Back::Matrix { queries, documents })
}

fn permuted(
    texts: &[Arc<str>],
    files: impl Iterator<Item = u32>,
) -> impl Iterator<Item = Arc<str>> {
    files.map(|file| texts[file as usize].clone())
}
