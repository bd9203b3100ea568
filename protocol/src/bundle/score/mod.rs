//! Score files: the raw scores beside the gold they were judged by (specs/matheel.md section i), so that anyone can compute
//! the metrics again.

mod read;
mod write;

pub(super) use read::{ScoreFile, Values, digest_scores, read_pair_scores, read_score_file};
pub use write::{ScoreArtifact, ScoreError, score_csv, validation_score_csv};

use crate::canonical::sha256_hex;
use crate::frozen::DatasetEntry;

/// The last column of every score file.
const SCORE: &str = "similarity_score";

/// Columns of a retrieval score file.
const RETRIEVAL_COLUMNS: [&str; 6] = [
    "query_id",
    "document_id",
    "query_file_id",
    "document_file_id",
    "relevance",
    SCORE,
];

/// Columns of `pairs.csv` that may be published with the scores.
const PAIR_COLUMNS: [&str; 16] = [
    "left_id",
    "right_id",
    "label",
    "query_id",
    "document_id",
    "query_file_id",
    "document_file_id",
    "relevance",
    "group",
    "group_id",
    "assignment",
    "assignment_id",
    "family",
    "family_id",
    "language",
    "split",
];

/// The start of the name of a score file: it names dataset, method and family without showing the dataset's name.
fn name_of(entry: &DatasetEntry, method_id: &str) -> String {
    let dataset = sha256_hex(entry.name.as_bytes());
    let method = method_id.get(..20).unwrap_or(method_id);
    format!("{}_{method}_{}", &dataset[..12], entry.family.name())
}
