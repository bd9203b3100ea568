//! Time that passes while an attempt stands still, and the clock that leaves it out.

use super::super::Pause;

/// When the attempt stood still.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pauses {
    /// Start and end, in order.
    over: Vec<(u64, u64)>,
    since: Option<u64>,
}

impl Pauses {
    /// The attempt stands still from now on.
    pub(super) fn begin(&mut self, now: u64) {
        self.since.get_or_insert(now);
    }

    /// The attempt goes on.
    pub(super) fn end(&mut self, now: u64) {
        if let Some(since) = self.since.take() {
            self.over.push((since, now.max(since)));
        }
    }

    /// True while the attempt stands still.
    pub(super) fn standing(&self) -> bool {
        self.since.is_some()
    }

    /// A moment on the clock that stands still with the attempt. The moment may lie before pauses that are known by now:
    /// how the worker ended is told with the time it ended.
    pub(super) fn running(&self, at: u64) -> u64 {
        let open = self.since.map(|since| (since, u64::MAX));
        let paused: u64 = self
            .over
            .iter()
            .copied()
            .chain(open)
            .map(|(start, end)| at.min(end).saturating_sub(start))
            .sum();
        at - paused
    }

    /// The moment at which the clock that stands still will show this, if the attempt goes on; `None` while it stands
    /// still.
    pub(super) fn real(&self, running: u64) -> Option<u64> {
        let paused: u64 = self.over.iter().map(|(start, end)| end - start).sum();
        (!self.standing()).then(|| running.saturating_add(paused))
    }

    /// All pauses, one that is not over until `now`, as they lie behind `spawned_at`.
    pub(super) fn list(&self, spawned_at: u64, now: u64) -> Vec<Pause> {
        let open = self.since.map(|since| (since, now.max(since)));
        let all = self.over.iter().copied().chain(open);
        all.map(|(start, end)| Pause {
            after_ns: start.saturating_sub(spawned_at),
            length_ns: end - start,
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_stands_still_in_each_pause_and_never_goes_back() {
        let mut pauses = Pauses::default();
        for (start, end) in [(10, 15), (20, 20), (30, 37)] {
            pauses.begin(start);
            assert!(pauses.standing());
            assert_eq!(pauses.real(start), None);
            pauses.end(end);
        }
        let shown: Vec<u64> = (0..45).map(|at| pauses.running(at)).collect();
        let by_hand: Vec<u64> = (0..=10)
            .chain([10; 5])
            .chain(11..=25)
            .chain([25; 7])
            .chain(26..=32)
            .collect();
        assert_eq!(shown, by_hand);
        // From now on what lies ahead comes later by all of it.
        assert_eq!(pauses.real(40), Some(52));
        assert_eq!(pauses.running(52), 40);
        let pause = |after_ns, length_ns| Pause {
            after_ns,
            length_ns,
        };
        assert_eq!(
            pauses.list(4, 99),
            [pause(6, 5), pause(16, 0), pause(26, 7)]
        );
        pauses.begin(50);
        assert_eq!(pauses.running(49), 37);
        assert_eq!(pauses.running(60), 38);
        assert_eq!(pauses.list(4, 60)[3], pause(46, 10));
    }
}
