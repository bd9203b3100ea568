//! Choosing how each protection of a room is given, best means first, and saying so.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::cgroup::Cgroup;
use super::filter::{self, Refuse};
use super::isolation::GuardList;
use super::means::{self, Namespaces};
use super::slots::{Counts, Slot};
use super::user::OwnUser;
use super::view::{self, ThisHost, View};
use super::{Guard, RoomSpec, Rung, ruleset};

/// How a room is confined: what the stage is told, and what is held until the room is empty.
#[derive(Debug, Default)]
pub(super) struct Confined {
    pub(super) user: Option<OwnUser>,
    pub(super) rlimits: Vec<(u32, u64)>,
    pub(super) filters: Vec<Vec<u8>>,
    pub(super) ruleset: Option<OwnedFd>,
    pub(super) view: Option<View>,
    pub(super) network_namespace: bool,
    pub(super) slot: Option<Slot>,
    pub(super) guards: GuardList,
}

/// How the scratch directory is kept small where it is no file system of its own.
const POLLING: &str =
    "polling (deleted files that are open are not seen), and RLIMIT_FSIZE for each file";

/// A reason why the room cannot be as it must.
pub(super) type Refusal = String;

/// Chooses. `scratch` exists, `program` is what will be executed.
pub(super) fn confine(
    spec: &RoomSpec,
    rung: Rung,
    own: &Namespaces,
    user_namespace: bool,
    scratch: &Path,
    program: &Path,
    cgroup: Option<&Cgroup>,
) -> Result<Confined, Refusal> {
    let mut confined = Confined::default();
    confined.choose_user(spec)?;
    confined.choose_files(spec, own, scratch, program)?;
    confined.choose_calls(spec, rung, own)?;
    confined.choose_limits(spec, rung, user_namespace, cgroup)?;
    Ok(confined)
}

impl Confined {
    /// The scratch directory is not watched after all.
    pub(super) fn unwatched(&mut self, why: &str) {
        self.withdraw(
            "disk",
            &format!("the scratch directory is not watched: {why}"),
        );
    }

    /// A protection that was chosen does not hold.
    fn withdraw(&mut self, name: &str, reason: &str) {
        for (_, guard) in self.guards.iter_mut().filter(|(other, _)| *other == name) {
            if guard.holds() {
                *guard = Guard::Unavailable(reason.to_owned());
            }
        }
    }

    /// What was counted, whichever controller did it.
    pub(super) fn counts(&self, cgroup: Option<&Cgroup>) -> Counts {
        let slot = self.slot.as_ref().map(Slot::counts).unwrap_or_default();
        let own_peak = cgroup.and_then(Cgroup::peak_memory);
        Counts {
            memory_kills: cgroup.and_then(Cgroup::memory_kills).or(slot.memory_kills),
            refused_processes: cgroup
                .and_then(Cgroup::refused_processes)
                .or(slot.refused_processes),
            peak_memory: own_peak.or(slot.peak_memory),
            peak_memory_by: own_peak
                .and(Some("cgroup2 memory.peak"))
                .or(slot.peak_memory_by),
        }
    }

    fn choose_user(&mut self, spec: &RoomSpec) -> Result<(), Refusal> {
        let guard = match &means::common().own_user {
            _ if !spec.confinement.user => Guard::Off,
            Err(reason) => Guard::Unavailable(reason.clone()),
            Ok(()) => {
                self.user = Some(OwnUser::claim()?);
                // Its number is chance; records of equal runs are equal.
                Guard::Enforced("a user nobody else has".into())
            }
        };
        self.guards.push(("user", guard));
        Ok(())
    }

    fn choose_files(
        &mut self,
        spec: &RoomSpec,
        own: &Namespaces,
        scratch: &Path,
        program: &Path,
    ) -> Result<(), Refusal> {
        let mut visible: Vec<PathBuf> = Vec::with_capacity(spec.visible.len() + 1);
        for path in spec.visible.iter().map(PathBuf::as_path).chain([program]) {
            let path = std::path::absolute(path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            visible.push(path);
        }
        let user = self.user.as_ref().map(|user| user.id);
        if user.is_some() {
            refuse_unreadable(&visible)?;
        }
        let guard = match (&own.mounts, &means::common().landlock) {
            _ if !spec.confinement.file_system => Guard::Off,
            (Ok(()), _) => {
                let size = spec.limits.scratch_bytes;
                let host = ThisHost { user };
                self.view = Some(view::plan(&host, scratch, size, &spec.hidden, &visible));
                Guard::Enforced("mount namespace".into())
            }
            (Err(_), Ok(())) => {
                let root = user.is_none() && nix::unistd::geteuid().is_root();
                let networks = spec.confinement.network && own.network.is_err();
                match ruleset::create(scratch, &spec.hidden, &visible, root, networks) {
                    Ok(rules) => {
                        self.ruleset = Some(rules);
                        Guard::Enforced("landlock".into())
                    }
                    Err(reason) => Guard::Unavailable(reason),
                }
            }
            (Err(mounts), Err(landlock)) => Guard::Unavailable(format!("{mounts}; {landlock}")),
        };
        self.guards.push(("file_system", guard));
        let disk = match (spec.limits.scratch_bytes, &self.view) {
            (None, _) => Guard::Off,
            (Some(_), Some(_)) => Guard::Enforced("tmpfs of a size".into()),
            // Nothing outside the directory can be written then, so watching it is enough.
            (Some(_), None) if self.ruleset.is_some() => Guard::Enforced(POLLING.into()),
            (Some(bytes), None) => Guard::Unavailable(format!(
                "the worker can write elsewhere too; only each file by itself is limited, to {bytes} bytes"
            )),
        };
        if let Some(bytes) = spec.limits.scratch_bytes {
            self.rlimits.push((libc::RLIMIT_FSIZE, bytes));
        }
        self.guards.push(("disk", disk));
        Ok(())
    }

    fn choose_calls(
        &mut self,
        spec: &RoomSpec,
        rung: Rung,
        own: &Namespaces,
    ) -> Result<(), Refusal> {
        let seccomp = &means::common().seccomp;
        let by_filter = |guard_of: &str| match seccomp {
            Ok(()) => Guard::Enforced(guard_of.to_owned()),
            Err(reason) => Guard::Unavailable(reason.clone()),
        };
        self.network_namespace = spec.confinement.network && own.network.is_ok();
        let refuse = Refuse {
            rare_calls: spec.confinement.system_calls,
            networks: spec.confinement.network && own.network.is_err(),
            tracing: spec.confinement.system_calls && !rung.has_pid_namespace(),
            affinity: !spec.cores.is_empty(),
            attributes: self.shares_files(),
        };
        let no_tcp = refuse.networks && self.refuse_tcp();
        let network = match &own.network {
            _ if !spec.confinement.network => Guard::Off,
            Ok(()) => Guard::Enforced("network namespace".into()),
            Err(reason) => match by_filter("seccomp: sockets within the machine only") {
                Guard::Unavailable(filter) if no_tcp => Guard::Unavailable(format!(
                    "{reason}; {filter}; landlock refuses TCP and nothing else"
                )),
                Guard::Unavailable(filter) => Guard::Unavailable(format!("{reason}; {filter}")),
                other => other,
            },
        };
        self.guards.push(("network", network));
        let calls = if spec.confinement.system_calls {
            by_filter("seccomp")
        } else {
            Guard::Off
        };
        self.guards.push(("system_calls", calls));
        let cores = if spec.cores.is_empty() {
            Guard::Off
        } else if seccomp.is_ok() {
            Guard::Enforced("affinity, kept by seccomp".into())
        } else {
            Guard::Unavailable("without seccomp the worker can choose other cores".into())
        };
        self.guards.push(("cpu_set", cores));
        if seccomp.is_ok() {
            if !refuse.nothing() {
                self.filters = filter::compile(refuse)?;
            }
        } else if refuse.attributes {
            self.withdraw(
                "file_system",
                "landlock keeps what files hold; without seccomp the worker can change the modes and times of its user's files",
            );
        }
        Ok(())
    }

    /// True when landlock alone keeps a worker from the files of a user that is not its own.
    fn shares_files(&self) -> bool {
        self.ruleset.is_some() && self.user.is_none()
    }

    /// Refuses TCP by landlock, beside the filter; true when the kernel can.
    fn refuse_tcp(&mut self) -> bool {
        static KNOWN: OnceLock<bool> = OnceLock::new();
        if means::common().landlock.is_err() || !*KNOWN.get_or_init(|| ruleset::no_tcp().is_ok()) {
            return false;
        }
        // Rules about files have it in them already.
        if self.ruleset.is_none() {
            self.ruleset = ruleset::no_tcp().ok();
        }
        self.ruleset.is_some()
    }

    fn choose_limits(
        &mut self,
        spec: &RoomSpec,
        rung: Rung,
        user_namespace: bool,
        cgroup: Option<&Cgroup>,
    ) -> Result<(), Refusal> {
        let common = means::common();
        let limits = &spec.limits;
        // Rungs whose room is a cgroup2 use that; the others, and machines with the old controllers, a slot.
        let memory2 = cgroup.filter(|_| common.memory2.is_ok());
        let pids2 = cgroup.filter(|_| common.pids2.is_ok());
        let memory1 = memory2.is_none() && common.parents.memory.is_ok();
        let pids1 = pids2.is_none() && common.parents.pids.is_ok();
        let mut slot = (memory1 || pids1)
            .then(|| Slot::take(&spec.run_id, &common.parents))
            .transpose()?;
        if let Some(slot) = &mut slot {
            // Also without a limit: what an earlier room had must go, and the counters begin anew.
            if memory1 {
                slot.limit_memory(limits.memory_bytes)?;
            }
            if pids1 {
                slot.limit_processes(limits.processes)?;
            }
        }
        self.slot = slot;
        let memory = match (limits.memory_bytes, memory2) {
            (None, _) => Guard::Off,
            (Some(bytes), Some(group)) => {
                group.limit_memory(bytes)?;
                Guard::Enforced("cgroup2".into())
            }
            (Some(_), None) if memory1 => Guard::Enforced("cgroup1".into()),
            (Some(bytes), None) => {
                self.rlimits.push((libc::RLIMIT_AS, bytes));
                Guard::Enforced("RLIMIT_AS, per process".into())
            }
        };
        self.guards.push(("memory", memory));
        let processes = match (limits.processes, pids2) {
            (None, _) => Guard::Off,
            (Some(count), Some(group)) => {
                group.limit_processes(count)?;
                Guard::Enforced("cgroup2".into())
            }
            (Some(_), None) if pids1 => Guard::Enforced("cgroup1".into()),
            (Some(count), None) if self.user.is_some() || user_namespace => {
                // In a user namespace the stage is a process of the same user.
                let stage = u64::from(user_namespace && rung.has_pid_namespace());
                self.rlimits
                    .push((libc::RLIMIT_NPROC, u64::from(count) + stage));
                Guard::Enforced("RLIMIT_NPROC, per user".into())
            }
            (Some(_), None) => Guard::Unavailable(
                "no pids controller, and the worker shares its user with other processes".into(),
            ),
        };
        self.guards.push(("process_count", processes));
        let output = limits
            .output_bytes
            .map_or(Guard::Off, |_| Guard::enforced());
        self.guards.push(("output", output));
        Ok(())
    }
}

/// What a user of the room's own could not read is refused by name.
fn refuse_unreadable(paths: &[PathBuf]) -> Result<(), Refusal> {
    match paths.iter().find_map(|path| unreadable(path)) {
        Some(reason) => Err(reason),
        None => Ok(()),
    }
}

/// Why a user that owns nothing could not read a path, if it could not. Directories above it do not matter: what is
/// declared is shown through them.
fn unreadable(path: &Path) -> Option<String> {
    let found = match path.metadata() {
        Ok(found) => found,
        Err(error) => return Some(format!("{}: {error}", path.display())),
    };
    let needed = if found.is_dir() { 0o005 } else { 0o004 };
    (found.mode() & needed != needed).then(|| {
        format!(
            "{}: the worker runs as a user of its own, which may not read this; give others the right to read it \
             (chmod o+rX)",
            path.display()
        )
    })
}

impl RoomSpec {
    /// What of the program and the visible paths the worker could not read here, with the reason and the remedy; to be
    /// asked before anything starts. Rooms refuse the same.
    pub fn unreadable(&self) -> Vec<String> {
        if !self.confinement.user || means::common().own_user.is_err() {
            return Vec::new();
        }
        let program = self.program().unwrap_or_default();
        self.visible
            .iter()
            .chain((program != OsString::new()).then_some(&program))
            .filter_map(|path| unreadable(path))
            .collect()
    }
}
