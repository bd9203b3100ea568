//! How an attempt ended, with every raw fact beside the verdict.

use proctor_protocol::canonical::Value;
use proctor_protocol::object;
use proctor_protocol::outcome::Outcome;

use crate::room::{Isolation, Survivor};

/// How the worker process itself ended, as the kernel told the room's init.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitStatus {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signaled {
        /// The signal's number.
        signal: i32,
        /// True when it left a core dump.
        core: bool,
    },
}

impl WaitStatus {
    /// `{"exit_code": n}` or `{"signal": n, "core": bool}`.
    pub fn to_value(self) -> Value {
        match self {
            Self::Exited(code) => object! { "exit_code" => i64::from(code) },
            Self::Signaled { signal, core } => {
                object! { "signal" => i64::from(signal), "core" => core }
            }
        }
    }
}

/// A time in which supervisor and room stood still, since somebody stopped the supervisor's job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// Nanoseconds from spawn to its start, on the monotonic clock, earlier pauses included.
    pub after_ns: u64,
    /// Nanoseconds until the room went on.
    pub length_ns: u64,
}

/// So many pauses are listed; all of them are in the sum.
const LISTED_PAUSES: usize = 100;

/// Facts beside the outcome, never instead of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    /// Processes of the room still alive when the worker itself had ended; they were killed. `None` when they were not
    /// counted, as when the worker did not end by itself.
    pub leaked_processes: Option<u32>,
    /// Something still held the worker's standard output after the worker had ended.
    pub leaked_pipe: bool,
    /// Seconds the machine was suspended during the attempt; above zero the times are not comparable.
    pub suspended_seconds: f64,
    /// When the attempt was paused. Pauses count in no time of the attempt and not against its budget.
    pub pauses: Vec<Pause>,
    /// Seconds in which the supervisor did not look at the worker, a second or longer at a time, while the worker went on:
    /// it was stopped by a signal that cannot be caught, or machine or disk were overloaded. They count against the budget.
    pub supervisor_stalled_seconds: f64,
    /// Scores that arrived after the verdict and were discarded.
    pub late_rows: u64,
    /// Bytes of standard error that were not kept.
    pub output_cut: u64,
    /// Bytes the worker wrote to standard output, as far as they were read.
    pub stdout_bytes: u64,
    /// Bytes the worker wrote to standard error, as far as they were read.
    pub stderr_bytes: u64,
    /// What the worker said when it gave up.
    pub worker_error: Option<String>,
    /// True when the room was seen to be empty after the attempt. Nothing may be started when it is false.
    pub room_empty: bool,
    /// Seconds from the verdict until the room was empty; `None` when it was not seen to be, or there was none.
    pub emptying_seconds: Option<f64>,
    /// Seconds from the deadline until the kill was sent, to the room's init and control group or, without them, to its
    /// guardian; `None` when the deadline did not end the attempt.
    pub kill_delay_seconds: Option<f64>,
    /// Why the scratch directory could not be removed, if it could not.
    pub scratch_left: Option<String>,
    /// Whether the room's own file system had no space left when the worker had ended by itself; `None` when it has none
    /// of its own, or when the room was killed.
    pub scratch_full: Option<bool>,
    /// How often the kernel killed a process of the room for memory; `None` when nothing counts that.
    pub memory_kills: Option<u64>,
    /// How often a new process was refused because of the limit; `None` when nothing counts that.
    pub refused_processes: Option<u64>,
}

impl Facts {
    /// The facts as a record.
    pub fn to_value(&self) -> Value {
        let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
        let total = self.pauses.iter().map(|pause| pause.length_ns).sum();
        let pauses: Vec<Value> = self
            .pauses
            .iter()
            .take(LISTED_PAUSES)
            .map(|pause| {
                object! {
                    "after_seconds" => seconds(pause.after_ns),
                    "seconds" => seconds(pause.length_ns),
                }
            })
            .collect();
        object! {
            "leaked_processes" => self.leaked_processes.map_or(Value::Null, Value::from),
            "leaked_pipe" => self.leaked_pipe,
            "suspended_seconds" => self.suspended_seconds,
            "paused_seconds" => seconds(total),
            "pauses" => pauses,
            "supervisor_stalled_seconds" => self.supervisor_stalled_seconds,
            "late_rows" => count(self.late_rows),
            "output_cut" => count(self.output_cut),
            "stdout_bytes" => count(self.stdout_bytes),
            "stderr_bytes" => count(self.stderr_bytes),
            "worker_error" => self.worker_error.as_deref().map_or(Value::Null, Value::from),
            "room_empty" => self.room_empty,
            "emptying_seconds" => self.emptying_seconds.map_or(Value::Null, Value::Float),
            "kill_delay_seconds" => self.kill_delay_seconds.map_or(Value::Null, Value::Float),
            "scratch_left" => self.scratch_left.as_deref().map_or(Value::Null, Value::from),
            "scratch_full" => self.scratch_full.map_or(Value::Null, Value::from),
            "memory_kills" => self.memory_kills.map_or(Value::Null, count),
            "refused_processes" => self.refused_processes.map_or(Value::Null, count),
        }
    }
}

/// Counts stay far below 2^63.
fn count(value: u64) -> Value {
    Value::Int(i64::try_from(value).unwrap_or(i64::MAX))
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// The verdict.
    pub outcome: Outcome,
    /// What is to be told beside it.
    pub facts: Facts,
    /// What the room really had.
    pub isolation: Isolation,
    /// Seconds from spawn to verdict, on the monotonic clock.
    pub wall_seconds: f64,
    /// The same on the clock that also runs while the machine is suspended.
    pub boottime_seconds: f64,
    /// CPU time of everything in the room, in seconds; `None` when unknown.
    pub cpu_seconds: Option<f64>,
    /// True when `cpu_seconds` counts every process; false when it is only a lower bound.
    pub cpu_exact: bool,
    /// The most memory everything in the room used at the same time, in bytes; `None` when unknown.
    pub peak_memory_bytes: Option<u64>,
    /// The kernel's counter that gave `peak_memory_bytes`.
    pub peak_memory_by: Option<&'static str>,
    /// The cores the worker could use when it began, as the kernel said; `None` when unknown.
    pub cores: Option<Vec<usize>>,
    /// How the worker itself ended; `None` when it never did by itself before the room was killed, or never started.
    pub wait_status: Option<WaitStatus>,
    /// Name and version of the worker by its own account; empty when it never said hello.
    pub worker: String,
    /// Datasets whose checkpoint is durable.
    pub checkpoints: u32,
    /// Processes of the room that could not be killed.
    pub unkillable: Vec<Survivor>,
}

impl Ending {
    /// The ending of an attempt that never had a worker.
    pub fn not_started(outcome: Outcome, isolation: Isolation) -> Self {
        Self {
            outcome,
            facts: Facts {
                room_empty: true,
                ..Facts::default()
            },
            isolation,
            wall_seconds: 0.0,
            boottime_seconds: 0.0,
            cpu_seconds: None,
            cpu_exact: false,
            peak_memory_bytes: None,
            peak_memory_by: None,
            cores: None,
            wait_status: None,
            worker: String::new(),
            checkpoints: 0,
            unkillable: Vec::new(),
        }
    }
}
