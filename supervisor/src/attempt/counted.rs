//! What the kernel's counters and the worker's last signal say about a verdict.

use proctor_protocol::outcome::Outcome;

use crate::room::{Counts, Limits};

/// The verdict in the light of what was counted. Out of memory is known from the kernel's counter only, and from nothing
/// else: a worker that was killed is not a worker that used too much. Counters explain an end that the method has to
/// answer for; they change neither a success nor an end of ours, nor a timeout.
pub(super) fn explain(outcome: Outcome, counts: &Counts, limits: &Limits) -> Outcome {
    let explained = matches!(
        outcome,
        Outcome::Signal(_)
            | Outcome::Exit(_)
            | Outcome::ProtocolError(_)
            | Outcome::Incomplete { .. }
            | Outcome::DatasetErrors { .. }
    );
    if !explained {
        return outcome;
    }
    if counts.memory_kills.is_some_and(|kills| kills > 0) {
        return Outcome::OutOfMemory;
    }
    if let Some(limit) = limits.processes
        && counts.refused_processes.is_some_and(|refused| refused > 0)
    {
        return Outcome::ResourceLimit(format!("processes: more than {limit} at the same time"));
    }
    match (outcome, limits.scratch_bytes) {
        (Outcome::Signal(libc::SIGXFSZ), Some(bytes)) => {
            Outcome::ResourceLimit(format!("disk: a file of more than {bytes} bytes"))
        }
        (outcome, _) => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(kills: Option<u64>, refused: Option<u64>) -> Counts {
        Counts {
            memory_kills: kills,
            refused_processes: refused,
            peak_memory: None,
            peak_memory_by: None,
        }
    }

    #[test]
    fn only_the_counter_makes_it_out_of_memory() {
        let limits = Limits::default();
        let killed = counts(Some(1), Some(3));
        for outcome in [
            Outcome::Signal(9),
            Outcome::Exit(1),
            Outcome::ProtocolError("half a line".into()),
            Outcome::Incomplete { done: 1, total: 2 },
        ] {
            assert_eq!(
                explain(outcome.clone(), &killed, &limits),
                Outcome::OutOfMemory
            );
            for none in [counts(Some(0), Some(0)), counts(None, None)] {
                assert_eq!(explain(outcome.clone(), &none, &limits), outcome);
            }
        }
        for outcome in [
            Outcome::Completed,
            Outcome::Timeout,
            Outcome::Interrupted,
            Outcome::Infrastructure("x".into()),
        ] {
            assert_eq!(explain(outcome.clone(), &killed, &limits), outcome);
        }
    }

    #[test]
    fn other_limits_are_named() {
        let limits = Limits {
            processes: Some(7),
            scratch_bytes: Some(5),
            ..Limits::default()
        };
        let refused = counts(Some(0), Some(1));
        assert_eq!(
            explain(Outcome::Exit(1), &refused, &limits).to_string(),
            "resource_limit(processes: more than 7 at the same time)"
        );
        let quiet = counts(Some(0), Some(0));
        assert_eq!(
            explain(Outcome::Signal(libc::SIGXFSZ), &quiet, &limits).to_string(),
            "resource_limit(disk: a file of more than 5 bytes)"
        );
    }
}
