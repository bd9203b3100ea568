//! The containment ladder, and the record of what a room really had.

use std::fmt;
use std::str::FromStr;

use proctor_protocol::canonical::Value;
use proctor_protocol::object;

/// A rung of the containment ladder (specs/supervision.md section 5a), best first. Its rung K2 is not built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rung {
    /// Pid namespace and an own cgroup2 with `cgroup.kill`.
    K4,
    /// Pid namespace only.
    K3a,
    /// Own cgroup2 only, with a guardian.
    K3b,
    /// A guardian that is a subreaper and sweeps until no child is left.
    K1,
    /// A process group only. Survivors are possible; never chosen by itself.
    K0,
}

impl Rung {
    /// All rungs, best first.
    pub const ALL: [Self; 5] = [Self::K4, Self::K3a, Self::K3b, Self::K1, Self::K0];

    /// The name in records and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::K4 => "K4",
            Self::K3a => "K3a",
            Self::K3b => "K3b",
            Self::K1 => "K1",
            Self::K0 => "K0",
        }
    }

    /// What the rung is, for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::K4 => "own pid namespace and own cgroup2",
            Self::K3a => "own pid namespace",
            Self::K3b => "own cgroup2 and a guardian",
            Self::K1 => "a guardian that adopts and sweeps",
            Self::K0 => "a process group; survivors are possible",
        }
    }

    /// True when the room is a pid namespace.
    pub fn has_pid_namespace(self) -> bool {
        matches!(self, Self::K4 | Self::K3a)
    }

    /// True when every orphan of the room becomes a child of its stage, so that a stage without a child is alone.
    pub(super) fn adopts_all(self) -> bool {
        matches!(self, Self::K4 | Self::K3a | Self::K1)
    }

    /// True when the room is a cgroup2.
    pub fn has_cgroup(self) -> bool {
        matches!(self, Self::K4 | Self::K3b)
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text names no rung.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no containment rung; use one of K4, K3a, K3b, K1, K0")]
pub struct UnknownRung(String);

impl FromStr for Rung {
    type Err = UnknownRung;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|rung| rung.name().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownRung(text.chars().take(40).collect()))
    }
}

/// How one protection of a room stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// It holds, by these means; empty where there is only one way.
    Enforced(String),
    /// It was wanted, and this machine does not give it.
    Unavailable(String),
    /// It was not asked for.
    Off,
    /// The room never said: it ended before its worker was started.
    Unknown,
}

impl Guard {
    /// True when it holds.
    pub fn holds(&self) -> bool {
        matches!(self, Self::Enforced(_))
    }

    /// It holds, and there is only one way.
    pub fn enforced() -> Self {
        Self::Enforced(String::new())
    }

    /// `{"state": "enforced", "by": ...}`, `{"state": "unavailable", "reason": ...}`,
    /// `{"state": "off"}` or `{"state": "unknown"}`.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Enforced(by) if by.is_empty() => object! { "state" => "enforced" },
            Self::Enforced(by) => object! { "state" => "enforced", "by" => by.as_str() },
            Self::Unavailable(reason) => {
                object! { "state" => "unavailable", "reason" => reason.as_str() }
            }
            Self::Off => object! { "state" => "off" },
            Self::Unknown => object! { "state" => "unknown" },
        }
    }
}

/// Protections by name.
pub(super) type GuardList = Vec<(&'static str, Guard)>;

/// What a room really had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolation {
    /// The containment rung; `None` when no room was made.
    pub containment: Option<Rung>,
    /// True when the pid namespace sits in a user namespace, as it must without root.
    pub user_namespace: bool,
    /// Each protection by name, in alphabetical order.
    pub guards: Vec<(&'static str, Guard)>,
}

impl Isolation {
    /// The record of a room that was never made.
    pub fn none() -> Self {
        Self {
            containment: None,
            user_namespace: false,
            guards: Vec::new(),
        }
    }

    /// `{"containment": "K4", "user_namespace": false, "guards": {name: {"state": ...}}}`.
    pub fn to_value(&self) -> Value {
        let mut guards = proctor_protocol::canonical::Object::new();
        for (name, guard) in &self.guards {
            guards.insert(*name, guard.to_value());
        }
        object! {
            "containment" => self.containment.map_or("none", Rung::name),
            "user_namespace" => self.user_namespace,
            "guards" => Value::Object(guards),
        }
    }
}

impl Isolation {
    /// One protection by its name.
    pub fn guard(&self, name: &str) -> Option<&Guard> {
        self.guards
            .iter()
            .find_map(|(other, guard)| (*other == name).then_some(guard))
    }

    /// The same room before it has said what it has: every protection that was asked for is unknown.
    pub(super) fn not_heard(mut self) -> Self {
        for (_, guard) in &mut self.guards {
            if guard.holds() {
                *guard = Guard::Unknown;
            }
        }
        self
    }

    /// Notes what the stage could not give after all.
    pub(super) fn mark_missing(&mut self, missing: &[(String, String)]) {
        for (name, reason) in missing {
            if let Some((_, guard)) = self.guards.iter_mut().find(|(guard, _)| guard == name) {
                *guard = Guard::Unavailable(reason.clone());
            }
        }
    }
}

/// What a room on this rung is meant to have, with the guards that were chosen for it; the stage says what of it is
/// missing.
pub(super) fn planned(rung: Rung, user_namespace: bool, chosen: GuardList) -> Isolation {
    let own_user = chosen
        .iter()
        .any(|(name, guard)| *name == "user" && guard.holds());
    let in_namespace = |without: &str| {
        if rung.has_pid_namespace() {
            Guard::Enforced("pid namespace".into())
        } else {
            Guard::Unavailable(without.to_owned())
        }
    };
    let parent_death = match rung {
        Rung::K4 | Rung::K3a => Guard::enforced(),
        Rung::K3b | Rung::K1 if own_user => Guard::Enforced("a guardian of another user".into()),
        Rung::K3b | Rung::K1 => Guard::Unavailable(
            "a guardian empties the room when the supervisor vanishes; the worker can kill its guardian".into(),
        ),
        Rung::K0 => Guard::Unavailable("nobody empties the room when the supervisor vanishes".into()),
    };
    let signals = if own_user && !rung.has_pid_namespace() {
        Guard::Enforced("a user of its own".into())
    } else {
        in_namespace("the worker can signal processes of its own user")
    };
    // Landlock lets nobody look into a process that it does not confine.
    let landlock = chosen.iter().any(|(name, guard)| {
        *name == "file_system" && *guard == Guard::Enforced("landlock".into())
    });
    let ptrace = if rung.has_pid_namespace() || !(own_user || landlock) {
        in_namespace(
            "the worker can trace processes of its own user; supervisor and guardian are protected",
        )
    } else if own_user {
        Guard::Enforced("a user of its own".into())
    } else {
        Guard::Enforced("landlock".into())
    };
    let mut guards = chosen;
    guards.extend([
        ("capabilities", Guard::enforced()),
        ("core_dumps", Guard::enforced()),
        ("descriptors", Guard::enforced()),
        ("environment", Guard::enforced()),
        ("no_new_privileges", Guard::enforced()),
        ("parent_death", parent_death),
        (
            "private_proc",
            in_namespace("a private /proc needs a pid namespace"),
        ),
        ("ptrace", ptrace),
        ("signals", signals),
        ("umask", Guard::enforced()),
    ]);
    guards.sort_by_key(|(name, _)| *name);
    Isolation {
        containment: Some(rung),
        user_namespace,
        guards,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rung_claims_what_its_worker_can_undo() {
        for rung in Rung::ALL {
            let planned = planned(rung, false, vec![("cpu_set", Guard::Off)]);
            for name in ["ptrace", "parent_death", "private_proc", "signals"] {
                let holds = planned.guard(name).unwrap().holds();
                assert_eq!(holds, rung.has_pid_namespace(), "{rung}: {name}");
            }
            let silent = planned.clone().not_heard();
            assert!(silent.guards.iter().all(|(_, guard)| !guard.holds()));
            assert_eq!(silent.guard("umask"), Some(&Guard::Unknown));
            assert_eq!(silent.guard("cpu_set"), Some(&Guard::Off));
        }
    }

    #[test]
    fn rungs_read_back_in_any_case() {
        for rung in Rung::ALL {
            assert_eq!(rung.name().to_lowercase().parse(), Ok(rung));
        }
        assert!("K2".parse::<Rung>().is_err());
    }
}
