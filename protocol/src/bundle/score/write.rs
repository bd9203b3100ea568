//! Writing score files, row by row.

use std::io::{self, Write};

use sha2::{Digest, Sha256};

use super::{PAIR_COLUMNS, RETRIEVAL_COLUMNS, SCORE, name_of};
use crate::bundle::columns::count_value;
use crate::bundle::csv_text::{push_field, push_record};
use crate::canonical::{Value, hex, push_float};
use crate::dataset::{Dataset, PairDataset, RetrievalDataset};
use crate::frozen::DatasetEntry;
use crate::object;
use crate::public_metadata::is_local_path;
use crate::report::MethodIdentity;

/// The index entry of a written score file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoreArtifact {
    /// The dataset.
    pub dataset_name: String,
    /// Its family.
    pub family: proctor_wire::Family,
    /// The method's display name.
    pub algorithm_name: String,
    /// The method id.
    pub algorithm_id: String,
    /// The bare file name.
    pub filename: String,
    /// Lower-case hex SHA-256 of the file.
    pub sha256: String,
    /// Rows without the header.
    pub rows: u64,
    /// Columns in order.
    pub columns: Vec<String>,
}

impl ScoreArtifact {
    /// The name a method's score file for a dataset must have.
    pub fn file_name(entry: &DatasetEntry, method_id: &str) -> String {
        format!("{}.csv", name_of(entry, method_id))
    }

    /// The name for its validation scores, which are evidence and stand in no index.
    pub fn validation_file_name(entry: &DatasetEntry, method_id: &str) -> String {
        format!("{}_validation.csv", name_of(entry, method_id))
    }

    /// The entry of `metadata.score_artifacts`.
    pub fn to_value(&self) -> Value {
        object! {
            "dataset_name" => self.dataset_name.as_str(),
            "task_family" => self.family.name(),
            "algorithm_name" => self.algorithm_name.as_str(),
            "algorithm_id" => self.algorithm_id.as_str(),
            "filename" => self.filename.as_str(),
            "sha256" => self.sha256.as_str(),
            "rows" => count_value(self.rows),
            "columns" => self.columns.clone(),
        }
    }
}

/// Why a score file could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ScoreError {
    /// Another number of scores than items.
    #[error("dataset {dataset}: {found} scores for {expected} items")]
    Count {
        /// The dataset.
        dataset: String,
        /// Scores given.
        found: usize,
        /// Items of the dataset.
        expected: u64,
    },
    /// The file could not be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes the score file of one method on one dataset. `scores` are finite and in frozen order (the full matrix for
/// retrieval); candidates of the query's own file are left out where the protocol says so. Columns of `pairs.csv` in
/// which a local path stands are left out.
///
/// # Errors
/// Another number of scores than items, or whatever `out` answers.
pub fn score_csv(
    out: &mut dyn Write,
    entry: &DatasetEntry,
    dataset: &Dataset,
    method: &MethodIdentity,
    scores: &[f64],
) -> Result<ScoreArtifact, ScoreError> {
    write_file(out, entry, dataset, method, scores, |id| {
        ScoreArtifact::file_name(entry, id)
    })
}

/// Writes the scores of the validation pairs in the same form, as evidence for the threshold.
///
/// # Errors
/// As [`score_csv`].
pub fn validation_score_csv(
    out: &mut dyn Write,
    entry: &DatasetEntry,
    validation: &Dataset,
    method: &MethodIdentity,
    scores: &[f64],
) -> Result<ScoreArtifact, ScoreError> {
    write_file(out, entry, validation, method, scores, |id| {
        ScoreArtifact::validation_file_name(entry, id)
    })
}

fn write_file(
    out: &mut dyn Write,
    entry: &DatasetEntry,
    dataset: &Dataset,
    method: &MethodIdentity,
    scores: &[f64],
    file_name: impl Fn(&str) -> String,
) -> Result<ScoreArtifact, ScoreError> {
    if scores.len() as u64 != dataset.item_count() {
        return Err(ScoreError::Count {
            dataset: entry.name.clone(),
            found: scores.len(),
            expected: dataset.item_count(),
        });
    }
    let mut lines = Lines::new(out);
    let columns = match dataset {
        Dataset::Pair(data) => write_pairs(&mut lines, data, scores)?,
        Dataset::Retrieval(data) => {
            write_matrix(&mut lines, data, scores, entry.exclude_same_file)?
        }
    };
    let (rows, sha256) = lines.finish()?;
    Ok(ScoreArtifact {
        dataset_name: entry.name.clone(),
        family: dataset.family(),
        algorithm_name: method.name.to_string(),
        algorithm_id: method.id.to_string(),
        filename: file_name(&method.id),
        sha256,
        rows,
        columns,
    })
}

fn write_pairs(
    lines: &mut Lines<'_>,
    data: &PairDataset,
    scores: &[f64],
) -> io::Result<Vec<String>> {
    let table = &data.pairs;
    let label = table.column("label");
    let published: Vec<usize> = (0..table.columns.len())
        .filter(|&column| PAIR_COLUMNS.contains(&table.columns[column].as_str()))
        .filter(|&column| Some(column) == label || !table.cells(column).any(is_local_path))
        .collect();
    let mut columns: Vec<String> = published
        .iter()
        .map(|&column| table.columns[column].clone())
        .collect();
    columns.push(SCORE.to_owned());
    push_record(&mut lines.buffer, columns.iter().map(String::as_str));
    for (row, &score) in scores.iter().enumerate() {
        for &column in &published {
            if Some(column) == label {
                lines
                    .buffer
                    .push(if data.labels[row] == 1 { '1' } else { '0' });
            } else {
                push_field(&mut lines.buffer, table.get(row, column));
            }
            lines.buffer.push(',');
        }
        lines.end(score)?;
    }
    Ok(columns)
}

fn write_matrix(
    lines: &mut Lines<'_>,
    data: &RetrievalDataset,
    scores: &[f64],
    exclude_same_file: bool,
) -> io::Result<Vec<String>> {
    push_record(&mut lines.buffer, RETRIEVAL_COLUMNS);
    let documents = data.document_file.len();
    let mut judged: Vec<Vec<(u32, f64)>> = vec![Vec::new(); data.query_file.len()];
    for &(query, document, relevance) in &data.judgments {
        judged[query as usize].push((document, relevance));
    }
    let mut relevance = vec![0.0; documents];
    for (query, &query_file) in data.query_file.iter().enumerate() {
        for &(document, judgment) in &judged[query] {
            // Adding 0.0 turns -0.0 into 0.0, as taking the maximum with 0.0 does.
            relevance[document as usize] = judgment + 0.0;
        }
        let row = &scores[query * documents..(query + 1) * documents];
        for (document, &score) in row.iter().enumerate() {
            let document_file = data.document_file[document];
            if exclude_same_file && document_file == query_file {
                continue;
            }
            for id in [
                &data.query_ids[query],
                &data.document_ids[document],
                &data.file_ids[query_file as usize],
                &data.file_ids[document_file as usize],
            ] {
                push_field(&mut lines.buffer, id);
                lines.buffer.push(',');
            }
            push_float(&mut lines.buffer, relevance[document]);
            lines.buffer.push(',');
            lines.end(score)?;
        }
        for &(document, _) in &judged[query] {
            relevance[document as usize] = 0.0;
        }
    }
    Ok(RETRIEVAL_COLUMNS.map(str::to_owned).to_vec())
}

/// Lines on their way out, hashed and counted.
struct Lines<'a> {
    out: &'a mut dyn Write,
    hash: Sha256,
    buffer: String,
    rows: u64,
}

impl<'a> Lines<'a> {
    fn new(out: &'a mut dyn Write) -> Self {
        Self {
            out,
            hash: Sha256::new(),
            buffer: String::new(),
            rows: 0,
        }
    }

    /// Ends a row with its score.
    fn end(&mut self, score: f64) -> io::Result<()> {
        push_float(&mut self.buffer, score);
        self.buffer.push('\n');
        self.rows += 1;
        if self.buffer.len() > 64 << 10 {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.hash.update(self.buffer.as_bytes());
        self.out.write_all(self.buffer.as_bytes())?;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<(u64, String)> {
        self.flush()?;
        Ok((self.rows, hex(&self.hash.finalize())))
    }
}
