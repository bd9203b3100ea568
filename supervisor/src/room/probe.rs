//! What isolation this machine gives, found out by doing.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::sched_getcpu;
use proctor_protocol::canonical::{Object, Value};
use proctor_protocol::object;

use super::live::{Heard, Room};
use super::means::{self, Means, Namespaces};
use super::talk::{PROBE_WORD, Report};
use super::{Guard, Isolation, RoomSpec, Rung};

/// How long one trial may take.
const BOUND: Duration = Duration::from_secs(5);

/// What this machine gives: each rung tried with a real room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Each rung, best first, with the reason when it is not to be had.
    pub rungs: Vec<(Rung, Guard)>,
    /// What a room on the best rung has.
    pub isolation: Isolation,
}

impl Probe {
    /// The best rung that worked. K0 is never the answer: it must be asked for.
    pub fn best(&self) -> Option<Rung> {
        self.rungs
            .iter()
            .find(|(rung, guard)| *rung != Rung::K0 && guard.holds())
            .map(|(rung, _)| *rung)
    }

    /// Why a rung is not to be had; `None` when it is.
    pub fn missing(&self, rung: Rung) -> Option<&str> {
        self.rungs.iter().find_map(|(other, guard)| match guard {
            Guard::Unavailable(reason) if *other == rung => Some(reason.as_str()),
            _ => None,
        })
    }

    /// `{"best": "K4", "rungs": {"K4": {"state": ...}, ...}, "isolation": {...}}`.
    pub fn to_value(&self) -> Value {
        let mut rungs = Object::new();
        for (rung, guard) in &self.rungs {
            rungs.insert(rung.name(), guard.to_value());
        }
        object! {
            "best" => self.best().map_or("none", Rung::name),
            "rungs" => Value::Object(rungs),
            "isolation" => self.isolation.to_value(),
        }
    }
}

/// Tries every rung, best first: a room is made, a program started in it, the room emptied and seen to be empty. K0 is
/// tried last; it never is the best.
pub fn probe() -> Probe {
    let mut isolation = None;
    let rungs = Rung::ALL
        .into_iter()
        .map(|rung| match trial(rung) {
            Ok(found) => {
                isolation.get_or_insert(found);
                (rung, Guard::enforced())
            }
            Err(reason) => (rung, Guard::Unavailable(reason)),
        })
        .collect();
    Probe {
        rungs,
        isolation: isolation.unwrap_or_else(Isolation::none),
    }
}

/// The best rung with what a room on it has, found by trying from the top until one works. K0 is none.
pub fn best() -> Option<(Rung, Isolation)> {
    let rungs = Rung::ALL.into_iter().filter(|rung| *rung != Rung::K0);
    let mut fits = rungs.filter_map(|rung| Some((rung, trial(rung).ok()?)));
    fits.next()
}

/// The best rung, or why there is none; found out at the first call, by trying from the top until one works.
pub(crate) fn best_rung() -> Result<Rung, String> {
    static BEST: OnceLock<Result<Rung, String>> = OnceLock::new();
    BEST.get_or_init(|| {
        let mut reasons = Vec::new();
        for rung in Rung::ALL {
            if rung == Rung::K0 {
                continue;
            }
            match trial(rung) {
                Ok(_) => return Ok(rung),
                Err(reason) => reasons.push(format!("{rung}: {reason}")),
            }
        }
        Err(format!(
            "no containment works on this machine ({}); K0 must be asked for",
            reasons.join("; ")
        ))
    })
    .clone()
}

/// What the namespaces of a room on this rung give; found out at the first call for it.
pub(super) fn namespaces(rung: Rung) -> Namespaces {
    if rung.has_pid_namespace() {
        // Where no room works at all, opening one says why.
        tried(rung).map_or_else(|_| Namespaces::none(), |(own, _)| own)
    } else {
        Namespaces::none()
    }
}

/// Makes a room on this rung with a program that never ends, and empties it; once for each rung. What the room had.
///
/// # Errors
/// Why there is no such room here.
pub fn trial(rung: Rung) -> Result<Isolation, String> {
    tried(rung).map(|(_, isolation)| isolation)
}

type Trial = Result<(Namespaces, Isolation), String>;

fn tried(rung: Rung) -> Trial {
    static TRIED: Mutex<Vec<(Rung, Trial)>> = Mutex::new(Vec::new());
    let mut tried = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, trial)) = tried.iter().find(|(other, _)| *other == rung) {
        return trial.clone();
    }
    let trial = try_means(rung);
    tried.push((rung, trial.clone()));
    trial
}

/// Tries a room with every namespace, and if that fails, with each by itself, to learn which one it is.
fn try_means(rung: Rung) -> Trial {
    if !rung.has_pid_namespace() {
        let own = Namespaces::none();
        return try_room(rung, &own).map(|isolation| (own, isolation));
    }
    let wish = Namespaces {
        mounts: means::masked(Means::MountNamespace),
        network: means::masked(Means::NetworkNamespace),
    };
    if let Ok(isolation) = try_room(rung, &wish) {
        return Ok((wish, isolation));
    }
    let without = || Err("not tried".to_owned());
    let mut own = Namespaces {
        mounts: without(),
        network: without(),
    };
    let mut isolation = try_room(rung, &own)?;
    let mut add = |next: Namespaces| try_room(rung, &next).map(|found| isolation = found);
    let mounts = wish.mounts.clone().and_then(|()| {
        add(Namespaces {
            mounts: Ok(()),
            network: without(),
        })
    });
    let network = wish.network.clone().and_then(|()| {
        add(Namespaces {
            mounts: mounts.clone(),
            network: Ok(()),
        })
    });
    own.mounts = mounts;
    own.network = network;
    Ok((own, isolation))
}

fn try_room(rung: Rung, own: &Namespaces) -> Result<Isolation, String> {
    let scratch = tempfile::tempdir().map_err(|error| format!("a temporary directory: {error}"))?;
    let mut spec = RoomSpec::new(
        vec!["/proc/self/exe".into(), PROBE_WORD.into()],
        scratch.path().join("room"),
        "/dev/null",
        "probe",
    );
    // Every limit is asked for, so that the answer says by which means it would be kept.
    spec.limits.memory_bytes = Some(1 << 30);
    spec.limits.output_bytes = Some(1 << 20);
    // Any core of ours does.
    spec.cores = sched_getcpu().into_iter().collect();
    let mut room = Room::open_with(&spec, rung, own).map_err(|error| error.to_string())?;
    let started = await_start(&mut room);
    let isolation = room.isolation.clone();
    room.kill();
    let closed = room.close();
    started?;
    if closed.empty {
        Ok(isolation)
    } else {
        Err(format!(
            "the room could not be emptied: {:?}",
            closed.unkillable
        ))
    }
}

fn await_start(room: &mut Room) -> Result<(), String> {
    let end = Instant::now() + BOUND;
    while Instant::now() < end {
        match room.hear() {
            Heard::Report(Report::Started { .. }) => return Ok(()),
            Heard::Report(Report::Failed { reason } | Report::NotExecutable { reason }) => {
                return Err(reason);
            }
            Heard::Report(_) => {}
            Heard::Closed => return Err("the stage ended before it started anything".into()),
            Heard::Nothing => {
                let mut ready = [PollFd::new(room.control_fd(), PollFlags::POLLIN)];
                let _ = poll(&mut ready, PollTimeout::from(100_u8));
            }
        }
    }
    Err("the stage did not start anything in time".into())
}
