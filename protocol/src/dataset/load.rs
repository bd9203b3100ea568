//! Loading: the checks of specs/matheel.md section a, in its order.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::csv::{CsvLimits, Table};
use super::field::{check_id, label, path_parts, quoted, relevance};
use super::source::{read_all, read_regular_file};
use super::{Dataset, DatasetError, Family, Metadata, PairDataset, RetrievalDataset};

/// The longest `metadata.json`, in bytes.
const MAX_METADATA_BYTES: u64 = 16 << 20;

pub(super) fn load(root: &Path, family: Family) -> Result<Dataset, DatasetError> {
    let folder = Folder::open(root)?;
    let metadata = folder.metadata_bytes()?;
    match family {
        Family::Pair => load_pairs(&folder, metadata.as_deref()).map(Dataset::Pair),
        Family::Retrieval => load_retrieval(&folder, metadata.as_deref()).map(Dataset::Retrieval),
    }
}

fn load_pairs(folder: &Folder, metadata: Option<&[u8]>) -> Result<PairDataset, DatasetError> {
    let mut files = folder.table("files.csv")?;
    let mut pairs = folder.table("pairs.csv")?;
    let metadata = folder.metadata(metadata, Family::Pair)?;
    let [id, path] = files.require(["file_id", "file_path"])?;
    let [left, right, label_column] = pairs.require(["left_id", "right_id", "label"])?;
    files.ids(id)?;
    files.paths(path)?;
    pairs.ids(left)?;
    pairs.ids(right)?;
    let labels = pairs.parse(label_column, label)?;
    let (left, right, file_ids) = {
        let known = files.unique(id)?;
        let left = pairs.references(left, &known, "file_id of files.csv");
        let right = pairs.references(right, &known, "file_id of files.csv");
        (left?, right?, files.shared(id))
    };
    let texts = files.sources(path, folder)?;
    Ok(PairDataset {
        files: files.table,
        file_ids,
        texts,
        pairs: pairs.table,
        left,
        right,
        labels,
        metadata,
    })
}

fn load_retrieval(
    folder: &Folder,
    metadata: Option<&[u8]>,
) -> Result<RetrievalDataset, DatasetError> {
    let mut files = folder.table("files.csv")?;
    let mut queries = folder.table("queries.csv")?;
    let mut corpus = folder.table("corpus.csv")?;
    let mut qrels = folder.table("qrels.csv")?;
    let metadata = folder.metadata(metadata, Family::Retrieval)?;
    let [id, path] = files.require(["file_id", "file_path"])?;
    let [query, query_file] = queries.require(["query_id", "file_id"])?;
    let [document, document_file] = corpus.require(["document_id", "file_id"])?;
    let [judged_query, judged_document, grade] =
        qrels.require(["query_id", "document_id", "relevance"])?;
    files.ids(id)?;
    files.paths(path)?;
    queries.ids(query)?;
    queries.ids(query_file)?;
    corpus.ids(document)?;
    corpus.ids(document_file)?;
    qrels.ids(judged_query)?;
    qrels.ids(judged_document)?;
    let grades = qrels.parse(grade, relevance)?;
    let (query_rows, document_rows, judged) = {
        let known_files = files.unique(id)?;
        let known_queries = queries.unique(query)?;
        let known_documents = corpus.unique(document)?;
        qrels.unique_pairs(judged_query, judged_document)?;
        let query_rows = queries.references(query_file, &known_files, "file_id of files.csv")?;
        let document_rows =
            corpus.references(document_file, &known_files, "file_id of files.csv")?;
        let judged_queries =
            qrels.references(judged_query, &known_queries, "query_id of queries.csv")?;
        let judged_documents = qrels.references(
            judged_document,
            &known_documents,
            "document_id of corpus.csv",
        )?;
        let judged = judged_queries.into_iter().zip(judged_documents);
        (query_rows, document_rows, judged)
    };
    let judgments = judged
        .zip(grades)
        .map(|((query, document), grade)| (query, document, grade))
        .collect();
    let texts = files.sources(path, folder)?;
    Ok(RetrievalDataset {
        file_ids: files.shared(id),
        query_ids: queries.shared(query),
        document_ids: corpus.shared(document),
        files: files.table,
        texts,
        queries: queries.table,
        corpus: corpus.table,
        qrels: qrels.table,
        query_file: query_rows,
        document_file: document_rows,
        judgments,
        metadata,
    })
}

/// The folder of a dataset: as it was given, for messages, and resolved.
struct Folder {
    given: PathBuf,
    resolved: PathBuf,
}

impl Folder {
    fn open(root: &Path) -> Result<Self, DatasetError> {
        let fail = |source| DatasetError::Root {
            root: root.to_owned(),
            source,
        };
        let resolved = std::fs::canonicalize(root).map_err(fail)?;
        if !resolved.is_dir() {
            return Err(fail(std::io::ErrorKind::NotADirectory.into()));
        }
        Ok(Self {
            given: root.to_owned(),
            resolved,
        })
    }

    fn metadata_bytes(&self) -> Result<Option<Vec<u8>>, DatasetError> {
        match read_regular_file(&self.resolved.join("metadata.json"), MAX_METADATA_BYTES) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(DatasetError::File {
                file: self.given.join("metadata.json"),
                source,
            }),
        }
    }

    fn metadata(&self, bytes: Option<&[u8]>, family: Family) -> Result<Metadata, DatasetError> {
        Metadata::read(bytes, family).map_err(|problem| DatasetError::Table {
            file: self.given.join("metadata.json"),
            problem,
        })
    }

    fn table(&self, name: &str) -> Result<Checked, DatasetError> {
        let limits = CsvLimits::default();
        let file = self.given.join(name);
        let bytes = read_regular_file(&self.resolved.join(name), limits.bytes as u64).map_err(
            |source| match source.kind() {
                std::io::ErrorKind::NotFound => DatasetError::Table {
                    file: file.clone(),
                    problem: format!("the file is missing; a dataset of this family needs {name}"),
                },
                _ => DatasetError::File {
                    file: file.clone(),
                    source,
                },
            },
        )?;
        let table = Table::read_csv(&bytes, &file.to_string_lossy(), limits)?;
        Ok(Checked { table, file })
    }
}

/// A table under check.
struct Checked {
    table: Table,
    file: PathBuf,
}

impl Checked {
    fn row_error(&self, row: usize, problem: String) -> DatasetError {
        DatasetError::Row {
            file: self.file.clone(),
            line: self.table.line(row),
            problem,
        }
    }

    /// The header for a message, cut when it is long.
    fn header(&self) -> String {
        const SHOWN: usize = 200;
        let all = self.table.columns.join(", ");
        match all.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}... ({} columns)", &all[..end], self.table.columns.len()),
            None => all,
        }
    }

    fn require<const N: usize>(&self, names: [&str; N]) -> Result<[usize; N], DatasetError> {
        let missing: Vec<&str> = names
            .into_iter()
            .filter(|name| self.table.column(name).is_none())
            .collect();
        if !missing.is_empty() {
            return Err(DatasetError::Table {
                file: self.file.clone(),
                problem: format!(
                    "missing required column{} {}; the header has {}",
                    if missing.len() == 1 { "" } else { "s" },
                    missing.join(", "),
                    self.header()
                ),
            });
        }
        Ok(names.map(|name| self.table.column(name).unwrap_or_default()))
    }

    /// Strips and checks a column of ids.
    fn ids(&mut self, column: usize) -> Result<(), DatasetError> {
        self.table.strip_column(column);
        let name = &self.table.columns[column];
        for (row, id) in self.table.cells(column).enumerate() {
            check_id(id, name).map_err(|problem| self.row_error(row, problem))?;
        }
        Ok(())
    }

    fn paths(&self, column: usize) -> Result<(), DatasetError> {
        for (row, path) in self.table.cells(column).enumerate() {
            path_parts(path).map_err(|problem| self.row_error(row, problem))?;
        }
        Ok(())
    }

    fn parse<T>(
        &self,
        column: usize,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, DatasetError> {
        self.table
            .cells(column)
            .enumerate()
            .map(|(row, cell)| read(cell).map_err(|problem| self.row_error(row, problem)))
            .collect()
    }

    /// The rows by id; refuses an id that comes twice.
    fn unique(&self, column: usize) -> Result<HashMap<&str, u32>, DatasetError> {
        let mut rows = HashMap::with_capacity(self.table.rows());
        for (row, id) in self.table.cells(column).enumerate() {
            if let Some(first) = rows.insert(id, row as u32) {
                return Err(self.row_error(
                    row,
                    format!(
                        "{} {} comes twice; it is already on line {}",
                        self.table.columns[column],
                        quoted(id),
                        self.table.line(first as usize)
                    ),
                ));
            }
        }
        Ok(rows)
    }

    fn unique_pairs(&self, first: usize, second: usize) -> Result<(), DatasetError> {
        let mut seen = HashSet::with_capacity(self.table.rows());
        for row in 0..self.table.rows() {
            let pair = (self.table.get(row, first), self.table.get(row, second));
            if !seen.insert(pair) {
                return Err(self.row_error(
                    row,
                    format!("{} and {} are judged twice", quoted(pair.0), quoted(pair.1)),
                ));
            }
        }
        Ok(())
    }

    fn references(
        &self,
        column: usize,
        known: &HashMap<&str, u32>,
        what: &str,
    ) -> Result<Vec<u32>, DatasetError> {
        self.table
            .cells(column)
            .enumerate()
            .map(|(row, id)| {
                known.get(id).copied().ok_or_else(|| {
                    let name = &self.table.columns[column];
                    self.row_error(row, format!("{name} {} is no {what}", quoted(id)))
                })
            })
            .collect()
    }

    fn shared(&self, column: usize) -> Vec<Arc<str>> {
        self.table.cells(column).map(Arc::from).collect()
    }

    fn sources(&self, column: usize, folder: &Folder) -> Result<Vec<Arc<str>>, DatasetError> {
        read_all(&folder.resolved, self.table.cells(column))
            .map_err(|(row, problem)| self.row_error(row, problem))
    }
}
