//! What the daemon shows: the documents of its API, of its event streams, and of everything that is drawn from them.
//!
//! Texts of methods (names, outcomes, stderr) come as they are, except that stderr lines have had their control
//! characters made visible: who puts them on a page escapes them. Times of day are UTC, to the second, and for people;
//! durations are seconds. What is not known is `null`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where a run is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It waits for its turn.
    Queued,
    /// Its methods are run.
    Running,
    /// Nothing more happens to it.
    Ended,
}

/// Where a method of a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MethodState {
    /// It waits for its turn.
    Queued,
    /// Its newest attempt goes on.
    Running,
    /// Its newest attempt ended, or it needs none; `outcome` says how.
    Ended,
}

/// How a method or an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutcomeView {
    /// The stable name of the outcome: `completed`, `timeout`, `signal`, ...
    pub kind: String,
    /// The outcome in one sentence with its numbers, without a full stop.
    pub sentence: String,
    /// True when nothing failed.
    pub succeeded: bool,
    /// True when the method answers for it; false when it is ours.
    pub charged: bool,
}

/// One attempt of a method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttemptView {
    /// Its name, `0001.local.r0`.
    pub id: String,
    /// When it started.
    pub started_utc: Option<String>,
    /// When its record was written; `null` while it goes on, and for ever when its supervisor was lost.
    pub ended_utc: Option<String>,
    /// Seconds from spawn to verdict, or so far.
    pub seconds: f64,
    /// How it ended.
    pub outcome: Option<OutcomeView>,
    /// True for the attempt that counts: the newest that started.
    pub counts: bool,
    /// Its cores.
    pub cores: Vec<usize>,
    /// When it was paused, once it has ended.
    pub pauses: Vec<PauseView>,
    /// What else is worth a word about it, each in one sentence without a full stop.
    pub remarks: Vec<String>,
}

/// A time in which an attempt stood still.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PauseView {
    /// Seconds from the start of the attempt.
    pub after_seconds: f64,
    /// How long it lasted.
    pub seconds: f64,
}

/// One method of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MethodView {
    /// Its display name.
    pub name: String,
    /// Its method id.
    pub id: String,
    /// Where it is.
    pub state: MethodState,
    /// How it ended.
    pub outcome: Option<OutcomeView>,
    /// Where it is, or how it ended, in one sentence without a full stop.
    pub sentence: String,
    /// Seconds of its budget that are used, those of attempts it goes on from included.
    pub elapsed_seconds: f64,
    /// What it may use.
    pub budget_seconds: f64,
    /// Seconds until everything is answered at the pace so far, while it runs.
    pub eta_seconds: Option<f64>,
    /// Name of the dataset it works on.
    pub dataset: Option<String>,
    /// Datasets that are finished.
    pub datasets_done: u64,
    /// Datasets asked for.
    pub datasets_total: u64,
    /// Items of the open dataset that are answered, while it runs.
    pub items_done: u64,
    /// Items of the open dataset, while it runs.
    pub items_total: u64,
    /// The cores of its newest attempt.
    pub cores: Vec<usize>,
    /// Its attempts, oldest first.
    pub attempts: Vec<AttemptView>,
    /// The last lines its newest attempt wrote to stderr, harmless for a terminal.
    pub stderr: Vec<String>,
}

/// How many methods of a run are where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    /// All of them.
    pub total: u64,
    /// That run now.
    pub running: u64,
    /// That ended, whatever the outcome.
    pub ended: u64,
    /// That ended and failed, and answer for it.
    pub failed: u64,
    /// That have no result through no fault of their own: they were cancelled, or our side failed. Once the run has ended,
    /// those that were never started, too.
    pub without_result: u64,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunSummary {
    /// Its number in this daemon: the order of submission, never used again.
    pub id: u64,
    /// Where it is.
    pub state: RunState,
    /// Name of the benchmark.
    pub benchmark_id: String,
    /// The protocol.
    pub protocol_id: String,
    /// Higher goes first; runs of one priority go in the order of their numbers.
    pub priority: i32,
    /// True when nothing else may run beside it.
    pub exclusive: bool,
    /// How many cores it is given.
    pub cores_wanted: u64,
    /// When it was submitted.
    pub submitted_utc: String,
    /// When it was first started.
    pub started_utc: Option<String>,
    /// When it ended.
    pub ended_utc: Option<String>,
    /// How many methods are where.
    #[serde(rename = "counts")]
    pub methods: Counts,
    /// Its place in the queue, from 1, while it waits.
    pub position: Option<u64>,
    /// Where it is, what it waits for, or how it ended, in one sentence without a full stop.
    pub sentence: String,
    /// True once somebody cancelled it.
    pub cancelled: bool,
    /// Once it ended, the exit code `proctor run` would have had.
    pub exit_code: Option<u8>,
}

/// A file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileView {
    /// Its path below the bundle, with `/`.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// The newest bundle of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BundleView {
    /// Its number in the run.
    pub number: String,
    /// The directory on the daemon's machine.
    pub path: String,
    /// Its files in order of their paths; `/v1/runs/{id}/bundles/{number}/{path}` serves each,
    /// where `/` in the path is sent as `%2F`.
    pub files: Vec<FileView>,
    /// The path of the HTML page among them.
    pub page: Option<String>,
}

/// A run with all that is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunView {
    /// As in a list.
    #[serde(flatten)]
    pub summary: RunSummary,
    /// The id of the run in its records.
    pub run_id: String,
    /// The run directory on the daemon's machine.
    pub run_dir: String,
    /// What a method may use, in seconds.
    pub budget_seconds: f64,
    /// The cores it has now.
    pub cores: Vec<usize>,
    /// What its rooms were to have and lack, with the reason; empty when they have everything.
    pub degraded: Vec<String>,
    /// Its methods, in the order of the methods file.
    pub methods: Vec<MethodView>,
    /// Its newest bundle.
    pub bundle: Option<BundleView>,
}

/// A page of a list of runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunPage {
    /// The runs, newest first.
    pub runs: Vec<RunSummary>,
    /// Give this as `before` for the next page; `null` on the last one.
    pub next_before: Option<u64>,
}

/// The machine and what its cores do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MachineView {
    /// Its name.
    pub host: String,
    /// The cores this daemon gives out.
    pub cores: Vec<usize>,
    /// Those that no run has now.
    pub free_cores: Vec<usize>,
    /// The load average over 1, 5 and 15 minutes.
    pub load: [f64; 3],
    /// Percent of the last ten seconds in which something waited for a processor; `null` where the kernel does not tell.
    pub cpu_pressure: Option<f64>,
    /// Memory of the machine, in bytes.
    pub memory_total_bytes: u64,
    /// Memory that new programs could use, in bytes.
    pub memory_available_bytes: u64,
}

/// The queue as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueView {
    /// Version of the daemon.
    pub version: String,
    /// When the daemon was started.
    pub started_utc: String,
    /// True when the daemon is stopping: it takes nothing more and starts nothing more.
    pub stopping: bool,
    /// How many runs are queued.
    pub queued: u64,
    /// How many runs have ended, over all the time of its state directory.
    pub ended: u64,
    /// The runs that go on, in order of their numbers.
    pub running: Vec<RunSummary>,
    /// The runs that are next, in the order in which they will be started; at most [`QUEUE_SHOWN`].
    pub next: Vec<RunSummary>,
    /// The runs that ended last, newest first; at most [`ENDED_SHOWN`].
    pub recent: Vec<RunSummary>,
    /// Why the next run is not started now, in one sentence; `null` when nothing waits.
    pub waits_for: Option<String>,
    /// The machine.
    pub machine: MachineView,
}

/// The most queued runs in a [`QueueView`].
pub const QUEUE_SHOWN: usize = 100;
/// The most ended runs in a [`QueueView`].
pub const ENDED_SHOWN: usize = 20;

/// What an event stream says. The SSE event name is the `event` of this type, the SSE data its JSON.
///
/// `/v1/events` says `queue`: at once, whenever something changed, and every few seconds for the machine.
/// `/v1/runs/{id}/events` begins with `run_detail`. Then it says `method` for each method that changed (at most once a
/// second) and `run` when the run did. When the run has ended it says `run_detail` once more and then, last, `run`.
/// A reader who is slow misses states between, never the newest one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The whole queue.
    Queue {
        /// As `/v1/queue`.
        queue: QueueView,
    },
    /// One run in short.
    Run {
        /// As in a list.
        run: RunSummary,
    },
    /// One run in full.
    RunDetail {
        /// As `/v1/runs/{id}`.
        run: RunView,
    },
    /// One method.
    Method {
        /// The run it belongs to.
        run: u64,
        /// As in [`RunView::methods`].
        method: MethodView,
    },
}

impl Event {
    /// The name of the SSE event.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Queue { .. } => "queue",
            Self::Run { .. } => "run",
            Self::RunDetail { .. } => "run_detail",
            Self::Method { .. } => "method",
        }
    }
}

/// A part of what a method wrote to stderr.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogView {
    /// The attempt that wrote it.
    pub attempt: String,
    /// The text; bytes that are no UTF-8 are replaced. It may hold control characters.
    pub text: String,
    /// Give this as `from` for what follows.
    pub next: u64,
    /// True when nothing follows: the attempt has ended, and this is its end.
    pub complete: bool,
}

/// Whether the daemon is well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`, or `stopping` for a daemon that takes nothing more.
    pub status: String,
    /// Its version.
    pub version: String,
}

/// What went wrong with a request. Every answer that is not a success has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A stable word for programs: `unknown_run`, `invalid`, `too_large`, ...
    pub code: String,
    /// What is wrong, and where.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_reads_back_with_everything() {
        let run = RunView {
            summary: RunSummary {
                id: 7,
                state: RunState::Running,
                benchmark_id: "b".into(),
                protocol_id: "p".into(),
                priority: -1,
                exclusive: true,
                cores_wanted: 2,
                submitted_utc: "2026-01-01T00:00:00Z".into(),
                started_utc: None,
                ended_utc: None,
                methods: Counts {
                    total: 3,
                    ..Counts::default()
                },
                position: Some(1),
                sentence: "s".into(),
                cancelled: false,
                exit_code: None,
            },
            run_id: "r".into(),
            run_dir: "/r".into(),
            budget_seconds: 1.5,
            degraded: vec!["d".into()],
            cores: vec![0, 1],
            methods: Vec::new(),
            bundle: None,
        };
        let event = Event::RunDetail { run };
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(text.matches("\"methods\"").count(), 1, "{text}");
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
    }
}
