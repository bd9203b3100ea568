//! What a method may use: the protocol decides, and the command line can only take away from it. Pure.

use crate::error::Error;
use crate::room;
use proctor_protocol::frozen::{ExecutionLimits, Limit};
use std::time::Duration;

/// The option of a limit.
pub fn option(limit: Limit) -> &'static str {
    match limit {
        Limit::Memory => "--max-memory",
        Limit::Processes => "--max-processes",
        Limit::Scratch => "--max-scratch",
        Limit::Output => "--max-output",
        Limit::Grace => "--grace",
        Limit::Cpus => "--cpus",
    }
}

/// What holds where neither protocol nor command line say anything; `None` for no limit.
fn usual(limit: Limit) -> Option<u64> {
    let usual = room::Limits::default();
    match limit {
        Limit::Memory => usual.memory_bytes,
        Limit::Processes => usual.processes.map(u64::from),
        Limit::Scratch => usual.scratch_bytes,
        Limit::Output => usual.output_bytes,
        Limit::Grace => Some(0),
        Limit::Cpus => None,
    }
}

/// The limits of a run: those of the protocol, and those of the command line where it has some.
///
/// # Errors
/// The command line asks for more than there is without it.
pub fn in_force(
    protocol: &ExecutionLimits,
    asked: &ExecutionLimits,
) -> Result<ExecutionLimits, Error> {
    let mut limits = *protocol;
    for limit in Limit::ALL {
        let Some(value) = asked.get(limit) else {
            continue;
        };
        let (allowed, whose) = match protocol.get(limit) {
            Some(value) => (Some(value), "the protocol allows"),
            None => (usual(limit), "there are without it"),
        };
        if let Some(allowed) = allowed.filter(|allowed| value > *allowed) {
            return Err(Error::input(format!(
                "{} {value}: is more than the {allowed} that {whose}; options can only be stricter",
                option(limit)
            )));
        }
        limits.set(limit, Some(value));
    }
    Ok(limits)
}

/// The keys of the limits that the command line made stricter than the protocol has them.
pub fn stricter(protocol: &ExecutionLimits, limits: &ExecutionLimits) -> Vec<&'static str> {
    let changed = |limit: &Limit| {
        let before = protocol.get(*limit).or(usual(*limit));
        limits.get(*limit).or(usual(*limit)) != before
    };
    Limit::ALL
        .into_iter()
        .filter(changed)
        .map(Limit::key)
        .collect()
}

/// What is asked of a room.
pub fn of_room(limits: &ExecutionLimits) -> room::Limits {
    let get = |limit| limits.get(limit).or(usual(limit));
    room::Limits {
        memory_bytes: get(Limit::Memory),
        processes: get(Limit::Processes).and_then(|count| u32::try_from(count).ok()),
        scratch_bytes: get(Limit::Scratch),
        output_bytes: get(Limit::Output),
    }
}

/// Time between the request to end and the kill, at the deadline.
pub fn grace(limits: &ExecutionLimits) -> Duration {
    Duration::from_secs(limits.get(Limit::Grace).unwrap_or(0))
}

/// Cores a method runs on; `None` for as many as there are for it.
pub fn cpus(limits: &ExecutionLimits) -> Option<usize> {
    let cpus = limits.get(Limit::Cpus)?;
    usize::try_from(cpus).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(of: &[(Limit, u64)]) -> ExecutionLimits {
        let mut limits = ExecutionLimits::default();
        for (limit, value) in of {
            limits.set(*limit, Some(*value));
        }
        limits
    }

    #[test]
    fn options_only_take_away() {
        let protocol = limits(&[(Limit::Memory, 100), (Limit::Processes, 9000)]);
        let asked = limits(&[(Limit::Memory, 60), (Limit::Output, 5)]);
        let found = in_force(&protocol, &asked).unwrap();
        assert_eq!(
            stricter(&protocol, &found),
            ["max_memory_bytes", "max_output_bytes"]
        );
        let room = of_room(&found);
        assert_eq!(room.memory_bytes, Some(60));
        assert_eq!(room.processes, Some(9000));
        assert_eq!(room.scratch_bytes, Some(4 << 30));
        assert_eq!(room.output_bytes, Some(5));
        assert_eq!(in_force(&protocol, &limits(&[])).unwrap(), protocol);
        // What changes nothing is not stricter.
        let same = limits(&[(Limit::Memory, 100), (Limit::Grace, 0)]);
        let found = in_force(&protocol, &same).unwrap();
        assert!(stricter(&protocol, &found).is_empty());
    }

    #[test]
    fn an_option_that_would_give_more_is_refused_by_name() {
        let protocol = limits(&[(Limit::Memory, 100)]);
        for (limit, value, words) in [
            (
                Limit::Memory,
                101,
                "--max-memory 101: is more than the 100 that the protocol allows",
            ),
            (
                Limit::Grace,
                1,
                "--grace 1: is more than the 0 that there are without it",
            ),
            (
                Limit::Processes,
                4097,
                "--max-processes 4097: is more than the 4096",
            ),
        ] {
            let error = in_force(&protocol, &limits(&[(limit, value)])).unwrap_err();
            assert!(error.to_string().starts_with(words), "{error}");
        }
    }
}
