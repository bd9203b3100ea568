//! What an official run demands of a machine, and what it lacks.

use crate::room::{Isolation, Rung, remedy};
use proctor_protocol::canonical::Value;
use proctor_protocol::frozen::{ExecutionLimits, Limit};

/// The protections that are demanded, and what they are called in a list of what is missing.
const DEMANDED: [(&str, &str); 3] = [
    ("network", "network"),
    ("file_system", "file system"),
    ("cpu_set", "disjoint cores"),
];

/// Every demand that is not met, each with its remedy; empty when the run is official.
pub fn shortfalls(rung: Rung, isolation: &Isolation, limits: &ExecutionLimits) -> Vec<String> {
    let mut lacking = Vec::new();
    if !good_enough(rung) {
        lacking.push(format!(
            "containment: {rung} is used, K3b or better is demanded; {}",
            remedy::for_rung(Rung::K3a)
        ));
    }
    for (guard, name) in DEMANDED {
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

/// What a room did not have in the end, by the record of its isolation. A room that was never made, or that ended before
/// it said what it has, lost nothing that is known.
pub fn lost(isolation: &Value) -> Vec<String> {
    let text = |value: &Value, key: &str| {
        let found = value.get(key).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let mut lost = Vec::new();
    let rung = text(isolation, "containment");
    if let Ok(rung) = rung.parse()
        && !good_enough(rung)
    {
        lost.push(format!("containment: was {rung}"));
    }
    let guards = isolation.get("guards").cloned().unwrap_or(Value::Null);
    for (guard, name) in DEMANDED {
        let guard = guards.get(guard).cloned().unwrap_or(Value::Null);
        match text(&guard, "state").as_str() {
            "unavailable" => lost.push(format!(
                "{name}: was not enforced ({})",
                text(&guard, "reason")
            )),
            "off" => lost.push(format!("{name}: was off")),
            _ => {}
        }
    }
    let memory = guards.get("memory").cloned().unwrap_or(Value::Null);
    let state = text(&memory, "state");
    let by = text(&memory, "by");
    if state == "unavailable" || state == "enforced" && !by.starts_with("cgroup") {
        let how = if by.is_empty() {
            text(&memory, "reason")
        } else {
            by
        };
        lost.push(format!("memory: was not kept by a control group ({how})"));
    }
    lost
}

fn good_enough(rung: Rung) -> bool {
    matches!(rung, Rung::K4 | Rung::K3a | Rung::K3b)
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
            ("cpu_set", held("affinity, kept by seccomp")),
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

    #[test]
    fn a_room_that_has_less_than_was_seen_before_is_noticed() {
        let held = |by: &str| Guard::Enforced(by.into());
        let sound = |name: &'static str, guard: Guard| {
            let mut room = Isolation {
                containment: Some(Rung::K3b),
                ..isolation(&[
                    ("cpu_set", held("affinity, kept by seccomp")),
                    ("file_system", held("landlock")),
                    ("memory", held("cgroup2")),
                    ("network", held("seccomp: sockets within the machine only")),
                ])
            };
            room.guards.retain(|(other, _)| *other != name);
            room.guards.push((name, guard));
            lost(&room.to_value())
        };
        assert!(sound("umask", Guard::enforced()).is_empty());
        assert!(sound("network", Guard::Unknown).is_empty());
        assert!(lost(&Isolation::none().to_value()).is_empty());
        let gone = || Guard::Unavailable("gone".into());
        for (name, said) in [
            ("network", "network: was not enforced (gone)"),
            ("file_system", "file system: was not enforced (gone)"),
            ("cpu_set", "disjoint cores: was not enforced (gone)"),
            ("memory", "memory: was not kept by a control group (gone)"),
        ] {
            assert_eq!(sound(name, gone()), [said]);
        }
        assert_eq!(sound("network", Guard::Off), ["network: was off"]);
        assert_eq!(
            sound("memory", held("RLIMIT_AS, per process")),
            ["memory: was not kept by a control group (RLIMIT_AS, per process)"]
        );
        let weak = Isolation {
            containment: Some(Rung::K1),
            ..Isolation::none()
        };
        assert_eq!(lost(&weak.to_value()), ["containment: was K1"]);
    }
}
