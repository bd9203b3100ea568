//! What an official run demands of a machine, and what it lacks.

use crate::room::{Isolation, Rung, remedy};
use proctor_protocol::frozen::{ExecutionLimits, Limit};

/// Every demand that is not met, each with its remedy; empty when the run is official.
pub fn shortfalls(rung: Rung, isolation: &Isolation, limits: &ExecutionLimits) -> Vec<String> {
    let mut lacking = Vec::new();
    if !matches!(rung, Rung::K4 | Rung::K3a | Rung::K3b) {
        lacking.push(format!(
            "containment: {rung} is used, K3a or better is demanded; {}",
            remedy::for_rung(Rung::K3a)
        ));
    }
    for (guard, name) in [
        ("network", "network"),
        ("file_system", "file system"),
        // What keeps a worker on its cores is a filter.
        ("system_calls", "disjoint cores"),
    ] {
        if !isolation
            .guard(guard)
            .is_some_and(crate::room::Guard::holds)
        {
            let remedy = remedy::for_guard(guard).unwrap_or_default();
            lacking.push(format!("{name}: is not enforced here; {remedy}"));
        }
    }
    if limits.get(Limit::Memory).is_none() {
        lacking.push(
            "memory: no limit is set; freeze the benchmark with execution_policy.max_memory_bytes, or give --max-memory"
                .to_owned(),
        );
    }
    let by_group = |guard: &crate::room::Guard| matches!(guard, crate::room::Guard::Enforced(by) if by.starts_with("cgroup"));
    if !isolation.guard("memory").is_some_and(by_group) {
        let remedy = remedy::for_guard("memory").unwrap_or_default();
        lacking.push(format!(
            "memory: no control group keeps a limit here; {remedy}"
        ));
    }
    lacking
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::Guard;

    fn isolation(guards: &[(&'static str, Guard)]) -> Isolation {
        Isolation {
            guards: guards.to_vec(),
            ..Isolation::none()
        }
    }

    #[test]
    fn each_demand_is_named_when_it_is_not_met() {
        let held = |by: &str| Guard::Enforced(by.into());
        let sound = [
            ("file_system", held("landlock")),
            ("memory", held("cgroup1")),
            ("network", held("network namespace")),
            ("system_calls", held("seccomp")),
        ];
        let mut limits = ExecutionLimits::default();
        limits.set(Limit::Memory, Some(1 << 30));
        assert!(shortfalls(Rung::K3a, &isolation(&sound), &limits).is_empty());
        let lacking = |rung, guards: &[(&'static str, Guard)], limits: &ExecutionLimits| {
            let lacking = shortfalls(rung, &isolation(guards), limits);
            assert_eq!(lacking.len(), 1, "{lacking:?}");
            lacking.into_iter().next().unwrap()
        };
        for rung in [Rung::K1, Rung::K0] {
            assert!(lacking(rung, &sound, &limits).starts_with("containment: "));
        }
        for (at, start) in [
            (0, "file system: "),
            (1, "memory: no control group"),
            (2, "network: "),
            (3, "disjoint cores: "),
        ] {
            let mut guards = sound.clone();
            guards[at].1 = Guard::Unavailable("x".into());
            assert!(lacking(Rung::K4, &guards, &limits).starts_with(start));
        }
        let mut guards = sound.clone();
        guards[1].1 = held("RLIMIT_AS, per process");
        assert!(lacking(Rung::K4, &guards, &limits).contains("control group"));
        let none = ExecutionLimits::default();
        assert!(lacking(Rung::K4, &sound, &none).contains("--max-memory"));
    }
}
