//! The conversation with the supervisor.

use crate::corpus::Corpus;
use crate::parallel;
use crate::plan::{self, Task};
use crate::questions::{Arriving, Items, Questions, unexpected};
use crate::scorer::Scorer;
use proctor_wire::limits::SCORE_BATCH;
use proctor_wire::line::LineBuffer;
use proctor_wire::{FromWorker, PROTOCOL_VERSION, ToWorker};
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::num::NonZero;
use std::time::{Duration, Instant};

/// Scores that are held before they are written; a block is one or more whole rows of a matrix, or so many pairs.
const BLOCK: usize = 1 << 18;

/// A matrix is scored this many rows at a time at most, so that rows come steadily.
const BLOCK_ROWS: usize = 64;

/// How long the worker stays silent at most, as far as one share of work allows.
const SILENCE: Duration = Duration::from_secs(1);

/// Why a conversation ended before `done`.
#[derive(Debug, thiserror::Error)]
pub enum Ending {
    /// The other side closed a pipe.
    #[error("the supervisor closed the pipe")]
    Closed,
    /// The worker gave up and said why.
    #[error("{0}")]
    GaveUp(String),
    /// A pipe failed otherwise.
    #[error("cannot talk to the supervisor: {0}")]
    Io(std::io::Error),
}

impl From<std::io::Error> for Ending {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

/// Serves one method from `hello` to `done`.
///
/// # Errors
/// [`Ending`] when the conversation ends earlier. What the worker gives up for (a configuration it cannot score, a
/// message out of order) was said in a `worker_error` before.
pub fn serve(input: impl Read, output: impl Write) -> Result<(), Ending> {
    let mut session = Session {
        input,
        bytes: vec![0; 1 << 16].into_boxed_slice(),
        lines: LineBuffer::new(),
        output: BufWriter::with_capacity(1 << 16, output),
    };
    match session.converse() {
        Err(Ending::GaveUp(error)) => {
            session.say(&FromWorker::WorkerError {
                error: error.clone(),
            })?;
            Err(Ending::GaveUp(error))
        }
        other => other,
    }
}

struct Session<I, O: Write> {
    input: I,
    bytes: Box<[u8]>,
    lines: LineBuffer,
    output: BufWriter<O>,
}

impl<I: Read, O: Write> Session<I, O> {
    fn converse(&mut self) -> Result<(), Ending> {
        let (scorer, datasets, threads) = self.greet()?;
        for number in 0..datasets {
            let questions = self.questions(number)?;
            self.answer(&scorer, &questions, threads)?;
        }
        match self.hear()? {
            ToWorker::Finish {} => self.say(&FromWorker::Done {}),
            other => Err(Ending::GaveUp(unexpected("`finish`", &other))),
        }
    }

    /// Shakes hands; gives the scorer, the number of datasets and of threads.
    fn greet(&mut self) -> Result<(Scorer, u32, usize), Ending> {
        let message = self.hear()?;
        let ToWorker::Hello {
            protocol,
            datasets,
            cores,
            method,
        } = message
        else {
            return Err(Ending::GaveUp(unexpected("`hello`", &message)));
        };
        self.say(&FromWorker::Hello {
            protocol: PROTOCOL_VERSION,
            worker: concat!("proctor-worker ", env!("CARGO_PKG_VERSION")).to_owned(),
        })?;
        if protocol != PROTOCOL_VERSION {
            return Err(Ending::GaveUp(format!(
                "expected version {PROTOCOL_VERSION} of the conversation, got {protocol}"
            )));
        }
        if method.get("kind").and_then(|kind| kind.as_str()) != Some("builtin") {
            return Err(Ending::GaveUp(
                "expected a method whose `kind` is `builtin`".to_owned(),
            ));
        }
        let configuration = method
            .get("configuration")
            .ok_or_else(|| Ending::GaveUp("expected a `configuration` in the method".to_owned()))?;
        let scorer = Scorer::from_configuration(configuration)
            .map_err(|refusal| Ending::GaveUp(refusal.to_string()))?;
        let available = std::thread::available_parallelism().map_or(1, NonZero::get);
        let threads = (cores as usize).clamp(1, available);
        Ok((scorer, datasets, threads))
    }

    fn questions(&mut self, number: u32) -> Result<Questions, Ending> {
        let first = self.hear()?;
        let mut arriving = Arriving::open(number, first).map_err(Ending::GaveUp)?;
        loop {
            let message = self.hear()?;
            match arriving.take(message).map_err(Ending::GaveUp)? {
                Ok(questions) => return Ok(questions),
                Err(more) => arriving = more,
            }
        }
    }

    fn answer(
        &mut self,
        scorer: &Scorer,
        questions: &Questions,
        threads: usize,
    ) -> Result<(), Ending> {
        let dataset = questions.dataset;
        let language = questions.code_language.as_deref();
        let corpus = Corpus::prepare(&questions.texts, scorer.settings(), language, threads);
        let mut answers = Answers {
            scorer,
            corpus: &corpus,
            threads,
            written: 0,
            spoken: Instant::now(),
        };
        let refused = match &questions.items {
            Items::Pairs { left, right } => {
                let blocks = left.chunks(BLOCK).zip(right.chunks(BLOCK));
                let mut tasks = blocks.map(|(l, r)| (plan::pairs(&corpus, l, r), l.len()));
                tasks.try_for_each(|(tasks, count)| answers.block(self, &tasks, count))
            }
            Items::Matrix { queries } => {
                let texts = questions.texts.len() as u32;
                let documents = plan::by_length(&corpus, *queries, texts);
                let rows = (BLOCK / documents.len().max(1)).clamp(1, BLOCK_ROWS);
                let numbers: Vec<u32> = (0..*queries).collect();
                numbers.chunks(rows).try_for_each(|block| {
                    let tasks = plan::rows(block, *queries, &documents);
                    answers.block(self, &tasks, block.len() * documents.len())
                })
            }
        };
        match refused {
            Ok(()) => self.say(&FromWorker::DatasetDone { dataset }),
            Err(Stop::Refused(error)) => self.say(&FromWorker::DatasetError { dataset, error }),
            Err(Stop::Ended(ending)) => Err(ending),
        }
    }

    /// The next message.
    fn hear(&mut self) -> Result<ToWorker, Ending> {
        loop {
            match self.lines.next_line() {
                Ok(Some(line)) => {
                    return ToWorker::parse(line)
                        .map_err(|error| Ending::GaveUp(error.to_string()));
                }
                Ok(None) => {}
                Err(error) => return Err(Ending::GaveUp(error.to_string())),
            }
            match self.input.read(&mut self.bytes) {
                Ok(0) => return Err(Ending::Closed),
                Ok(count) => self.lines.push(&self.bytes[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn say(&mut self, message: &FromWorker) -> Result<(), Ending> {
        self.write(message)?;
        self.output.flush()?;
        Ok(())
    }

    fn write(&mut self, message: &FromWorker) -> Result<(), Ending> {
        serde_json::to_writer(&mut self.output, message).map_err(std::io::Error::from)?;
        self.output.write_all(b"\n")?;
        Ok(())
    }
}

/// Why the scoring of a dataset stops.
enum Stop {
    /// This dataset cannot be scored.
    Refused(String),
    /// Nothing more can be said.
    Ended(Ending),
}

impl From<Ending> for Stop {
    fn from(ending: Ending) -> Self {
        Self::Ended(ending)
    }
}

/// The answers of one dataset under way.
struct Answers<'a> {
    scorer: &'a Scorer,
    corpus: &'a Corpus,
    threads: usize,
    written: u64,
    spoken: Instant,
}

impl Answers<'_> {
    /// Scores the tasks of a block of `count` items and writes the scores in order.
    fn block<I: Read, O: Write>(
        &mut self,
        session: &mut Session<I, O>,
        tasks: &[Task],
        count: usize,
    ) -> Result<(), Stop> {
        let mut scores = vec![0.0; count];
        let mut done = 0;
        let mut share = 64 * self.threads;
        let mut rest = tasks;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(share.min(rest.len()));
            rest = later;
            let started = Instant::now();
            let results = parallel::map(
                self.threads,
                now.len(),
                || self.scorer.memory(self.corpus),
                |memory, at| self.scorer.score(self.corpus, memory, &now[at].tile),
            );
            for (task, values) in now.iter().zip(results) {
                done += values.len();
                for (&place, value) in task.places.iter().zip(values) {
                    scores[place as usize] = value;
                }
            }
            if started.elapsed() < SILENCE / 8 {
                share *= 2;
            }
            if !rest.is_empty() && self.spoken.elapsed() > SILENCE {
                let items = self.written + done as u64;
                session.say(&FromWorker::Progress { items })?;
                self.spoken = Instant::now();
            }
        }
        self.write(session, &scores)
    }

    fn write<I: Read, O: Write>(
        &mut self,
        session: &mut Session<I, O>,
        scores: &[f64],
    ) -> Result<(), Stop> {
        if let Some(at) = scores.iter().position(|score| !score.is_finite()) {
            return Err(Stop::Refused(format!(
                "the score of item {} is not finite",
                self.written + at as u64
            )));
        }
        for batch in scores.chunks(SCORE_BATCH) {
            session.write(&FromWorker::Scores {
                start: self.written,
                values: batch.to_vec(),
            })?;
            self.written += batch.len() as u64;
        }
        session.output.flush().map_err(Ending::from)?;
        self.spoken = Instant::now();
        Ok(())
    }
}
