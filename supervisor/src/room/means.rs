//! The means of confinement this machine gives. Each is found out once, by doing or by asking the kernel.

use std::sync::{Mutex, OnceLock, PoisonError};

use super::slots::Parents;
use super::{cgroup, ruleset, sys};

/// One means of confinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Means {
    /// A mount namespace with a view of its own.
    MountNamespace,
    /// A network namespace.
    NetworkNamespace,
    /// Landlock rules.
    Landlock,
    /// System call filters.
    Seccomp,
    /// A memory limit by a control group of the second version.
    MemoryCgroup2,
    /// A memory limit by a control group of the first version.
    MemoryCgroup1,
    /// A process limit by a control group of the second version.
    PidsCgroup2,
    /// A process limit by a control group of the first version.
    PidsCgroup1,
    /// A user of the room's own.
    OwnUser,
}

impl Means {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::MountNamespace,
        Self::NetworkNamespace,
        Self::Landlock,
        Self::Seccomp,
        Self::MemoryCgroup2,
        Self::MemoryCgroup1,
        Self::PidsCgroup2,
        Self::PidsCgroup1,
        Self::OwnUser,
    ];

    /// The name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::MountNamespace => "mount namespace",
            Self::NetworkNamespace => "network namespace",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::MemoryCgroup2 => "cgroup2 memory",
            Self::MemoryCgroup1 => "cgroup1 memory",
            Self::PidsCgroup2 => "cgroup2 pids",
            Self::PidsCgroup1 => "cgroup1 pids",
            Self::OwnUser => "own user",
        }
    }
}

static MASKED: Mutex<Vec<Means>> = Mutex::new(Vec::new());

/// Makes this process do as if the machine did not give these means. Works for what was not found out yet, so it belongs
/// before the first room.
pub fn mask(means: &[Means]) {
    MASKED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .extend_from_slice(means);
}

/// Why a means is masked, if it is.
pub(super) fn masked(means: Means) -> Result<(), String> {
    let masked = MASKED.lock().unwrap_or_else(PoisonError::into_inner);
    if masked.contains(&means) {
        Err(format!("{} is masked", means.name()))
    } else {
        Ok(())
    }
}

/// What every room of this process can have, whatever its rung.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) landlock: Result<(), String>,
    pub(super) seccomp: Result<(), String>,
    pub(super) own_user: Result<(), String>,
    /// Control groups of the second version with that controller.
    pub(super) memory2: Result<(), String>,
    pub(super) pids2: Result<(), String>,
    /// Where groups of the first version can be made.
    pub(super) parents: Parents,
}

/// What is known of this machine; found out at the first call.
pub(super) fn common() -> &'static Common {
    static COMMON: OnceLock<Common> = OnceLock::new();
    COMMON.get_or_init(|| {
        let mut parents = Parents::find();
        if let Err(reason) = masked(Means::MemoryCgroup1) {
            parents.memory = Err(reason);
        }
        if let Err(reason) = masked(Means::PidsCgroup1) {
            parents.pids = Err(reason);
        }
        Common {
            landlock: masked(Means::Landlock).and_then(|()| ruleset::missing().map_or(Ok(()), Err)),
            seccomp: masked(Means::Seccomp)
                .and_then(|()| sys::has_filters().map_err(|error| format!("seccomp: {error}"))),
            own_user: masked(Means::OwnUser).and_then(|()| {
                if nix::unistd::geteuid().is_root() && sys::can_change_user() {
                    Ok(())
                } else {
                    Err("only root can give the worker a user of its own".into())
                }
            }),
            memory2: masked(Means::MemoryCgroup2).and_then(|()| cgroup::enable("memory")),
            pids2: masked(Means::PidsCgroup2).and_then(|()| cgroup::enable("pids")),
            parents,
        }
    })
}

/// What a room's own namespaces give. Without a pid namespace there are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Namespaces {
    pub(super) mounts: Result<(), String>,
    pub(super) network: Result<(), String>,
}

impl Namespaces {
    /// For rungs without a pid namespace.
    pub(super) fn none() -> Self {
        let reason = "this rung has no namespaces".to_owned();
        Self {
            mounts: Err(reason.clone()),
            network: Err(reason),
        }
    }
}
