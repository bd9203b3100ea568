//! Which run starts when, and on which cores. Pure: it is told what happened and answers what to start.
//!
//! The rule, which is all there is:
//!
//! 1. Runs that were begun before a restart of the daemon come first; then higher priorities; then lower numbers.
//! 2. Only the first in that order may start. Nothing overtakes it, however small, so every run is started once those
//!    before it are through: a run can be kept waiting for ever only by runs of higher priority that keep coming.
//! 3. It starts when as many cores are free as it wants. A run that wants more than there are at all is passed over.
//! 4. An exclusive run starts when nothing else runs, and nothing starts beside it.

use crate::render::counted;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A run that waits for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Its number.
    pub id: u64,
    /// Higher goes first.
    pub priority: i32,
    /// How many cores it wants; at least one.
    pub cores: usize,
    /// True when nothing may run beside it.
    pub exclusive: bool,
    /// True when it was running when an earlier daemon ended.
    pub begun: bool,
}

type Turn = (Reverse<bool>, Reverse<i32>, u64);

impl Waiting {
    fn turn(&self) -> Turn {
        (Reverse(self.begun), Reverse(self.priority), self.id)
    }
}

/// A run to start, and the cores it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Its number.
    pub id: u64,
    /// Its cores, in ascending order.
    pub cores: Vec<usize>,
}

/// Why the first run in line does not start now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Hold {
    /// Nothing starts any more.
    #[error("the daemon is stopping")]
    Stopping,
    /// Another run wants to be alone.
    #[error("waits for run {0}, which is exclusive")]
    BesideExclusive(u64),
    /// It wants to be alone, and so many others run.
    #[error("is exclusive and waits for the end of {0} running {noun}", noun = if *.0 == 1 { "run" } else { "runs" })]
    WantsToBeAlone(usize),
    /// Too few cores are free.
    #[error("wants {}, and {free} of this daemon's cores {} free", counted(*wanted as u64, "core"), if *free == 1 { "is" } else { "are" })]
    Cores {
        /// What it wants.
        wanted: usize,
        /// What is free.
        free: usize,
    },
    /// There never are enough cores.
    #[error(
        "wants {}, and this daemon has {all} in all; cancel it, or give the daemon more", counted(*wanted as u64, "core")
    )]
    TooLarge {
        /// What it wants.
        wanted: usize,
        /// What there is.
        all: usize,
    },
}

/// The runs that wait, those that run, and the cores.
#[derive(Debug)]
pub struct Dispatcher {
    all: usize,
    free: BTreeSet<usize>,
    waiting: BTreeMap<Turn, Waiting>,
    running: BTreeMap<u64, (Vec<usize>, bool)>,
    stopped: bool,
}

impl Dispatcher {
    /// Gives out these cores.
    pub fn new(cores: &[usize]) -> Self {
        let free: BTreeSet<usize> = cores.iter().copied().collect();
        Self {
            all: free.len(),
            free,
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
            stopped: false,
        }
    }

    /// A run waits from now on.
    pub fn add(&mut self, run: Waiting) {
        self.waiting.insert(run.turn(), run);
    }

    /// Takes a run out that waits; false when none of that number does.
    pub fn remove(&mut self, id: u64) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|_, run| run.id != id);
        self.waiting.len() < before
    }

    /// A run ended and gives its cores back.
    pub fn ended(&mut self, id: u64) {
        if let Some((cores, _)) = self.running.remove(&id) {
            self.free.extend(cores);
        }
    }

    /// Nothing more is to be started.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// The next run to start now, if any. From here on it runs.
    pub fn next_start(&mut self) -> Option<Start> {
        let head = *self.head()?;
        if self.hold(&head).is_some() {
            return None;
        }
        self.waiting.remove(&head.turn());
        let cores: Vec<usize> = self.free.iter().copied().take(head.cores).collect();
        for core in &cores {
            self.free.remove(core);
        }
        self.running
            .insert(head.id, (cores.clone(), head.exclusive));
        Some(Start { id: head.id, cores })
    }

    /// The first run in line that could ever start.
    fn head(&self) -> Option<&Waiting> {
        self.waiting.values().find(|run| run.cores <= self.all)
    }

    /// Why a run would not start now if it were the first in line.
    pub fn hold(&self, run: &Waiting) -> Option<Hold> {
        let alone = self.running.iter().find(|(_, (_, exclusive))| *exclusive);
        if run.cores > self.all {
            Some(Hold::TooLarge {
                wanted: run.cores,
                all: self.all,
            })
        } else if self.stopped {
            Some(Hold::Stopping)
        } else if let Some((id, _)) = alone {
            Some(Hold::BesideExclusive(*id))
        } else if run.exclusive && !self.running.is_empty() {
            Some(Hold::WantsToBeAlone(self.running.len()))
        } else if run.cores > self.free.len() {
            Some(Hold::Cores {
                wanted: run.cores,
                free: self.free.len(),
            })
        } else {
            None
        }
    }

    /// The run that is to start next and why it does not start now; `None` when nothing waits that could ever start.
    pub fn waits_for(&self) -> Option<(u64, Hold)> {
        let head = self.head()?;
        self.hold(head).map(|hold| (head.id, hold))
    }

    /// The runs that wait, in the order in which they will start, each with what it wants.
    pub fn waiting(&self) -> impl Iterator<Item = &Waiting> {
        self.waiting.values()
    }

    /// How many runs wait.
    pub fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// True when a run wants more cores than there are at all.
    pub fn is_too_large(&self, run: &Waiting) -> bool {
        run.cores > self.all
    }

    /// The cores that no run has.
    pub fn free_cores(&self) -> Vec<usize> {
        self.free.iter().copied().collect()
    }

    /// The cores of a running run.
    pub fn cores_of(&self, id: u64) -> Option<&[usize]> {
        self.running.get(&id).map(|(cores, _)| cores.as_slice())
    }

    /// True when nothing runs.
    pub fn idle(&self) -> bool {
        self.running.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: u64, priority: i32, cores: usize, exclusive: bool) -> Waiting {
        Waiting {
            id,
            priority,
            cores,
            exclusive,
            begun: false,
        }
    }

    fn starts(dispatcher: &mut Dispatcher) -> Vec<u64> {
        std::iter::from_fn(|| dispatcher.next_start())
            .map(|start| start.id)
            .collect()
    }

    #[test]
    fn higher_priorities_go_first_and_numbers_within_one() {
        let mut dispatcher = Dispatcher::new(&[4]);
        for (id, priority) in [(1, 0), (2, 5), (3, 0), (4, -1), (5, 5)] {
            dispatcher.add(run(id, priority, 1, false));
        }
        let mut order = Vec::new();
        while let Some(start) = dispatcher.next_start() {
            assert_eq!(start.cores, [4]);
            assert_eq!(dispatcher.next_start(), None);
            order.push(start.id);
            dispatcher.ended(start.id);
        }
        assert_eq!(order, [2, 5, 1, 3, 4]);
    }

    #[test]
    fn what_was_begun_goes_on_first() {
        let mut dispatcher = Dispatcher::new(&[0]);
        dispatcher.add(run(9, 100, 1, false));
        dispatcher.add(Waiting {
            begun: true,
            ..run(3, -100, 1, false)
        });
        assert_eq!(starts(&mut dispatcher), [3]);
    }

    #[test]
    fn nothing_overtakes_a_run_that_waits_for_more_cores() {
        let mut dispatcher = Dispatcher::new(&[0, 1, 2]);
        dispatcher.add(run(1, 0, 2, false));
        dispatcher.add(run(2, 0, 2, false));
        dispatcher.add(run(3, 0, 1, false));
        assert_eq!(starts(&mut dispatcher), [1]);
        let hold = Hold::Cores { wanted: 2, free: 1 };
        assert_eq!(dispatcher.waits_for(), Some((2, hold)));
        dispatcher.ended(1);
        assert_eq!(starts(&mut dispatcher), [2, 3]);
    }

    #[test]
    fn a_run_larger_than_the_machine_does_not_keep_others_waiting() {
        let mut dispatcher = Dispatcher::new(&[0]);
        dispatcher.add(run(1, 9, 2, false));
        dispatcher.add(run(2, 0, 1, false));
        assert_eq!(starts(&mut dispatcher), [2]);
        assert!(dispatcher.remove(1));
        assert!(!dispatcher.remove(1));
    }

    #[test]
    fn after_a_stop_nothing_starts() {
        let mut dispatcher = Dispatcher::new(&[0, 1]);
        dispatcher.add(run(1, 0, 1, false));
        dispatcher.add(run(2, 0, 1, false));
        assert!(dispatcher.next_start().is_some());
        dispatcher.stop();
        assert_eq!(dispatcher.next_start(), None);
        assert_eq!(dispatcher.waits_for(), Some((2, Hold::Stopping)));
        dispatcher.ended(1);
        assert!(dispatcher.idle());
    }

    /// A model of three cores and a few kinds of runs.
    #[derive(Clone)]
    struct World {
        waiting: Vec<Waiting>,
        running: Vec<(Waiting, Vec<usize>)>,
        ended: Vec<u64>,
        arrived: u64,
    }

    const CORES: [usize; 3] = [0, 2, 5];
    const MOST: u64 = 4;

    fn kinds() -> Vec<(i32, usize, bool)> {
        let mut kinds = Vec::new();
        for priority in [0, 1] {
            for (cores, exclusive) in [(1, false), (2, false), (3, false), (1, true)] {
                kinds.push((priority, cores, exclusive));
            }
        }
        kinds
    }

    /// Starts what may start, and looks at each start.
    fn settle(world: &mut World, dispatcher: &mut Dispatcher) {
        while let Some(start) = dispatcher.next_start() {
            let at = world
                .waiting
                .iter()
                .position(|run| run.id == start.id)
                .expect("what starts was waiting");
            let run = world.waiting.remove(at);
            // Nothing that waits goes before it.
            assert!(world.waiting.iter().all(|other| {
                (other.priority, Reverse(other.id)) < (run.priority, Reverse(run.id))
            }));
            assert_eq!(start.cores.len(), run.cores);
            for (other, cores) in &world.running {
                assert!(
                    !run.exclusive && !other.exclusive,
                    "exclusive beside another"
                );
                assert!(cores.iter().all(|core| !start.cores.contains(core)));
            }
            assert!(start.cores.iter().all(|core| CORES.contains(core)));
            world.running.push((run, start.cores));
        }
        // Work is not left lying: when nothing runs, nothing waits.
        assert!(!world.running.is_empty() || world.waiting.is_empty());
        assert_eq!(dispatcher.waits_for().is_some(), !world.waiting.is_empty());
    }

    /// A dispatcher that knows this world and nothing of how it came about.
    fn told(world: &World) -> Dispatcher {
        let mut dispatcher = Dispatcher::new(&CORES);
        for (run, cores) in &world.running {
            for core in cores {
                dispatcher.free.remove(core);
            }
            dispatcher
                .running
                .insert(run.id, (cores.clone(), run.exclusive));
        }
        for waiting in &world.waiting {
            dispatcher.add(*waiting);
        }
        dispatcher
    }

    /// Tries every kind of run arriving and every running run ending, at every point, and counts the ends of the world.
    fn explore(world: &World, kinds: &[(i32, usize, bool)], seen: &mut u64) {
        if world.arrived == MOST && world.running.is_empty() {
            assert_eq!(world.ended.len() as u64, MOST);
            *seen += 1;
            return;
        }
        for at in 0..world.running.len() {
            let mut next = world.clone();
            let mut dispatcher = told(&next);
            let (run, _) = next.running.remove(at);
            dispatcher.ended(run.id);
            next.ended.push(run.id);
            settle(&mut next, &mut dispatcher);
            explore(&next, kinds, seen);
        }
        if world.arrived < MOST {
            for (priority, cores, exclusive) in kinds {
                let mut next = world.clone();
                let mut dispatcher = told(&next);
                next.arrived += 1;
                let new = run(next.arrived, *priority, *cores, *exclusive);
                next.waiting.push(new);
                dispatcher.add(new);
                settle(&mut next, &mut dispatcher);
                explore(&next, kinds, seen);
            }
        }
    }

    #[test]
    fn in_every_small_world_the_rule_holds_and_every_run_ends() {
        let empty = World {
            waiting: Vec::new(),
            running: Vec::new(),
            ended: Vec::new(),
            arrived: 0,
        };
        let mut seen = 0;
        explore(&empty, &kinds(), &mut seen);
        assert!(seen > 8u64.pow(4), "{seen}");
    }
}
