//! Which method runs when, and on which cores. Pure: it is told what happened and answers what to start.

use std::collections::VecDeque;

/// More cores were asked for than there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "--jobs {jobs} needs {} cores, {each} for each method; this process may use {cores}; choose fewer jobs or a larger machine", jobs.saturating_mul(*each)
)]
pub struct TooManyJobs {
    /// Asked for.
    pub jobs: usize,
    /// Cores for each.
    pub each: usize,
    /// Available.
    pub cores: usize,
}

/// Cuts the cores into `jobs` disjoint sets of one size, so that every method has the same machine: of `each` cores, or
/// of as many as there are. Cores that do not divide evenly stay unused.
///
/// # Errors
/// Fewer cores than jobs, or no job at all.
pub fn core_sets(
    cores: &[usize],
    jobs: usize,
    each: Option<usize>,
) -> Result<Vec<Vec<usize>>, TooManyJobs> {
    let share = cores.len().checked_div(jobs).unwrap_or(0);
    let size = each.unwrap_or(share);
    if size == 0 || size > share {
        return Err(TooManyJobs {
            jobs,
            each: size.max(1),
            cores: cores.len(),
        });
    }
    Ok(cores
        .chunks_exact(size)
        .take(jobs)
        .map(<[usize]>::to_vec)
        .collect())
}

/// A method to start on a core set, both by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// The method.
    pub method: usize,
    /// The core set.
    pub slot: usize,
}

/// Methods waiting, core sets free, and whether anything may still start.
#[derive(Debug)]
pub struct Schedule {
    waiting: VecDeque<usize>,
    free: Vec<usize>,
    slots: usize,
    stopped: bool,
}

impl Schedule {
    /// These methods, in this order, on so many core sets.
    pub fn new(methods: impl IntoIterator<Item = usize>, slots: usize) -> Self {
        Self {
            waiting: methods.into_iter().collect(),
            free: (0..slots).rev().collect(),
            slots,
            stopped: false,
        }
    }

    /// The method that [`Schedule::next_start`] would start now, if any.
    pub fn next_method(&self) -> Option<usize> {
        let can_start = !self.stopped && !self.free.is_empty();
        can_start.then(|| self.waiting.front().copied()).flatten()
    }

    /// The next thing to start now, if any.
    pub fn next_start(&mut self) -> Option<Start> {
        if self.stopped || self.waiting.is_empty() {
            return None;
        }
        let slot = self.free.pop()?;
        let method = self.waiting.pop_front()?;
        Some(Start { method, slot })
    }

    /// A method ended and gave its core set back.
    pub fn ended(&mut self, start: Start) {
        self.free.push(start.slot);
        // The lowest free set goes first, so that a run with one job always uses the same cores.
        self.free.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Takes a method out that waits; false when it does not.
    pub fn withdraw(&mut self, method: usize) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|other| *other != method);
        self.waiting.len() < before
    }

    /// Nothing more is to be started.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// True when nothing runs and nothing will.
    pub fn finished(&self) -> bool {
        self.free.len() == self.slots && (self.stopped || self.waiting.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sets_are_disjoint_and_equal() {
        assert_eq!(
            core_sets(&[0, 1, 2, 5, 7], 2, None).unwrap(),
            [vec![0, 1], vec![2, 5]]
        );
        assert_eq!(
            core_sets(&[0, 1, 2, 5, 7], 2, Some(1)).unwrap(),
            [vec![0], vec![1]]
        );
        assert_eq!(core_sets(&[3], 1, None).unwrap(), [vec![3]]);
        assert!(core_sets(&[0, 1], 3, None).is_err());
        assert!(core_sets(&[0, 1], 0, None).is_err());
        let text = core_sets(&[0, 1, 2], 2, Some(2)).unwrap_err().to_string();
        assert!(text.contains("needs 4 cores, 2 for each method"), "{text}");
    }

    proptest! {
        #[test]
        fn every_method_starts_once_and_no_core_set_twice_at_a_time(
            methods in 0usize..20,
            slots in 1usize..5,
            ends in prop::collection::vec(0usize..5, 0..40),
        ) {
            let mut schedule = Schedule::new(0..methods, slots);
            let mut running: Vec<Start> = Vec::new();
            let mut started = Vec::new();
            let mut ends = ends.into_iter();
            while !schedule.finished() {
                while let Some(next) = schedule.next_method() {
                    let start = schedule.next_start().unwrap();
                    prop_assert_eq!(next, start.method);
                    prop_assert!(running.iter().all(|other| other.slot != start.slot));
                    running.push(start);
                    started.push(start.method);
                }
                prop_assert_eq!(schedule.next_start(), None);
                prop_assert!(!running.is_empty());
                let which = ends.next().unwrap_or(0) % running.len();
                schedule.ended(running.swap_remove(which));
            }
            prop_assert_eq!(started, (0..methods).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_is_withdrawn_does_not_start() {
        let mut schedule = Schedule::new(0..3, 1);
        let first = schedule.next_start().unwrap();
        assert!(schedule.withdraw(1));
        assert!(!schedule.withdraw(1) && !schedule.withdraw(0));
        schedule.ended(first);
        assert_eq!(schedule.next_start().unwrap().method, 2);
    }

    #[test]
    fn after_a_stop_nothing_starts_and_it_ends_with_the_last_running() {
        let mut schedule = Schedule::new(0..3, 1);
        let first = schedule.next_start().unwrap();
        schedule.stop();
        assert_eq!(schedule.next_start(), None);
        assert!(!schedule.finished());
        schedule.ended(first);
        assert_eq!(schedule.next_start(), None);
        assert!(schedule.finished());
    }
}
