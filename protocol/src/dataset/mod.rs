//! Normalized datasets on disk (specs/matheel.md section a): tables, checks in Matheel's order, fingerprints, and the
//! blind view a worker gets.

mod blind;
mod csv;
mod field;
mod fingerprint;
mod load;
mod metadata;
mod source;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use proctor_wire::Family;

pub use blind::Blind;
pub use csv::{CsvError, CsvLimits, Table};
pub use fingerprint::Content;
pub use metadata::{Metadata, task_type};
pub use source::decode;

/// Why a dataset was refused.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The folder is not there or cannot be entered.
    #[error("{}: {source}; a dataset is a folder with files.csv", root.display())]
    Root {
        /// The folder as it was given.
        root: PathBuf,
        /// What the system answered.
        source: std::io::Error,
    },
    /// A file of the dataset cannot be read.
    #[error("{}: {source}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What the system answered.
        source: std::io::Error,
    },
    /// A table cannot be read.
    #[error(transparent)]
    Csv(#[from] CsvError),
    /// A file breaks a rule as a whole.
    #[error("{}: {problem}", file.display())]
    Table {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A row breaks a rule.
    #[error("{}, line {line}: {problem}", file.display())]
    Row {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

/// Pairs of files with a label each.
#[derive(Debug, Clone)]
pub struct PairDataset {
    /// `files.csv`; ids are stripped.
    pub files: Table,
    /// Ids by file row.
    pub file_ids: Vec<Arc<str>>,
    /// Decoded source by file row.
    pub texts: Vec<Arc<str>>,
    /// `pairs.csv`; ids are stripped, `label` is as written.
    pub pairs: Table,
    /// Left file rows by pair.
    pub left: Vec<u32>,
    /// Right file rows by pair.
    pub right: Vec<u32>,
    /// Labels by pair, 0 or 1.
    pub labels: Vec<u8>,
    /// `metadata.json`.
    pub metadata: Metadata,
}

/// Queries, a corpus of documents, and graded judgments.
#[derive(Debug, Clone)]
pub struct RetrievalDataset {
    /// `files.csv`; ids are stripped.
    pub files: Table,
    /// Ids by file row.
    pub file_ids: Vec<Arc<str>>,
    /// Decoded source by file row.
    pub texts: Vec<Arc<str>>,
    /// `queries.csv`; ids are stripped.
    pub queries: Table,
    /// `corpus.csv`; ids are stripped.
    pub corpus: Table,
    /// `qrels.csv`; ids are stripped, `relevance` is as written.
    pub qrels: Table,
    /// Ids by query row.
    pub query_ids: Vec<Arc<str>>,
    /// File rows by query row.
    pub query_file: Vec<u32>,
    /// Ids by document row.
    pub document_ids: Vec<Arc<str>>,
    /// File rows by document row.
    pub document_file: Vec<u32>,
    /// Query row, document row and relevance of each judgment, in file order.
    pub judgments: Vec<(u32, u32, f64)>,
    /// `metadata.json`.
    pub metadata: Metadata,
}

/// A dataset that passed every check.
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "a handful live at once, each with megabytes behind it"
)]
pub enum Dataset {
    /// Pair classification.
    Pair(PairDataset),
    /// Retrieval.
    Retrieval(RetrievalDataset),
}

impl Dataset {
    /// Loads and checks a dataset, sources included.
    ///
    /// # Errors
    /// The first rule it breaks, in Matheel's order, with file and line.
    pub fn load(root: &Path, family: Family) -> Result<Self, DatasetError> {
        load::load(root, family)
    }

    /// The task family.
    pub fn family(&self) -> Family {
        match self {
            Self::Pair(_) => Family::Pair,
            Self::Retrieval(_) => Family::Retrieval,
        }
    }

    /// The content fingerprint. It is computed anew each time: keep it.
    pub fn content(&self) -> Content {
        fingerprint::content(self)
    }

    /// The metadata.
    pub fn metadata(&self) -> &Metadata {
        match self {
            Self::Pair(data) => &data.metadata,
            Self::Retrieval(data) => &data.metadata,
        }
    }

    /// The domain, such as `plagiarism`.
    pub fn task_type(&self) -> &str {
        &self.metadata().task_type
    }

    /// `files.csv`.
    pub fn files(&self) -> &Table {
        match self {
            Self::Pair(data) => &data.files,
            Self::Retrieval(data) => &data.files,
        }
    }

    /// Ids by file row.
    pub fn file_ids(&self) -> &[Arc<str>] {
        match self {
            Self::Pair(data) => &data.file_ids,
            Self::Retrieval(data) => &data.file_ids,
        }
    }

    /// Decoded source by file row.
    pub fn texts(&self) -> &[Arc<str>] {
        match self {
            Self::Pair(data) => &data.texts,
            Self::Retrieval(data) => &data.texts,
        }
    }

    /// How many scores a method owes when nothing is masked: pairs, or queries times documents.
    pub fn item_count(&self) -> u64 {
        match self {
            Self::Pair(data) => data.left.len() as u64,
            Self::Retrieval(data) => data.query_file.len() as u64 * data.document_file.len() as u64,
        }
    }
}
