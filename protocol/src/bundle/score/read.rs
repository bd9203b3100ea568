//! Reading score files back: hash, shape, and the metrics they give.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use csv::{ByteRecord, Reader, ReaderBuilder};
use proctor_wire::Family;
use sha2::{Digest, Sha256};

use super::SCORE;
use crate::canonical::hex;
use crate::dataset::Dataset;
use crate::frozen::DatasetEntry;
use crate::input::open_regular;
use crate::metric::{PairMetrics, QueryMeans, RankedQuery, RetrievalMetrics};

/// Longest record; ids are far shorter.
const RECORD_BYTES: usize = 1 << 20;

/// What a score file holds.
#[derive(Debug)]
pub(crate) struct ScoreFile {
    pub sha256: String,
    pub rows: u64,
    pub columns: Vec<String>,
    /// The metrics, or why the file gives none.
    pub values: Result<Values, String>,
}

/// Metrics of a score file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Values {
    Pair(PairMetrics),
    Retrieval(RetrievalMetrics),
}

impl Values {
    pub(crate) fn get(&self, metric: &str) -> Option<f64> {
        match self {
            Self::Pair(values) => values.get(metric),
            Self::Retrieval(values) => values.get(metric),
        }
    }
}

/// Reads a score file once, from beginning to end, a record at a time. `threshold` decides pairs. With `dataset`, every
/// row must be the item at its place, with its frozen gold.
///
/// # Errors
/// The file cannot be read, or is no CSV.
pub(crate) fn read_score_file(
    path: &Path,
    entry: &DatasetEntry,
    threshold: f64,
    dataset: Option<&Dataset>,
) -> Result<ScoreFile, String> {
    let mut items: Box<dyn Items> = match entry.family {
        Family::Pair => Box::new(Pairs::new(dataset, threshold)),
        Family::Retrieval => Box::new(Candidates::new(dataset, entry)),
    };
    let scanned = scan(path, items.as_mut())?;
    let values = match scanned.trouble {
        Some(trouble) => Err(trouble),
        None => items
            .finish()
            .map_err(|problem| format!("{}: {problem}", path.display())),
    };
    Ok(ScoreFile {
        sha256: scanned.sha256,
        rows: scanned.rows,
        columns: scanned.columns,
        values,
    })
}

/// The labels and scores of a pair score file, in file order.
#[derive(Debug)]
pub(crate) struct PairScores {
    pub labels: Vec<u8>,
    pub scores: Vec<f64>,
}

/// Reads a pair score file. With `dataset`, every row must be the pair at its place, with its frozen label.
///
/// # Errors
/// The file cannot be read, or does not hold pairs with scores.
pub(crate) fn read_pair_scores(
    path: &Path,
    dataset: Option<&Dataset>,
) -> Result<PairScores, String> {
    let mut items = Pairs::new(dataset, 0.5);
    if let Some(trouble) = scan(path, &mut items)?.trouble {
        return Err(trouble);
    }
    items
        .check_count()
        .map_err(|problem| format!("{}: {problem}", path.display()))?;
    Ok(PairScores {
        labels: items.labels,
        scores: items.scores,
    })
}

/// How many scores a score file holds, and the SHA-256 of them as little-endian doubles in file order: what a checkpoint
/// says of them, when none was left out of the file.
///
/// # Errors
/// The file cannot be read, or does not hold scores.
pub(crate) fn digest_scores(path: &Path) -> Result<(u64, String), String> {
    let mut items = Doubles::default();
    let scanned = scan(path, &mut items)?;
    match scanned.trouble {
        Some(trouble) => Err(trouble),
        None => Ok((scanned.rows, hex(&items.hash.finalize()))),
    }
}

/// The scores of any score file.
#[derive(Default)]
struct Doubles {
    score: Column,
    hash: Sha256,
}

impl Items for Doubles {
    fn read_header(&mut self, columns: &[String]) {
        self.score = column(columns, SCORE);
    }

    fn columns_missing(&self) -> Option<String> {
        missing(&[(SCORE, self.score)])
    }

    fn add(&mut self, _row: usize, record: &ByteRecord) -> Result<(), String> {
        let score = number(record, self.score, SCORE)?;
        self.hash.update(score.to_le_bytes());
        Ok(())
    }

    fn finish(&mut self) -> Result<Values, String> {
        Err("has scores alone".to_owned())
    }
}

/// What any score file has.
struct Scanned {
    sha256: String,
    rows: u64,
    columns: Vec<String>,
    /// The first row that is no item, or the columns that are missing.
    trouble: Option<String>,
}

fn scan(path: &Path, items: &mut dyn Items) -> Result<Scanned, String> {
    let describe = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = open_regular(path).map_err(|error| describe(&error))?;
    let mut reader = ReaderBuilder::new()
        .flexible(true)
        .buffer_capacity(64 << 10)
        .from_reader(Hashing::new(file));
    let header = reader
        .byte_headers()
        .map_err(|error| describe(&error))?
        .clone();
    let columns: Vec<String> = header
        .iter()
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    items.read_header(&columns);
    let mut trouble = items.columns_missing();
    let mut rows = 0;
    let mut record = ByteRecord::new();
    while next(&mut reader, &mut record).map_err(|error| describe(&error))? {
        if trouble.is_none()
            && let Err(problem) = items.add(rows as usize, &record)
        {
            let line = record.position().map_or(0, csv::Position::line);
            trouble = Some(format!("{}, line {line}: {problem}", path.display()));
        }
        rows += 1;
    }
    Ok(Scanned {
        sha256: hex(&reader.into_inner().hash.finalize()),
        rows,
        columns,
        trouble,
    })
}

/// Reads the next record; false at the end.
fn next(reader: &mut Reader<Hashing>, record: &mut ByteRecord) -> Result<bool, csv::Error> {
    reader.get_mut().left = RECORD_BYTES;
    reader.read_byte_record(record)
}

/// A file that hashes what is read from it, and stops at a record without end.
struct Hashing {
    file: File,
    hash: Sha256,
    left: usize,
}

impl Hashing {
    fn new(file: File) -> Self {
        Self {
            file,
            hash: Sha256::new(),
            left: RECORD_BYTES,
        }
    }
}

impl Read for Hashing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let problem = format!("a record is longer than {RECORD_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        let count = self.file.read(buffer)?;
        self.left = self.left.saturating_sub(count);
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}

/// The items of one family as they come.
trait Items {
    /// Takes the header.
    fn read_header(&mut self, columns: &[String]);
    /// The columns without which nothing can be computed.
    fn columns_missing(&self) -> Option<String>;
    /// Takes the item of a row, counted from 0.
    fn add(&mut self, row: usize, record: &ByteRecord) -> Result<(), String>;
    /// The metrics of all of them.
    fn finish(&mut self) -> Result<Values, String>;
}

/// A column that is needed.
type Column = Option<usize>;

fn column(columns: &[String], name: &str) -> Column {
    columns.iter().position(|column| column == name)
}

fn missing(needed: &[(&str, Column)]) -> Option<String> {
    let names: Vec<&str> = needed
        .iter()
        .filter(|(_, column)| column.is_none())
        .map(|(name, _)| *name)
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "metrics cannot be computed again without the column {}",
            names.join(", ")
        )
    })
}

fn cell(record: &ByteRecord, column: Column) -> &[u8] {
    column
        .and_then(|column| record.get(column))
        .unwrap_or_default()
}

fn number(record: &ByteRecord, column: Column, name: &str) -> Result<f64, String> {
    let text = std::str::from_utf8(cell(record, column)).unwrap_or_default();
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|number| number.is_finite())
        .ok_or_else(|| format!("{name} must be a finite number, not {text:?}"))
}

fn expect(record: &ByteRecord, column: Column, name: &str, frozen: &str) -> Result<(), String> {
    let found = cell(record, column);
    if found == frozen.as_bytes() {
        return Ok(());
    }
    let found = String::from_utf8_lossy(found);
    Err(format!(
        "{name} is {found:?}, but the frozen dataset has {frozen:?} at this place"
    ))
}

/// The rows of a pair score file.
struct Pairs<'a> {
    left: Column,
    right: Column,
    label: Column,
    score: Column,
    threshold: f64,
    dataset: Option<&'a Dataset>,
    labels: Vec<u8>,
    scores: Vec<f64>,
}

impl<'a> Pairs<'a> {
    fn new(dataset: Option<&'a Dataset>, threshold: f64) -> Self {
        Self {
            left: None,
            right: None,
            label: None,
            score: None,
            threshold,
            dataset,
            labels: Vec::new(),
            scores: Vec::new(),
        }
    }

    /// Refuses a file that ends before the frozen dataset does.
    fn check_count(&self) -> Result<(), String> {
        match self.dataset {
            Some(Dataset::Pair(data)) if data.left.len() != self.labels.len() => Err(format!(
                "has {} pairs, but the frozen dataset has {}",
                self.labels.len(),
                data.left.len()
            )),
            _ => Ok(()),
        }
    }
}

impl Items for Pairs<'_> {
    fn read_header(&mut self, columns: &[String]) {
        self.left = column(columns, "left_id");
        self.right = column(columns, "right_id");
        self.label = column(columns, "label");
        self.score = column(columns, SCORE);
    }

    fn columns_missing(&self) -> Option<String> {
        missing(&[
            ("left_id", self.left),
            ("right_id", self.right),
            ("label", self.label),
            (SCORE, self.score),
        ])
    }

    fn add(&mut self, row: usize, record: &ByteRecord) -> Result<(), String> {
        let label = match cell(record, self.label) {
            b"0" => 0,
            b"1" => 1,
            _ => return Err("label must be 0 or 1".to_owned()),
        };
        if let Some(Dataset::Pair(data)) = self.dataset {
            let (Some(&left), Some(&right)) = (data.left.get(row), data.right.get(row)) else {
                return Err(format!("the frozen dataset has {} pairs", data.left.len()));
            };
            expect(record, self.left, "left_id", &data.file_ids[left as usize])?;
            expect(
                record,
                self.right,
                "right_id",
                &data.file_ids[right as usize],
            )?;
            let frozen = if data.labels[row] == 1 { "1" } else { "0" };
            expect(record, self.label, "label", frozen)?;
        }
        self.labels.push(label);
        self.scores.push(number(record, self.score, SCORE)?);
        Ok(())
    }

    fn finish(&mut self) -> Result<Values, String> {
        let metrics = PairMetrics::compute(&self.labels, &self.scores, self.threshold);
        metrics
            .map(Values::Pair)
            .ok_or_else(|| "holds no pair".to_owned())
    }
}

/// The rows of a retrieval score file. Only the candidates of one query are held.
struct Candidates<'a> {
    query: Column,
    document: Column,
    relevance: Column,
    score: Column,
    k: u64,
    declared_queries: u64,
    place: Option<FrozenPlace<'a>>,
    query_id: Vec<u8>,
    /// Document ids of the query, one after another.
    ids: Vec<u8>,
    /// End of the id in `ids`, score, relevance.
    held: Vec<(usize, f64, f64)>,
    done: HashSet<Vec<u8>>,
    means: QueryMeans<Vec<u8>>,
}

impl<'a> Candidates<'a> {
    fn new(dataset: Option<&'a Dataset>, entry: &DatasetEntry) -> Self {
        Self {
            query: None,
            document: None,
            relevance: None,
            score: None,
            k: entry.k,
            declared_queries: entry.count("queries"),
            place: dataset.map(|dataset| FrozenPlace::new(dataset, entry.exclude_same_file)),
            query_id: Vec::new(),
            ids: Vec::new(),
            held: Vec::new(),
            done: HashSet::new(),
            means: QueryMeans::default(),
        }
    }

    /// Ends the query whose candidates are held.
    fn close(&mut self) -> Result<(), String> {
        if self.held.is_empty() {
            return Ok(());
        }
        let query = String::from_utf8_lossy(&self.query_id).into_owned();
        if !self.done.insert(self.query_id.clone()) {
            return Err(format!(
                "the candidates of query {query:?} do not stand together"
            ));
        }
        let mut ranked = RankedQuery::default();
        let mut seen = HashSet::with_capacity(self.held.len());
        let mut start = 0;
        for &(end, score, relevance) in &self.held {
            let id = &self.ids[start..end];
            if !seen.insert(id) {
                let id = String::from_utf8_lossy(id);
                return Err(format!("query {query:?} has document {id:?} twice"));
            }
            ranked.push(score, id, relevance);
            start = end;
        }
        self.means
            .add(self.query_id.clone(), ranked.metrics(self.k));
        self.ids.clear();
        self.held.clear();
        Ok(())
    }
}

impl Items for Candidates<'_> {
    fn read_header(&mut self, columns: &[String]) {
        self.query = column(columns, "query_id");
        self.document = column(columns, "document_id");
        self.relevance = column(columns, "relevance");
        self.score = column(columns, SCORE);
    }

    fn columns_missing(&self) -> Option<String> {
        missing(&[
            ("query_id", self.query),
            ("document_id", self.document),
            ("relevance", self.relevance),
            (SCORE, self.score),
        ])
    }

    fn add(&mut self, _row: usize, record: &ByteRecord) -> Result<(), String> {
        let relevance = number(record, self.relevance, "relevance")?;
        if relevance < 0.0 {
            return Err("relevance must be at least 0".to_owned());
        }
        if let Some(place) = &mut self.place {
            let (query_id, document_id, frozen) = place.next()?;
            expect(record, self.query, "query_id", query_id)?;
            expect(record, self.document, "document_id", document_id)?;
            if relevance != frozen {
                return Err(format!(
                    "relevance is {relevance}, but the frozen dataset has {frozen}"
                ));
            }
        }
        let query = cell(record, self.query);
        if query != self.query_id.as_slice() {
            self.close()?;
            self.query_id.clear();
            self.query_id.extend_from_slice(query);
        }
        let score = number(record, self.score, SCORE)?;
        self.ids.extend_from_slice(cell(record, self.document));
        self.held.push((self.ids.len(), score, relevance));
        Ok(())
    }

    fn finish(&mut self) -> Result<Values, String> {
        self.close()?;
        let scored = self.done.len() as u64;
        if scored > self.declared_queries {
            return Err(format!(
                "holds {scored} queries, but {} are frozen",
                self.declared_queries
            ));
        }
        let metrics = self.means.over(self.declared_queries);
        metrics
            .map(Values::Retrieval)
            .ok_or_else(|| "holds no query".to_owned())
    }
}

/// The candidates of a frozen dataset in the order of its score file.
struct FrozenPlace<'a> {
    dataset: &'a Dataset,
    exclude_same_file: bool,
    query: usize,
    document: usize,
    /// Document rows and relevance by query row.
    judged: Vec<Vec<(u32, f64)>>,
    /// Relevance to the current query by document row.
    relevance: Vec<f64>,
}

impl<'a> FrozenPlace<'a> {
    fn new(dataset: &'a Dataset, exclude_same_file: bool) -> Self {
        let (mut judged, mut documents) = (Vec::new(), 0);
        if let Dataset::Retrieval(data) = dataset {
            documents = data.document_ids.len();
            judged.resize(data.query_ids.len(), Vec::new());
            for &(query, document, relevance) in &data.judgments {
                judged[query as usize].push((document, relevance));
            }
        }
        let mut place = Self {
            dataset,
            exclude_same_file,
            query: 0,
            document: 0,
            judged,
            relevance: vec![0.0; documents],
        };
        place.judge();
        place
    }

    /// Spreads the judgments of the current query over the documents.
    fn judge(&mut self) {
        self.relevance.fill(0.0);
        for &(document, relevance) in self.judged.get(self.query).into_iter().flatten() {
            self.relevance[document as usize] = relevance;
        }
    }

    /// The next candidate: query id, document id and relevance.
    fn next(&mut self) -> Result<(&'a str, &'a str, f64), String> {
        let Dataset::Retrieval(data) = self.dataset else {
            return Err("the frozen dataset is of another family".to_owned());
        };
        loop {
            if self.document == data.document_ids.len() {
                self.document = 0;
                self.query += 1;
                self.judge();
            }
            let (Some(&query_file), Some(&document_file)) = (
                data.query_file.get(self.query),
                data.document_file.get(self.document),
            ) else {
                return Err("the frozen dataset has fewer candidates".to_owned());
            };
            let at = self.document;
            self.document += 1;
            if !(self.exclude_same_file && query_file == document_file) {
                return Ok((
                    &data.query_ids[self.query],
                    &data.document_ids[at],
                    self.relevance[at],
                ));
            }
        }
    }
}
