//! The questions of one attempt, and the desk where its answers become durable.

use super::live::Live;
use super::session::Session;
use crate::attempt::{Exam, Progress};
use crate::rundir::durable::{Appender, DiskResult};
use crate::rundir::record::{Answer, Checkpoint, Part, Role};
use crate::rundir::scores::write_scores;
use crate::rundir::session::Lease;
use proctor_protocol::dataset::{Blind, Dataset};
use proctor_protocol::frozen::{LoadedEntry, Protocol};
use proctor_protocol::method::Method;
use proctor_wire::{BlindDataset, PROTOCOL_VERSION, ToWorker};
use std::io;
use std::path::{Path, PathBuf};

/// One method's questions and answers.
#[derive(Debug)]
pub struct MethodExam<'a> {
    protocol: &'a Protocol,
    loaded: &'a [LoadedEntry],
    method: &'a Method,
    parts: &'a [Part],
    cores: u32,
    live: &'a Live,
    dir: PathBuf,
    lease: Lease,
    log: Appender,
    open: Option<Blind>,
}

impl<'a> MethodExam<'a> {
    /// The exam of one attempt, whose answers go below `dir`.
    ///
    /// # Errors
    /// The log of checkpoints cannot be made, or there is one already.
    pub fn new(
        session: &'a Session,
        method: &'a Method,
        parts: &'a [Part],
        cores: u32,
        live: &'a Live,
        dir: &Path,
        lease: Lease,
    ) -> DiskResult<Self> {
        Ok(Self {
            protocol: &session.plan.protocol,
            loaded: &session.loaded,
            method,
            parts,
            cores,
            live,
            dir: dir.to_path_buf(),
            lease,
            log: Appender::create(&dir.join("checkpoints.log"))?,
            open: None,
        })
    }

    fn part(&self, number: u32) -> io::Result<Part> {
        let part = self.parts.get(number as usize).copied();
        part.ok_or_else(|| io::Error::other(format!("there is no part {number} to score")))
    }

    fn append(&mut self, part: Part, elapsed_seconds: f64, answer: Answer) -> io::Result<()> {
        if self.lease.is_lost() {
            return Err(io::Error::other("a later session took the run over"));
        }
        let checkpoint = Checkpoint {
            part,
            elapsed_seconds,
            at_seconds: self.live.glance().elapsed.unwrap_or(0.0),
            answer,
        };
        self.log
            .append(&checkpoint.to_line())
            .map_err(io::Error::other)
    }
}

/// The data of a part.
fn data(loaded: &[LoadedEntry], part: Part) -> Option<&Dataset> {
    let entry = loaded.get(part.dataset)?;
    match part.role {
        Role::Test => Some(&entry.test),
        Role::Validation => entry.validation.as_ref(),
    }
}

impl Exam for MethodExam<'_> {
    fn count(&self) -> u32 {
        self.parts.len() as u32
    }

    fn hello(&self) -> ToWorker {
        ToWorker::Hello {
            protocol: PROTOCOL_VERSION,
            datasets: self.count(),
            cores: self.cores,
            method: self.method.wire_value(),
        }
    }

    fn open(&mut self, dataset: u32) -> io::Result<BlindDataset> {
        let part = self.part(dataset)?;
        let data = data(self.loaded, part).ok_or_else(|| {
            io::Error::other(format!("the data of {} is not loaded", part.label()))
        })?;
        let language = self.protocol.datasets()[part.dataset]
            .code_language
            .as_deref();
        let blind = Blind::new(
            data,
            self.protocol.id(),
            &part.label(),
            &self.method.id,
            language,
        );
        let questions = blind.dataset.clone();
        self.open = Some(blind);
        Ok(questions)
    }

    fn checkpoint(&mut self, dataset: u32, scores: Vec<f64>, elapsed: f64) -> io::Result<()> {
        let part = self.part(dataset)?;
        let blind = self.open.take();
        let blind = blind.ok_or_else(|| io::Error::other("scores came before their questions"))?;
        let frozen = blind.to_frozen(&scores);
        drop(scores);
        let sha256 = write_scores(&self.dir.join(part.score_file()), &frozen);
        let answer = Answer::Scored {
            items: frozen.len() as u64,
            sha256: sha256.map_err(io::Error::other)?,
        };
        self.append(part, elapsed, answer)
    }

    fn failed(&mut self, dataset: u32, error: &str, elapsed: f64) -> io::Result<()> {
        let part = self.part(dataset)?;
        self.open = None;
        let answer = Answer::Failed {
            error: error.to_owned(),
        };
        self.append(part, elapsed, answer)
    }

    fn progress(&mut self, progress: Progress<'_>) {
        match progress {
            Progress::Started { ago } => self.live.started(ago),
            Progress::Hello { .. } => {}
            Progress::Dataset { dataset, items } => self.live.open(dataset, items),
            Progress::Items { done, .. } => self.live.items(done),
            Progress::Paused { total } => self.live.paused(total),
        }
    }
}
