//! What an attempt asks of its caller: the questions, and a place for the answers.

use std::io;
use std::time::Duration;

use proctor_wire::{BlindDataset, ToWorker};

/// The questions of one attempt and the desk its answers go to. Datasets are numbered from 0 in the order they are put.
/// All calls come from the thread that called [`super::run`]; time they take counts against the budget.
pub trait Exam {
    /// How many datasets there are.
    fn count(&self) -> u32;

    /// The opening message, [`ToWorker::Hello`].
    fn hello(&self) -> ToWorker;

    /// The questions of dataset `dataset`.
    ///
    /// # Errors
    /// Ends the attempt as `infrastructure`.
    fn open(&mut self, dataset: u32) -> io::Result<BlindDataset>;

    /// Takes the complete scores of a dataset, in wire order, and makes them durable before it returns. `elapsed` is
    /// in seconds, from the first byte of the dataset sent to the last accepted score. For the last dataset the call
    /// comes only after the worker said it is done and exited with code 0 in time.
    ///
    /// # Errors
    /// Ends the attempt as `infrastructure`.
    fn checkpoint(&mut self, dataset: u32, scores: Vec<f64>, elapsed: f64) -> io::Result<()>;

    /// Takes note that the worker could not score a dataset, durably.
    ///
    /// # Errors
    /// Ends the attempt as `infrastructure`.
    fn failed(&mut self, dataset: u32, error: &str, elapsed: f64) -> io::Result<()>;

    /// Hears how it goes; for display only.
    fn progress(&mut self, progress: Progress<'_>) {
        let _ = progress;
    }
}

/// How an attempt goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress<'a> {
    /// The room stands and the worker was started.
    Started {
        /// How long ago its time began to run.
        ago: std::time::Duration,
    },
    /// The worker said hello.
    Hello {
        /// Name and version by its own account.
        worker: &'a str,
    },
    /// A dataset was opened.
    Dataset {
        /// Its number.
        dataset: u32,
        /// How many scores are asked for.
        items: u64,
    },
    /// Scores of the open dataset arrived, or the worker gave a sign of life.
    Items {
        /// Number of the dataset.
        dataset: u32,
        /// Scores accepted, or items finished by the worker's own count when that is more.
        done: u64,
    },
    /// A pause is over.
    Paused {
        /// How long all of them were together.
        total: Duration,
    },
}
