//! Which process supervises, and whether it still does.

use super::fields::{Fields, RecordError};
use super::record::count;
use crate::room::{Process, pid_namespace};
use proctor_protocol::canonical::Value;
use proctor_protocol::object;
use std::path::Path;

/// A supervisor, told from every other process that ever had its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Supervisor {
    /// Number of its pid namespace; 0 when the system does not tell.
    pub namespace: u64,
    /// Its process id there.
    pub pid: i64,
    /// When it started, in clock ticks after boot.
    pub started: u64,
}

impl Supervisor {
    /// This process.
    pub fn this() -> Self {
        let pid = i64::from(std::process::id());
        Self {
            namespace: own_namespace(),
            pid,
            started: start_of(pid).unwrap_or(0),
        }
    }

    /// As written.
    pub fn to_value(&self) -> Value {
        object! {
            "pid_namespace" => count(self.namespace),
            "pid" => self.pid,
            "started_ticks" => count(self.started),
        }
    }

    /// Reads what [`Supervisor::to_value`] wrote into `file`.
    ///
    /// # Errors
    /// A field is absent or of another type.
    pub fn from_value(value: &Value, file: &Path) -> Result<Self, RecordError> {
        let fields = Fields::within(value, file);
        let number = |field| {
            let number = u64::try_from(fields.int(field)?);
            number.map_err(|_| fields.wrong(field, "a count"))
        };
        Ok(Self {
            namespace: number("pid_namespace")?,
            pid: fields.int("pid")?,
            started: number("started_ticks")?,
        })
    }

    /// Its part in the name of something it made: `NAMESPACE-PID-STARTED`.
    pub fn mark(&self) -> String {
        format!("{}-{}-{}", self.namespace, self.pid, self.started)
    }

    /// Whose mark a name begins with, followed by `-` and something more.
    pub fn of_mark(name: &str) -> Option<Self> {
        let mut parts = name.splitn(4, '-');
        let owner = Self {
            namespace: parts.next()?.parse().ok()?,
            pid: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
        };
        parts.next().filter(|rest| !rest.is_empty())?;
        Some(owner)
    }

    /// True when it can be seen from here whether it runs: it is of this pid namespace.
    pub fn is_visible(&self) -> bool {
        self.namespace == own_namespace()
    }

    /// True when it does not run any more. One of another pid namespace cannot be seen from here and is not gone.
    pub fn is_gone(&self) -> bool {
        self.is_visible() && start_of(self.pid) != Some(self.started)
    }
}

fn own_namespace() -> u64 {
    pid_namespace().unwrap_or(0)
}

/// When a process started, in clock ticks after boot; `None` when there is none, or it has ended and only waits to be
/// reaped.
fn start_of(pid: i64) -> Option<u64> {
    let process = Process::read(i32::try_from(pid).ok()?)?;
    process.alive().then_some(process.started)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_supervisor_is_gone_when_its_number_belongs_to_another_start() {
        let this = Supervisor::this();
        assert!(this.started > 0 && this.namespace > 0);
        assert!(!this.is_gone());
        let earlier = Supervisor {
            started: this.started - 1,
            ..this
        };
        assert!(earlier.is_gone());
        let elsewhere = Supervisor {
            namespace: 1,
            ..earlier
        };
        assert!(!elsewhere.is_gone());
    }
}
