//! What the machine is told, and what it answers.

use super::super::{Stop, WaitStatus};

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::attempt) enum Event {
    /// The dataset that [`Action::Open`] asked for is ready to be sent.
    Opened {
        /// How many scores it asks for.
        items: u64,
    },
    /// The first byte of the open dataset was written.
    FirstByte,
    /// Everything of the open dataset was written.
    AllSent,
    /// What [`Action::Store`] or [`Action::Refused`] asked for is durable.
    Stored,
    /// The worker's program cannot be started, for a reason that lies in the program.
    NotExecutable(String),
    /// Our side failed.
    OurFailure(String),
    /// So many bytes were found in the scratch directory, which is more than allowed.
    Overrun(u64),
    /// Somebody asked to stop.
    Stop(Stop),
    /// The worker itself ended, at the time of this event.
    Ended(WaitStatus),
    /// The room stands still: from now on no time passes.
    Pause,
    /// The room is about to go on.
    Resume,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::attempt) enum Action {
    /// Open this dataset and send it; answer with [`Event::Opened`].
    Open(u32),
    /// Make these scores durable; answer with [`Event::Stored`] or [`Event::OurFailure`].
    Store {
        /// Number of the dataset.
        dataset: u32,
        /// Its scores in wire order.
        scores: Vec<f64>,
        /// Nanoseconds from the first byte sent to the last score.
        elapsed: u64,
    },
    /// Take note that the worker could not score this dataset; answer as for [`Action::Store`].
    Refused {
        /// Number of the dataset.
        dataset: u32,
        /// Why, in the worker's words.
        error: String,
        /// Nanoseconds from the first byte sent to the refusal.
        elapsed: u64,
    },
    /// Tell the worker that no dataset is left.
    Finish,
    /// Send SIGTERM to the worker.
    Terminate,
    /// Kill everything in the room.
    Kill,
    /// The worker ended by itself: look for what it left, then kill everything in the room.
    Settle,
}
