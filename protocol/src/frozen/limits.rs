//! What a protocol allows a method to use besides time: optional keys of `execution_policy`. Like every extra key there
//! they are part of the identity of the protocol; Matheel keeps them and passes over them.

use crate::canonical::{Object, Value, canonical};
use crate::input::{Refusal, member};

/// One of the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Memory of everything a method starts together, in bytes.
    Memory,
    /// Processes and threads at the same time.
    Processes,
    /// What it writes to disk, in bytes.
    Scratch,
    /// Standard output and standard error together, in bytes.
    Output,
    /// Seconds between the request to end and the kill, at the deadline. Nothing that arrives in them counts.
    Grace,
    /// Cores a method runs on.
    Cpus,
}

impl Limit {
    /// All limits, in the order of records.
    pub const ALL: [Self; 6] = [
        Self::Memory,
        Self::Processes,
        Self::Scratch,
        Self::Output,
        Self::Grace,
        Self::Cpus,
    ];

    /// The key in `execution_policy` and in records.
    pub fn key(self) -> &'static str {
        match self {
            Self::Memory => "max_memory_bytes",
            Self::Processes => "max_processes",
            Self::Scratch => "max_scratch_bytes",
            Self::Output => "max_output_bytes",
            Self::Grace => "grace_seconds",
            Self::Cpus => "cpus",
        }
    }

    /// The smallest and the largest value that can be meant.
    pub fn range(self) -> (u64, u64) {
        match self {
            // Less does not hold the first page tables of a process.
            Self::Memory => (1 << 20, 1 << 50),
            Self::Scratch | Self::Output => (1, 1 << 50),
            // As many as the kernel numbers.
            Self::Processes => (1, 1 << 22),
            Self::Grace => (0, 3600),
            Self::Cpus => (1, 1 << 16),
        }
    }

    /// True when this value can be meant.
    pub fn allows(self, value: u64) -> bool {
        let (least, most) = self.range();
        (least..=most).contains(&value)
    }
}

/// The limits that are set; the others are as the supervisor has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExecutionLimits {
    values: [Option<u64>; Limit::ALL.len()],
}

impl ExecutionLimits {
    /// One limit, if it is set.
    pub fn get(&self, limit: Limit) -> Option<u64> {
        self.values[limit as usize]
    }

    /// Sets a limit, or takes it away.
    pub fn set(&mut self, limit: Limit, value: Option<u64>) {
        self.values[limit as usize] = value;
    }

    /// Reads the limits among the keys of an object; `field` is its name.
    ///
    /// # Errors
    /// A limit is not a whole number, or not one that can be meant.
    pub fn read(object: &Object, field: &str) -> Result<Self, Refusal> {
        let mut limits = Self::default();
        for limit in Limit::ALL {
            let Some(given) = object.get(limit.key()) else {
                continue;
            };
            let number = match given {
                Value::Int(number) => u64::try_from(*number).ok(),
                _ => None,
            };
            let number = number
                .filter(|number| limit.allows(*number))
                .ok_or_else(|| {
                    let (least, most) = limit.range();
                    let shown: String = canonical(given).chars().take(40).collect();
                    let problem = format!(
                        "is {shown}; it must be a whole number from {least} to {most}, or left out"
                    );
                    Refusal::new(member(field, limit.key()), problem)
                })?;
            limits.set(limit, Some(number));
        }
        Ok(limits)
    }

    /// The limits that are set, by key.
    pub fn to_value(&self) -> Value {
        let mut object = Object::new();
        for limit in Limit::ALL {
            if let Some(value) = self.get(limit) {
                // The ranges end far below 2^63.
                object.insert(limit.key(), i64::try_from(value).unwrap_or(i64::MAX));
            }
        }
        Value::Object(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::read;

    fn limits(json: &str) -> Result<ExecutionLimits, String> {
        let value = read(json.as_bytes()).expect("the test's JSON");
        let object = value.as_object().expect("an object");
        ExecutionLimits::read(object, "execution_policy").map_err(|error| error.to_string())
    }

    #[test]
    fn limits_read_back_as_written() {
        let json = r#"{"cpus":2,"grace_seconds":0,"max_memory_bytes":67108864,"max_output_bytes":1,"max_processes":7,"max_scratch_bytes":4096}"#;
        let found = limits(json).unwrap();
        assert_eq!(found.get(Limit::Memory), Some(64 << 20));
        assert_eq!(found.get(Limit::Grace), Some(0));
        assert_eq!(canonical(&found.to_value()), json);
        let none = limits(r#"{"max_method_seconds": 2.0}"#).unwrap();
        assert_eq!(none, ExecutionLimits::default());
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_key() {
        for (key, value) in [
            ("max_memory_bytes", "0"),
            ("max_memory_bytes", "1048575"),
            ("max_memory_bytes", "1125899906842625"),
            ("max_memory_bytes", "99999999999999999999"),
            ("max_memory_bytes", "67108864.0"),
            ("max_processes", "-1"),
            ("max_processes", "\"7\""),
            ("max_scratch_bytes", "null"),
            ("max_output_bytes", "true"),
            ("grace_seconds", "0.5"),
            ("grace_seconds", "3601"),
            ("cpus", "0"),
        ] {
            let text = limits(&format!(r#"{{"{key}": {value}}}"#)).unwrap_err();
            let start = format!("execution_policy.{key}: is {value}; it must be");
            assert!(text.starts_with(&start), "{text}");
        }
    }
}
