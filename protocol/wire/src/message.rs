//! The messages and their strict reading.

use serde::{Deserialize, Serialize};

/// What kind of task a dataset is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Scores for listed pairs of texts.
    Pair,
    /// A score for every query with every document, row by row.
    Retrieval,
}

impl Family {
    /// The name on the wire and in Matheel's `task_family` column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pair => "pair",
            Self::Retrieval => "retrieval",
        }
    }
}

/// What the supervisor says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", try_from = "FlatToWorker")]
pub enum ToWorker {
    /// The first line.
    Hello {
        /// [`crate::PROTOCOL_VERSION`] of the supervisor.
        protocol: u32,
        /// How many datasets will come.
        datasets: u32,
        /// How many cores the room has; a worker uses at most as many threads.
        cores: u32,
        /// The method's effective configuration, without its display name.
        method: serde_json::Value,
    },
    /// Opens dataset number `dataset`.
    Dataset {
        /// Number of the dataset in this conversation, from 0.
        dataset: u32,
        /// Its task family.
        family: Family,
        /// How many texts follow.
        texts: u32,
        /// How many scores are asked for: the pairs, or `queries * documents`.
        items: u64,
        /// Retrieval only: texts `0..queries` are the queries.
        #[serde(skip_serializing_if = "Option::is_none")]
        queries: Option<u32>,
        /// Retrieval only: texts `queries..queries+documents` are the documents.
        #[serde(skip_serializing_if = "Option::is_none")]
        documents: Option<u32>,
        /// The programming language the benchmark declares, if any.
        code_language: Option<String>,
    },
    /// Whole texts `start..start+values.len()`.
    Texts {
        /// Number of the first text.
        start: u32,
        /// The texts.
        values: Vec<String>,
    },
    /// One piece of a text too long for one line; pieces of a text come in order and together.
    TextPart {
        /// Number of the text.
        index: u32,
        /// True on the last piece.
        last: bool,
        /// The piece; the text is the concatenation of its pieces.
        value: String,
    },
    /// Pairs `start..start+left.len()`, as text numbers.
    Pairs {
        /// Number of the first pair.
        start: u64,
        /// Left texts.
        left: Vec<u32>,
        /// Right texts, as many.
        right: Vec<u32>,
    },
    /// Everything of this dataset was sent: score it.
    Score {
        /// Number of the dataset.
        dataset: u32,
    },
    /// No dataset is left: say [`FromWorker::Done`] and exit with code 0.
    Finish {},
}

/// What a worker says.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromWorker {
    /// The first line.
    Hello {
        /// The version the worker speaks.
        protocol: u32,
        /// Name and version of the worker program, for the record only.
        worker: String,
    },
    /// Scores of items `start..start+values.len()` of the open dataset. Batches are contiguous.
    Scores {
        /// Number of the first item.
        start: u64,
        /// Finite numbers.
        values: Vec<f64>,
    },
    /// Every item of the dataset has its score.
    DatasetDone {
        /// Number of the dataset.
        dataset: u32,
    },
    /// This dataset cannot be scored; the worker is ready for the next one.
    DatasetError {
        /// Number of the dataset.
        dataset: u32,
        /// Why, for people.
        error: String,
    },
    /// A sign of life; it changes nothing.
    Progress {
        /// Items of the open dataset finished so far, by the worker's own count.
        items: u64,
    },
    /// The worker gives up; nothing more will come.
    WorkerError {
        /// Why, for people.
        error: String,
    },
    /// The answer to [`ToWorker::Finish`].
    Done {},
}

/// Why a line is not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Not valid UTF-8 or not a JSON object of the known form.
    #[error("not a message: {0}")]
    Malformed(String),
    /// A field is absent or does not belong to this type of message.
    #[error("message `{kind}` {problem}")]
    Field {
        /// The `type` it names.
        kind: String,
        /// What is wrong.
        problem: String,
    },
    /// An unknown `type`.
    #[error("unknown message type `{0}`")]
    UnknownType(String),
}

/// Refuses a message that lacks a wanted field or has another one, `allowed` ones aside.
fn demand(
    kind: &str,
    present: &[(&str, bool)],
    wanted: &[&str],
    allowed: &[&str],
) -> Result<(), WireError> {
    for &(name, present) in present {
        let problem = match (wanted.contains(&name), present) {
            (true, false) => format!("lacks the field `{name}`"),
            (false, true) if !allowed.contains(&name) => format!("has no field `{name}`"),
            _ => continue,
        };
        return Err(WireError::Field {
            kind: kind.to_owned(),
            problem,
        });
    }
    Ok(())
}

fn unknown_type(name: &str) -> WireError {
    WireError::UnknownType(name.chars().take(80).collect())
}

/// All fields of all messages of a worker in one flat struct: a score batch is then read straight into its
/// vector, and an unknown field is refused before its value is looked at.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Flat {
    r#type: String,
    protocol: Option<u32>,
    worker: Option<String>,
    start: Option<u64>,
    values: Option<Vec<f64>>,
    dataset: Option<u32>,
    error: Option<String>,
    items: Option<u64>,
}

impl Flat {
    /// Names of the fields that are present, `type` left out.
    fn present(&self) -> [(&'static str, bool); 7] {
        [
            ("protocol", self.protocol.is_some()),
            ("worker", self.worker.is_some()),
            ("start", self.start.is_some()),
            ("values", self.values.is_some()),
            ("dataset", self.dataset.is_some()),
            ("error", self.error.is_some()),
            ("items", self.items.is_some()),
        ]
    }
}

impl FromWorker {
    /// Reads one line, without its line feed.
    ///
    /// # Errors
    /// [`WireError`] when the line is not exactly one known message. Numbers that are not finite cannot be written
    /// in JSON, so a score that is accepted is finite.
    pub fn parse(line: &[u8]) -> Result<Self, WireError> {
        let flat: Flat = serde_json::from_slice(line)
            .map_err(|error| WireError::Malformed(error.to_string()))?;
        let wanted: &[&str] = match flat.r#type.as_str() {
            "hello" => &["protocol", "worker"],
            "scores" => &["start", "values"],
            "dataset_done" => &["dataset"],
            "dataset_error" => &["dataset", "error"],
            "progress" => &["items"],
            "worker_error" => &["error"],
            "done" => &[],
            other => return Err(unknown_type(other)),
        };
        demand(&flat.r#type, &flat.present(), wanted, &[])?;
        let Flat {
            r#type,
            protocol,
            worker,
            start,
            values,
            dataset,
            error,
            items,
        } = flat;
        let message = match (
            r#type.as_str(),
            protocol,
            worker,
            start,
            values,
            dataset,
            error,
            items,
        ) {
            ("hello", Some(protocol), Some(worker), ..) => Self::Hello { protocol, worker },
            ("scores", _, _, Some(start), Some(values), ..) => Self::Scores { start, values },
            ("dataset_done", _, _, _, _, Some(dataset), ..) => Self::DatasetDone { dataset },
            ("dataset_error", _, _, _, _, Some(dataset), Some(error), _) => {
                Self::DatasetError { dataset, error }
            }
            ("progress", .., Some(items)) => Self::Progress { items },
            ("worker_error", _, _, _, _, _, Some(error), _) => Self::WorkerError { error },
            _ => Self::Done {},
        };
        Ok(message)
    }
}

/// All fields of all messages of the supervisor, for the same reasons as [`Flat`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FlatToWorker {
    r#type: String,
    protocol: Option<u32>,
    datasets: Option<u32>,
    cores: Option<u32>,
    method: Option<serde_json::Value>,
    dataset: Option<u32>,
    family: Option<Family>,
    texts: Option<u32>,
    items: Option<u64>,
    queries: Option<u32>,
    documents: Option<u32>,
    code_language: Option<String>,
    start: Option<u64>,
    values: Option<Vec<String>>,
    index: Option<u32>,
    last: Option<bool>,
    value: Option<String>,
    left: Option<Vec<u32>>,
    right: Option<Vec<u32>>,
}

impl FlatToWorker {
    /// Names of the fields that are present, `type` left out.
    fn present(&self) -> [(&'static str, bool); 18] {
        [
            ("protocol", self.protocol.is_some()),
            ("datasets", self.datasets.is_some()),
            ("cores", self.cores.is_some()),
            ("method", self.method.is_some()),
            ("dataset", self.dataset.is_some()),
            ("family", self.family.is_some()),
            ("texts", self.texts.is_some()),
            ("items", self.items.is_some()),
            ("queries", self.queries.is_some()),
            ("documents", self.documents.is_some()),
            ("code_language", self.code_language.is_some()),
            ("start", self.start.is_some()),
            ("values", self.values.is_some()),
            ("index", self.index.is_some()),
            ("last", self.last.is_some()),
            ("value", self.value.is_some()),
            ("left", self.left.is_some()),
            ("right", self.right.is_some()),
        ]
    }
}

impl ToWorker {
    /// The name of the message on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Hello { .. } => "hello",
            Self::Dataset { .. } => "dataset",
            Self::Texts { .. } => "texts",
            Self::TextPart { .. } => "text_part",
            Self::Pairs { .. } => "pairs",
            Self::Score { .. } => "score",
            Self::Finish {} => "finish",
        }
    }

    /// Reads one line, without its line feed.
    ///
    /// # Errors
    /// [`WireError`] when the line is not exactly one known message.
    pub fn parse(line: &[u8]) -> Result<Self, WireError> {
        let flat: FlatToWorker = serde_json::from_slice(line)
            .map_err(|error| WireError::Malformed(error.to_string()))?;
        flat.try_into()
    }
}

impl TryFrom<FlatToWorker> for ToWorker {
    type Error = WireError;

    fn try_from(flat: FlatToWorker) -> Result<Self, WireError> {
        let (wanted, allowed): (&[&str], &[&str]) = match flat.r#type.as_str() {
            "hello" => (&["protocol", "datasets", "cores", "method"], &[]),
            "dataset" => (
                &["dataset", "family", "texts", "items"],
                &["queries", "documents", "code_language"],
            ),
            "texts" => (&["start", "values"], &[]),
            "text_part" => (&["index", "last", "value"], &[]),
            "pairs" => (&["start", "left", "right"], &[]),
            "score" => (&["dataset"], &[]),
            "finish" => (&[], &[]),
            other => return Err(unknown_type(other)),
        };
        demand(&flat.r#type, &flat.present(), wanted, allowed)?;
        flat.into_message().ok_or_else(|| {
            WireError::Malformed("a number is out of the range of its field".to_owned())
        })
    }
}

impl FlatToWorker {
    /// The message, whose wanted fields were seen to be there; `None` when a number does not fit.
    fn into_message(self) -> Option<ToWorker> {
        Some(match self.r#type.as_str() {
            "hello" => ToWorker::Hello {
                protocol: self.protocol?,
                datasets: self.datasets?,
                cores: self.cores?,
                method: self.method?,
            },
            "dataset" => ToWorker::Dataset {
                dataset: self.dataset?,
                family: self.family?,
                texts: self.texts?,
                items: self.items?,
                queries: self.queries,
                documents: self.documents,
                code_language: self.code_language,
            },
            "texts" => ToWorker::Texts {
                start: u32::try_from(self.start?).ok()?,
                values: self.values?,
            },
            "text_part" => ToWorker::TextPart {
                index: self.index?,
                last: self.last?,
                value: self.value?,
            },
            "pairs" => ToWorker::Pairs {
                start: self.start?,
                left: self.left?,
                right: self.right?,
            },
            "score" => ToWorker::Score {
                dataset: self.dataset?,
            },
            _ => ToWorker::Finish {},
        })
    }
}

#[cfg(test)]
mod tests;
