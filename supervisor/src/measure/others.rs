//! How much of the cores other processes used between two looks at the machine. Pure: the looks are given.

use super::texts::{CoreTicks, ProcessLine};
use crate::room::RoomsTime;
use proctor_protocol::canonical::Value;
use proctor_protocol::object;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Clock ticks in a second: `USER_HZ`, which is 100 on every architecture this program is built for.
const TICKS: f64 = 100.0;
/// The shortest time that says something: of ticks of ten milliseconds, each process may be one off.
const SHORTEST: f64 = 0.2;
/// A process that used so much of one core is heavy.
pub const HEAVY_PROCESS: f64 = 0.05;
/// Other load that used so much of the cores is heavy.
pub const HEAVY_LOAD: f64 = 0.1;
/// So many heavy processes are named.
const NAMED: usize = 5;

/// One look at the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// When, in nanoseconds of the clock that stands still while the machine is suspended.
    pub at: u64,
    /// The same in clock ticks since the machine started, as the start of a process is given.
    pub ticks: u64,
    /// The cores this process may use.
    pub usable: Vec<usize>,
    /// What every core did, or why that is not known.
    pub cores: Result<BTreeMap<usize, CoreTicks>, String>,
    /// All processes that can be seen, or why none can.
    pub processes: Result<Vec<ProcessLine>, String>,
    /// The number of this process, as `/proc` has it.
    pub own: i32,
    /// Processor seconds of this process.
    pub own_seconds: f64,
    /// Processor time of its rooms.
    pub rooms: RoomsTime,
}

/// How [`OtherLoad::cores`] was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// All the cores did, less what this process and its rooms used.
    Measured,
    /// The sum over the processes that were seen at the end. What ended before is not in it.
    LowerBound,
    /// Not at all.
    Unknown,
}

impl Kind {
    /// The word in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::LowerBound => "lower bound",
            Self::Unknown => "unknown",
        }
    }
}

/// A process that is none of ours and took more than a little of a core.
#[derive(Debug, Clone, PartialEq)]
pub struct Heavy {
    /// Its command name, fit to be published.
    pub name: String,
    /// How much of a core it used; above 1 with several threads.
    pub cores: f64,
}

/// What others did between two looks, on the cores this process may use. Shares are averages over that time.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherLoad {
    /// Seconds between the looks.
    pub seconds: f64,
    /// The cores this process may use.
    pub of_cores: usize,
    /// How many cores others kept busy.
    pub cores: Option<f64>,
    /// How that was found.
    pub kind: Kind,
    /// How many cores were busy with anything.
    pub busy_cores: Option<f64>,
    /// How many cores were taken by other guests of the same host.
    pub stolen_cores: Option<f64>,
    /// How many cores the processes seen at the end used.
    pub seen_cores: Option<f64>,
    /// How many of them used at least [`HEAVY_PROCESS`].
    pub heavy_processes: Option<usize>,
    /// The heaviest of them, heaviest first.
    pub heaviest: Vec<Heavy>,
    /// Why something is not known, by field.
    pub unknown: BTreeMap<&'static str, String>,
}

impl OtherLoad {
    /// The part of the usable cores that others used, from 0 to 1.
    pub fn fraction(&self) -> Option<f64> {
        let fraction = self.cores? / self.of_cores.max(1) as f64;
        Some(fraction.clamp(0.0, 1.0))
    }

    /// True when others used so much that times are not comparable; `None` when that is not known.
    pub fn is_heavy(&self) -> Option<bool> {
        self.fraction().map(|fraction| fraction >= HEAVY_LOAD)
    }

    /// As in records.
    pub fn to_value(&self) -> Value {
        let heaviest = self.heaviest.iter().map(|heavy| {
            object! { "name" => heavy.name.as_str(), "cores" => thousandths(heavy.cores) }
        });
        let mut unknown = proctor_protocol::canonical::Object::new();
        for (field, reason) in &self.unknown {
            unknown.insert(*field, reason.as_str());
        }
        object! {
            "seconds" => thousandths(self.seconds),
            "of_cores" => self.of_cores,
            "cores" => self.cores.map(thousandths),
            "kind" => self.kind.name(),
            "heavy" => self.is_heavy(),
            "busy_cores" => self.busy_cores.map(thousandths),
            "stolen_cores" => self.stolen_cores.map(thousandths),
            "seen_cores" => self.seen_cores.map(thousandths),
            "heavy_processes" => self.heavy_processes,
            "heaviest" => heaviest.collect::<Vec<Value>>(),
            "unknown" => unknown,
        }
    }
}

fn thousandths(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// What others did between two looks of the same process.
pub fn between(before: &Look, after: &Look) -> OtherLoad {
    let seconds = after.at.saturating_sub(before.at) as f64 / 1e9;
    let mut load = OtherLoad {
        seconds,
        of_cores: after.usable.len(),
        cores: None,
        kind: Kind::Unknown,
        busy_cores: None,
        stolen_cores: None,
        seen_cores: None,
        heavy_processes: None,
        heaviest: Vec::new(),
        unknown: BTreeMap::new(),
    };
    let nothing = if after.usable.is_empty() {
        Some("the system does not tell which cores may be used".to_owned())
    } else if seconds < SHORTEST {
        Some(format!(
            "{seconds:.3} s are too short for clock ticks of 10 ms"
        ))
    } else {
        None
    };
    if let Some(reason) = nothing {
        for field in ["cores", "busy_cores", "stolen_cores", "seen_cores"] {
            load.unknown.insert(field, reason.clone());
        }
        return load;
    }
    match of_cores(before, after) {
        Ok((busy, stolen)) => {
            load.busy_cores = Some(busy / seconds);
            load.stolen_cores = Some(stolen / seconds);
        }
        Err(reason) => {
            load.unknown.insert("busy_cores", reason.clone());
            load.unknown.insert("stolen_cores", reason);
        }
    }
    match seen(before, after) {
        Ok(mut seen) => {
            load.seen_cores = Some(seen.iter().map(|heavy| heavy.cores).sum());
            seen.retain(|heavy| heavy.cores >= HEAVY_PROCESS);
            seen.sort_by(|a, b| {
                b.cores
                    .total_cmp(&a.cores)
                    .then_with(|| a.name.cmp(&b.name))
            });
            load.heavy_processes = Some(seen.len());
            seen.truncate(NAMED);
            load.heaviest = seen;
        }
        Err(reason) => {
            load.unknown.insert("seen_cores", reason);
        }
    }
    let (cores, kind) = match (load.busy_cores, ours(before, after), load.seen_cores) {
        (Some(busy), Some(ours), _) => (Some((busy - ours / seconds).max(0.0)), Kind::Measured),
        (_, _, Some(seen)) => (Some(seen), Kind::LowerBound),
        _ => (None, Kind::Unknown),
    };
    if cores.is_none() {
        let reason = "neither cores nor processes could be read";
        load.unknown.insert("cores", reason.into());
    }
    (load.cores, load.kind) = (cores, kind);
    load
}

/// Seconds the usable cores were busy and stolen.
fn of_cores(before: &Look, after: &Look) -> Result<(f64, f64), String> {
    let (earlier, later) = (before.cores.as_ref()?, after.cores.as_ref()?);
    let (mut busy, mut stolen) = (0, 0);
    for core in &after.usable {
        let (Some(earlier), Some(later)) = (earlier.get(core), later.get(core)) else {
            return Err(format!("core {core} was switched off"));
        };
        busy += later.busy.saturating_sub(earlier.busy);
        stolen += later.stolen.saturating_sub(earlier.stolen);
    }
    Ok((busy as f64 / TICKS, stolen as f64 / TICKS))
}

/// Processor seconds of this process and its rooms, when all of that was counted.
fn ours(before: &Look, after: &Look) -> Option<f64> {
    let all_counted = after.rooms.uncounted == before.rooms.uncounted
        && before.rooms.uncounted_open == 0
        && after.rooms.uncounted_open == 0;
    let rooms = after.rooms.counted_seconds - before.rooms.counted_seconds;
    all_counted.then_some(rooms + after.own_seconds - before.own_seconds)
}

/// What each process that is none of ours used between the looks, of those seen at the end.
fn seen(before: &Look, after: &Look) -> Result<Vec<Heavy>, String> {
    let (earlier, later) = (before.processes.as_ref()?, after.processes.as_ref()?);
    let seconds = after.at.saturating_sub(before.at) as f64 / 1e9;
    let mut ours = family(before.own, earlier);
    ours.extend(family(after.own, later));
    let known: HashMap<(i32, u64), u64> = earlier
        .iter()
        .map(|process| ((process.pid, process.started), process.ticks))
        .collect();
    let used = |process: &ProcessLine| {
        match known.get(&(process.pid, process.started)) {
            Some(ticks) => process.ticks.saturating_sub(*ticks),
            // Begun in between: all of its time is of that time.
            None if process.started >= before.ticks => process.ticks,
            // Older, and not seen before: nobody knows how much of its time it is.
            None => 0,
        }
    };
    let others = later
        .iter()
        .filter(|process| !ours.contains(&process.pid) && after.usable.contains(&process.core));
    Ok(others
        .map(|process| Heavy {
            name: process.name.clone(),
            cores: used(process) as f64 / TICKS / seconds,
        })
        .collect())
}

/// A process and everything that descends from it.
fn family(head: i32, all: &[ProcessLine]) -> HashSet<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for process in all {
        children
            .entry(process.parent)
            .or_default()
            .push(process.pid);
    }
    let mut family = HashSet::from([head]);
    let mut parents = vec![head];
    while let Some(parent) = parents.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            if family.insert(*child) {
                parents.push(*child);
            }
        }
    }
    family
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(pid: i32, parent: i32, name: &str, ticks: u64, started: u64) -> ProcessLine {
        ProcessLine {
            pid,
            parent,
            name: name.into(),
            ticks,
            started,
            core: 0,
        }
    }

    fn cores(busy: [u64; 2]) -> BTreeMap<usize, CoreTicks> {
        let ticks = |busy| CoreTicks {
            busy,
            stolen: busy / 10,
        };
        BTreeMap::from([(0, ticks(busy[0])), (1, ticks(busy[1]))])
    }

    /// Process 10 looks; 11 is its room.
    fn look(at: f64, busy: [u64; 2], processes: Vec<ProcessLine>) -> Look {
        Look {
            at: (at * 1e9) as u64,
            ticks: (at * 100.0) as u64,
            usable: vec![0, 1],
            cores: Ok(cores(busy)),
            processes: Ok(processes),
            own: 10,
            own_seconds: 0.0,
            rooms: RoomsTime::default(),
        }
    }

    #[test]
    fn others_have_what_is_left_of_the_busy_cores() {
        let before = look(
            100.0,
            [1000, 2000],
            vec![
                line(10, 1, "proctor", 50, 9000),
                line(7, 1, "make", 500, 10),
            ],
        );
        let mut after = look(
            102.0,
            [1200, 2190],
            vec![
                line(10, 1, "proctor", 70, 9000),
                line(11, 10, "room", 120, 10_010),
                line(12, 11, "inside", 30, 10_020),
                line(7, 1, "make", 620, 10),
                // Begun in between.
                line(8, 7, "cc1", 25, 10_100),
                // The number of an earlier process, and an old one that was not seen before.
                line(9, 1, "old", 9_999, 9_000),
                line(6, 1, "idle", 3, 10_050),
            ],
        );
        after.own_seconds = 0.2;
        after.rooms.counted_seconds = 1.5;
        let load = between(&before, &after);
        // 3.9 s busy in 2 s, less 1.7 s of ours.
        assert_eq!(load.busy_cores, Some(1.95));
        assert!((load.cores.unwrap() - 1.1).abs() < 1e-9, "{load:?}");
        assert_eq!((load.kind, load.of_cores), (Kind::Measured, 2));
        assert_eq!(load.stolen_cores, Some(0.195));
        assert_eq!(
            (load.heavy_processes, load.is_heavy()),
            (Some(2), Some(true))
        );
        let names: Vec<&str> = load
            .heaviest
            .iter()
            .map(|heavy| heavy.name.as_str())
            .collect();
        assert_eq!(names, ["make", "cc1"]);
        assert!((load.heaviest[0].cores - 0.6).abs() < 1e-9);
        assert!((load.seen_cores.unwrap() - (1.2 + 0.25 + 0.03) / 2.0).abs() < 1e-9);
        assert!(load.unknown.is_empty());
    }

    #[test]
    fn a_room_that_nothing_counts_leaves_a_lower_bound() {
        let before = look(100.0, [0, 0], vec![line(7, 1, "make", 500, 10)]);
        let after = look(101.0, [100, 100], vec![line(7, 1, "make", 550, 10)]);
        for rooms in [
            RoomsTime {
                uncounted: 1,
                ..RoomsTime::default()
            },
            RoomsTime {
                uncounted_open: 1,
                ..RoomsTime::default()
            },
        ] {
            let after = Look {
                rooms,
                ..after.clone()
            };
            let load = between(&before, &after);
            assert_eq!((load.cores, load.kind), (Some(0.5), Kind::LowerBound));
        }
    }

    #[test]
    fn what_cannot_be_known_is_null_with_a_reason() {
        let before = look(100.0, [0, 0], vec![]);
        let short = between(&before, &look(100.1, [10, 10], vec![]));
        assert_eq!(
            (short.cores, short.kind, short.is_heavy()),
            (None, Kind::Unknown, None)
        );
        assert!(short.unknown["cores"].contains("too short"));

        let nowhere = Look {
            usable: Vec::new(),
            ..look(101.0, [10, 10], vec![])
        };
        let load = between(&before, &nowhere);
        assert_eq!((load.cores, load.is_heavy()), (None, None));
        assert!(load.unknown["cores"].contains("which cores"));

        let mut blind = look(101.0, [0, 0], vec![]);
        blind.cores = Err("no such file".into());
        blind.processes = Err("not mounted".into());
        let load = between(&before, &blind);
        assert_eq!((load.cores, load.heavy_processes), (None, None));
        assert_eq!(load.unknown["busy_cores"], "no such file");
        assert_eq!(load.unknown["seen_cores"], "not mounted");
        let value = load.to_value();
        assert!(value.get("cores").unwrap().is_null() && value.get("heavy").unwrap().is_null());

        let mut off = look(101.0, [0, 0], vec![]);
        off.cores = Ok(BTreeMap::from([(0, CoreTicks::default())]));
        assert_eq!(
            between(&before, &off).unknown["busy_cores"],
            "core 1 was switched off"
        );
    }

    #[test]
    fn cores_that_are_not_ours_do_not_count() {
        let elsewhere = ProcessLine {
            core: 1,
            ..line(7, 1, "make", 0, 10)
        };
        let mut before = look(100.0, [0, 0], vec![elsewhere.clone()]);
        before.usable = vec![0];
        let busy = ProcessLine {
            ticks: 100,
            ..elsewhere
        };
        let after = Look {
            usable: vec![0],
            ..look(101.0, [0, 100], vec![busy])
        };
        let load = between(&before, &after);
        assert_eq!(
            (load.cores, load.of_cores, load.heavy_processes),
            (Some(0.0), 1, Some(0))
        );
    }

    #[test]
    fn a_clock_or_counter_that_goes_back_is_no_load() {
        let before = look(100.0, [500, 500], vec![line(7, 1, "a", 500, 10)]);
        let after = look(101.0, [400, 400], vec![line(7, 1, "a", 400, 10)]);
        let load = between(&before, &after);
        assert_eq!((load.cores, load.seen_cores), (Some(0.0), Some(0.0)));
        assert_eq!(between(&after, &before).kind, Kind::Unknown);
    }
}
