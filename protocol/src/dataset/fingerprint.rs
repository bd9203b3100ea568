//! The fingerprint of a dataset's content, on which protocols rest.

use sha2::{Digest, Sha256};

use super::{Dataset, Table};
use crate::canonical::{Value, hex, push_float, push_raw};
use crate::object;

/// What a dataset holds: the digest of its canonical records and how many there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Lower-case hex SHA-256.
    pub sha256: String,
    /// Rows of each table, in the order files, pairs or files, queries, corpus, qrels.
    pub counts: Vec<(&'static str, usize)>,
}

impl Content {
    /// `{"sha256": ..., "counts": {table: rows}}`.
    pub fn to_value(&self) -> Value {
        let counts: crate::canonical::Object = self.counts.iter().copied().collect();
        object! { "sha256" => self.sha256.as_str(), "counts" => counts }
    }
}

/// Columns of `files.csv` that are not content: they say where a text lies, or stand in for it.
const NOT_CONTENT: [&str; 3] = ["path", "file_path", "text"];

/// The content fingerprint of specs/matheel.md section a. The canonical text is hashed as it is made.
pub(super) fn content(dataset: &Dataset) -> Content {
    let mut stream = Stream::new();
    let mut counts = Vec::new();
    match dataset {
        Dataset::Pair(data) => {
            let labels = Replaced::Labels(&data.labels);
            // Tables in key order, as canonical text has them.
            stream.files(&data.files, &data.texts);
            stream.table("pairs", &data.pairs, Some(("label", labels)));
            counts.push(("files", data.files.rows()));
            counts.push(("pairs", data.pairs.rows()));
        }
        Dataset::Retrieval(data) => {
            let relevance = Replaced::Relevance(&data.judgments);
            stream.table("corpus", &data.corpus, None);
            stream.files(&data.files, &data.texts);
            stream.table("qrels", &data.qrels, Some(("relevance", relevance)));
            stream.table("queries", &data.queries, None);
            counts.push(("files", data.files.rows()));
            counts.push(("queries", data.queries.rows()));
            counts.push(("corpus", data.corpus.rows()));
            counts.push(("qrels", data.qrels.rows()));
        }
    }
    Content {
        sha256: stream.finish(),
        counts,
    }
}

/// Values that stand in the place of a column's text.
#[derive(Clone, Copy)]
enum Replaced<'a> {
    Labels(&'a [u8]),
    Relevance(&'a [(u32, u32, f64)]),
    Texts(&'a [std::sync::Arc<str>]),
}

struct Stream {
    hash: Sha256,
    buffer: String,
    tables: usize,
}

impl Stream {
    const ENOUGH: usize = 64 << 10;

    fn new() -> Self {
        Self {
            hash: Sha256::new(),
            buffer: String::from("{"),
            tables: 0,
        }
    }

    fn finish(mut self) -> String {
        self.buffer.push('}');
        self.hash.update(self.buffer.as_bytes());
        hex(&self.hash.finalize())
    }

    fn files(&mut self, files: &Table, texts: &[std::sync::Arc<str>]) {
        self.rows(
            "files",
            files,
            &NOT_CONTENT,
            Some(("text", Replaced::Texts(texts))),
        );
    }

    fn table(&mut self, name: &str, table: &Table, replaced: Option<(&str, Replaced<'_>)>) {
        self.rows(name, table, &[], replaced);
    }

    fn rows(
        &mut self,
        name: &str,
        table: &Table,
        left_out: &[&str],
        replaced: Option<(&str, Replaced<'_>)>,
    ) {
        let replaced_name = replaced.map(|(name, _)| name);
        let mut columns: Vec<(&str, Option<usize>)> = table
            .columns
            .iter()
            .enumerate()
            .map(|(index, column)| (column.as_str(), Some(index)))
            .filter(|(column, _)| !left_out.contains(column) && Some(*column) != replaced_name)
            .chain(replaced_name.map(|column| (column, None)))
            .collect();
        columns.sort_unstable();
        let keys: Vec<(String, Option<usize>)> = columns
            .into_iter()
            .enumerate()
            .map(|(n, (column, index))| {
                let mut key = String::from(if n == 0 { "{" } else { "," });
                push_raw(&mut key, column);
                key.push(':');
                (key, index)
            })
            .collect();
        if self.tables > 0 {
            self.buffer.push(',');
        }
        self.tables += 1;
        push_raw(&mut self.buffer, name);
        self.buffer.push_str(":[");
        for row in 0..table.rows() {
            if row > 0 {
                self.buffer.push(',');
            }
            for (key, index) in &keys {
                self.buffer.push_str(key);
                match (index, replaced) {
                    (Some(index), _) => push_raw(&mut self.buffer, table.get(row, *index)),
                    (None, Some((_, Replaced::Labels(values)))) => {
                        self.buffer.push(if values[row] == 0 { '0' } else { '1' });
                    }
                    (None, Some((_, Replaced::Relevance(values)))) => {
                        push_float(&mut self.buffer, values[row].2);
                    }
                    (None, Some((_, Replaced::Texts(values)))) => {
                        push_raw(&mut self.buffer, &values[row]);
                    }
                    (None, None) => {}
                }
            }
            self.buffer.push('}');
            if self.buffer.len() > Self::ENOUGH {
                self.hash.update(self.buffer.as_bytes());
                self.buffer.clear();
            }
        }
        self.buffer.push(']');
    }
}
