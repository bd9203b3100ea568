//! What an attempt has from the attempts before it: why it was made, what need not be done again, and what that cost.

use super::fields::{Fields, RecordError};
use super::record::{AttemptId, Checkpoint};
use proctor_protocol::canonical::Value;
use proctor_protocol::object;
use std::path::Path;

/// Why an attempt was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reason {
    /// The method had none before.
    #[default]
    First,
    /// The one before ended through no fault of the method; this one goes on where that one was.
    Continue,
    /// The one before ended through no fault of the method; this one begins anew, with the whole budget.
    Restart,
    /// The method failed by its own fault, and somebody asked for one more attempt.
    Retry,
}

impl Reason {
    /// The word in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Continue => "continue",
            Self::Restart => "restart",
            Self::Retry => "retry",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::First, Self::Continue, Self::Restart, Self::Retry]
            .into_iter()
            .find(|reason| reason.name() == name)
    }
}

/// A durable answer of an earlier attempt that stands. Its scores stay where they are.
#[derive(Debug, Clone, PartialEq)]
pub struct Inherited {
    /// The attempt that gave it.
    pub from: AttemptId,
    /// The answer, as that attempt recorded it.
    pub checkpoint: Checkpoint,
}

/// Time of an earlier attempt that nobody is charged for.
#[derive(Debug, Clone, PartialEq)]
pub struct Lost {
    /// The attempt.
    pub attempt: AttemptId,
    /// Seconds after its last checkpoint; at least so many when its supervisor was lost. `None` when nobody knows.
    pub seconds: Option<f64>,
}

/// What an attempt has from those before it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ancestry {
    /// Why it was made.
    pub reason: Reason,
    /// Answers that are not asked for again, in the order of the parts.
    pub inherited: Vec<Inherited>,
    /// Seconds of the budget that earlier attempts used.
    pub earlier_seconds: f64,
    /// Time of earlier attempts that is not charged.
    pub lost: Vec<Lost>,
}

impl Ancestry {
    /// As written.
    pub fn to_value(&self) -> Value {
        let inherited = |one: &Inherited| {
            object! {
                "attempt" => one.from.to_string(),
                "checkpoint" => one.checkpoint.to_value(),
            }
        };
        let lost = |one: &Lost| {
            object! {
                "attempt" => one.attempt.to_string(),
                "seconds" => one.seconds,
            }
        };
        object! {
            "reason" => self.reason.name(),
            "inherited" => self.inherited.iter().map(inherited).collect::<Vec<Value>>(),
            "earlier_seconds" => self.earlier_seconds,
            "lost" => self.lost.iter().map(lost).collect::<Vec<Value>>(),
        }
    }

    /// Reads what [`Ancestry::to_value`] wrote into `file`.
    ///
    /// # Errors
    /// A field is absent or of another type.
    pub fn from_value(value: &Value, file: &Path) -> Result<Self, RecordError> {
        let fields = Fields::within(value, file);
        let attempt = |value: &Value| AttemptId::parse(value.get("attempt")?.as_str()?);
        let inherited = |value: &Value| {
            Some(Inherited {
                from: attempt(value)?,
                checkpoint: Checkpoint::from_value(value.get("checkpoint")?)?,
            })
        };
        let lost = |value: &Value| {
            Some(Lost {
                attempt: attempt(value)?,
                seconds: value.get("seconds")?.as_number(),
            })
        };
        let all = |field: &'static str| fields.array(field).map(<[Value]>::iter);
        Ok(Self {
            reason: Reason::from_name(&fields.text("reason")?)
                .ok_or_else(|| fields.wrong("reason", "a known reason"))?,
            inherited: all("inherited")?
                .map(inherited)
                .collect::<Option<_>>()
                .ok_or_else(|| fields.wrong("inherited", "a list of checkpoints"))?,
            earlier_seconds: fields.number("earlier_seconds")?,
            lost: all("lost")?
                .map(lost)
                .collect::<Option<_>>()
                .ok_or_else(|| fields.wrong("lost", "a list of attempts"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rundir::record::{Answer, Part, Role};

    #[test]
    fn an_ancestry_reads_back() {
        let from = AttemptId::parse("0003.local.r1").unwrap();
        let ancestry = Ancestry {
            reason: Reason::Retry,
            inherited: vec![Inherited {
                from: from.clone(),
                checkpoint: Checkpoint {
                    part: Part {
                        dataset: 2,
                        role: Role::Validation,
                    },
                    elapsed_seconds: 0.5,
                    at_seconds: 1.25,
                    answer: Answer::Failed { error: "x".into() },
                },
            }],
            earlier_seconds: 1.25,
            lost: vec![
                Lost {
                    attempt: from.clone(),
                    seconds: Some(0.5),
                },
                Lost {
                    attempt: from,
                    seconds: None,
                },
            ],
        };
        let file = Path::new("started.json");
        assert_eq!(
            Ancestry::from_value(&ancestry.to_value(), file).unwrap(),
            ancestry
        );
        let mut changed = ancestry.to_value();
        changed.as_object_mut().unwrap().insert("reason", "luck");
        assert!(Ancestry::from_value(&changed, file).is_err());
    }
}
