//! How an attempt ended: the closed set of design section 6.

use crate::canonical::{Object, Value};
use crate::object;

/// How an attempt ended. The first group is the method's own; [`Outcome::charged`] tells the two groups apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Every dataset was scored, the worker said so and exited with code 0 within the budget.
    Completed,
    /// The budget was used up; the room was killed.
    Timeout,
    /// The kernel killed a process of the room for memory.
    OutOfMemory,
    /// Another limit of the room was passed.
    ResourceLimit(String),
    /// The worker died of a signal that was not ours.
    Signal(i32),
    /// The worker exited with a code other than 0.
    Exit(i32),
    /// The worker broke the rules of the conversation.
    ProtocolError(String),
    /// The worker exited with code 0 before everything was scored.
    Incomplete {
        /// Datasets whose checkpoint is durable.
        done: u32,
        /// Datasets asked for.
        total: u32,
    },
    /// Everything was answered, but some datasets with an error.
    DatasetErrors {
        /// Datasets the worker could not score.
        failed: u32,
        /// Datasets asked for.
        total: u32,
    },
    /// The method declares that no dataset of this protocol applies to it; no worker was started.
    NotApplicable(String),
    /// The run was interrupted (Ctrl-C or a termination signal).
    Interrupted,
    /// Somebody cancelled this method.
    Cancelled,
    /// Our side failed: could not start, disk full, lost supervisor.
    Infrastructure(String),
    /// Tried as often as allowed without an answer that counts.
    Unresolved,
}

impl Outcome {
    /// The stable name.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Timeout => "timeout",
            Self::OutOfMemory => "out_of_memory",
            Self::ResourceLimit(_) => "resource_limit",
            Self::Signal(_) => "signal",
            Self::Exit(_) => "exit",
            Self::ProtocolError(_) => "protocol_error",
            Self::Incomplete { .. } => "incomplete",
            Self::DatasetErrors { .. } => "dataset_errors",
            Self::NotApplicable(_) => "not_applicable",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
            Self::Infrastructure(_) => "infrastructure",
            Self::Unresolved => "unresolved",
        }
    }

    /// True when the method answers for it; false when we do, and the method is owed another attempt.
    pub fn charged(&self) -> bool {
        !matches!(
            self,
            Self::Interrupted | Self::Cancelled | Self::Infrastructure(_) | Self::Unresolved
        )
    }

    /// True when nothing failed.
    pub fn succeeded(&self) -> bool {
        matches!(self, Self::Completed | Self::NotApplicable(_))
    }

    /// The error text of Matheel's failed rows, `<Type>: <message>`. Outcomes that are ours begin `NotCharged: `.
    /// `budget` is the frozen budget in seconds. `None` when there is no error to tell.
    pub fn error_text(&self, budget: f64) -> Option<String> {
        let budget = crate::canonical::float_text(budget);
        Some(match self {
            Self::Completed | Self::NotApplicable(_) => return None,
            Self::Timeout => format!("TimeoutError: the budget of {budget} seconds was used up"),
            Self::OutOfMemory => "OutOfMemory: the kernel killed the method for memory".into(),
            Self::ResourceLimit(which) => format!("ResourceLimit: {which}"),
            Self::Signal(number) => format!("WorkerCrash: signal {number}"),
            Self::Exit(code) => format!("WorkerExit: exit code {code}"),
            Self::ProtocolError(what) => format!("ProtocolError: {what}"),
            Self::Incomplete { done, total } => {
                format!("Incomplete: the worker ended after {done} of {total} datasets")
            }
            Self::DatasetErrors { failed, total } => {
                format!("DatasetError: {failed} of {total} datasets could not be scored")
            }
            Self::Interrupted => "NotCharged: the run was interrupted".into(),
            Self::Cancelled => "NotCharged: the method was cancelled".into(),
            Self::Infrastructure(reason) => format!("NotCharged: infrastructure: {reason}"),
            Self::Unresolved => "NotCharged: no attempt gave an answer that counts".into(),
        })
    }

    /// The outcome as it is written in records: `{"kind": ..., and its details}`.
    pub fn to_value(&self) -> Value {
        let mut value = object! { "kind" => self.kind() };
        let fields: Vec<(&str, Value)> = match self {
            Self::ResourceLimit(which) => vec![("which", which.as_str().into())],
            Self::Signal(number) => vec![("signal", i64::from(*number).into())],
            Self::Exit(code) => vec![("code", i64::from(*code).into())],
            Self::ProtocolError(what) => vec![("what", what.as_str().into())],
            Self::Incomplete { done, total } => {
                vec![("done", (*done).into()), ("total", (*total).into())]
            }
            Self::DatasetErrors { failed, total } => {
                vec![("failed", (*failed).into()), ("total", (*total).into())]
            }
            Self::NotApplicable(reason) | Self::Infrastructure(reason) => {
                vec![("reason", reason.as_str().into())]
            }
            _ => Vec::new(),
        };
        if let Value::Object(object) = &mut value {
            for (key, field) in fields {
                object.insert(key, field);
            }
        }
        value
    }

    /// Reads what [`Outcome::to_value`] wrote; `None` when it is not one.
    pub fn from_value(value: &Value) -> Option<Self> {
        let object = value.as_object()?;
        let text = |key: &str| Some(object.get(key)?.as_str()?.to_owned());
        let number = |object: &Object, key: &str| object.get(key)?.as_int();
        let small = |key: &str| i32::try_from(number(object, key)?).ok();
        let count = |key: &str| u32::try_from(number(object, key)?).ok();
        Some(match object.get("kind")?.as_str()? {
            "completed" => Self::Completed,
            "timeout" => Self::Timeout,
            "out_of_memory" => Self::OutOfMemory,
            "resource_limit" => Self::ResourceLimit(text("which")?),
            "signal" => Self::Signal(small("signal")?),
            "exit" => Self::Exit(small("code")?),
            "protocol_error" => Self::ProtocolError(text("what")?),
            "incomplete" => Self::Incomplete {
                done: count("done")?,
                total: count("total")?,
            },
            "dataset_errors" => Self::DatasetErrors {
                failed: count("failed")?,
                total: count("total")?,
            },
            "not_applicable" => Self::NotApplicable(text("reason")?),
            "interrupted" => Self::Interrupted,
            "cancelled" => Self::Cancelled,
            "infrastructure" => Self::Infrastructure(text("reason")?),
            "unresolved" => Self::Unresolved,
            _ => return None,
        })
    }
}

impl std::fmt::Display for Outcome {
    /// The short form for people: `timeout`, `signal(11)`, `incomplete(1/3)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ResourceLimit(text)
            | Self::ProtocolError(text)
            | Self::NotApplicable(text)
            | Self::Infrastructure(text) => write!(f, "{}({text})", self.kind()),
            Self::Signal(number) | Self::Exit(number) => write!(f, "{}({number})", self.kind()),
            Self::Incomplete { done: part, total }
            | Self::DatasetErrors {
                failed: part,
                total,
            } => {
                write!(f, "{}({part}/{total})", self.kind())
            }
            _ => f.write_str(self.kind()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_reads_back_and_only_ours_are_not_charged() {
        let all = [
            Outcome::Completed,
            Outcome::Timeout,
            Outcome::OutOfMemory,
            Outcome::ResourceLimit("output".into()),
            Outcome::Signal(11),
            Outcome::Exit(3),
            Outcome::ProtocolError("x".into()),
            Outcome::Incomplete { done: 1, total: 3 },
            Outcome::DatasetErrors {
                failed: 1,
                total: 3,
            },
            Outcome::NotApplicable("pairs only".into()),
            Outcome::Interrupted,
            Outcome::Cancelled,
            Outcome::Infrastructure("disk full".into()),
            Outcome::Unresolved,
        ];
        for outcome in all {
            assert_eq!(
                Outcome::from_value(&outcome.to_value()),
                Some(outcome.clone())
            );
            let marked = outcome
                .error_text(1.0)
                .is_some_and(|text| text.starts_with("NotCharged: "));
            assert_eq!(marked, !outcome.charged(), "{outcome}");
            assert_eq!(
                outcome.error_text(1.0).is_none(),
                outcome.succeeded(),
                "{outcome}"
            );
        }
    }
}
