//! Where a conversation stands, and what it has gathered.

use proctor_wire::FromWorker;

/// An answer complete but for the worker's proper end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub(super) dataset: u32,
    pub(super) scores: Vec<f64>,
    pub(super) elapsed: u64,
}

/// A dataset that is being asked.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Question {
    pub(super) dataset: u32,
    pub(super) items: u64,
    pub(super) scores: Vec<f64>,
    pub(super) first_byte: Option<u64>,
    pub(super) last_score: u64,
    pub(super) all_sent: bool,
    pub(super) refused: Option<(String, u64)>,
}

impl Question {
    /// Nanoseconds since the first byte was sent.
    pub(super) fn elapsed(&self, until: u64) -> u64 {
        self.first_byte
            .map_or(0, |first| until.saturating_sub(first))
    }

    /// Takes in a batch of scores.
    pub(super) fn take(&mut self, start: u64, values: &[f64], now: u64) -> Result<(), String> {
        let dataset = self.dataset;
        if !self.all_sent || self.refused.is_some() {
            return Err(format!(
                "scores of dataset {dataset} came when they were not asked for"
            ));
        }
        let expected = self.scores.len() as u64;
        if start != expected {
            return Err(format!(
                "scores of dataset {dataset} start at {start}, expected was {expected}"
            ));
        }
        if values.len() as u64 > self.items - expected {
            return Err(format!(
                "more scores than the {} of dataset {dataset}",
                self.items
            ));
        }
        self.scores.extend_from_slice(values);
        self.last_score = now;
        Ok(())
    }
}

/// Where the conversation stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Phase {
    /// Waiting for the worker's hello.
    Hello,
    /// The shell opens this dataset.
    Opening(u32),
    /// A dataset is being sent and answered.
    Asking(Question),
    /// The shell stores the answer to this dataset.
    Storing { dataset: u32, scored: bool },
    /// Told to finish, waiting for `done`.
    Finishing(Option<Answer>),
    /// The worker said it is done and now has to exit.
    Done(Option<Answer>),
    /// The worker said it gives up and now has to exit.
    GivenUp,
    /// The worker ended well; its last answer is being stored.
    Closing,
    /// Nothing it says counts any more.
    Over,
}

/// The name of a message's type.
pub(super) fn name(message: &FromWorker) -> &'static str {
    match message {
        FromWorker::Hello { .. } => "hello",
        FromWorker::Scores { .. } => "scores",
        FromWorker::DatasetDone { .. } => "dataset_done",
        FromWorker::DatasetError { .. } => "dataset_error",
        FromWorker::Progress { .. } => "progress",
        FromWorker::WorkerError { .. } => "worker_error",
        FromWorker::Done {} => "done",
    }
}
