//! How a running attempt goes, readable from another thread without a word to the one that runs it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The numbers a display needs. They are for people; no result is made from them.
#[derive(Debug, Default)]
pub struct Live {
    started: OnceLock<Instant>,
    /// Nanoseconds.
    paused: AtomicU64,
    part: AtomicU64,
    items: AtomicU64,
    total: AtomicU64,
    answered: AtomicU64,
}

/// One look at a [`Live`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Glance {
    /// Seconds since the worker was started, pauses left out; `None` before.
    pub elapsed: Option<f64>,
    /// Position of the open part.
    pub part: u64,
    /// Items of it answered.
    pub items: u64,
    /// Items of it asked for.
    pub total: u64,
    /// Items answered in all parts together.
    pub answered: u64,
}

impl Live {
    /// The worker's time began to run so long ago.
    pub fn started(&self, ago: Duration) {
        let now = Instant::now();
        let _ = self.started.set(now.checked_sub(ago).unwrap_or(now));
    }

    /// The attempt stood still for so long in all.
    pub fn paused(&self, total: Duration) {
        let nanoseconds = u64::try_from(total.as_nanos()).unwrap_or(u64::MAX);
        self.paused.store(nanoseconds, Ordering::Relaxed);
    }

    /// A part of `total` items was opened.
    pub fn open(&self, part: u32, total: u64) {
        self.answered
            .fetch_add(self.items.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        self.part.store(u64::from(part), Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// So many items of the open part are answered.
    pub fn items(&self, done: u64) {
        self.items.store(done, Ordering::Relaxed);
    }

    /// The numbers now. They may be of slightly different instants.
    pub fn glance(&self) -> Glance {
        let items = self.items.load(Ordering::Relaxed);
        Glance {
            elapsed: self.started.get().map(|start| {
                let paused = Duration::from_nanos(self.paused.load(Ordering::Relaxed));
                start.elapsed().saturating_sub(paused).as_secs_f64()
            }),
            part: self.part.load(Ordering::Relaxed),
            items,
            total: self.total.load(Ordering::Relaxed),
            answered: self.answered.load(Ordering::Relaxed) + items,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_add_up_over_parts() {
        let live = Live::default();
        assert_eq!(live.glance(), Glance::default());
        live.open(0, 10);
        live.items(4);
        live.items(10);
        live.open(1, 5);
        live.items(2);
        let glance = live.glance();
        assert_eq!(
            (glance.part, glance.items, glance.total, glance.answered),
            (1, 2, 5, 12)
        );
    }
}
