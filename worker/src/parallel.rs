//! The same work on one thread or many, results in order.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Gives `work(memory, index)` for every index below `count`, in order of indices. Each thread makes its own memory
/// once. The result does not depend on `threads` as long as `work` depends on the index alone.
pub fn map<M, T: Send>(
    threads: usize,
    count: usize,
    memory: impl Fn() -> M + Sync,
    work: impl Fn(&mut M, usize) -> T + Sync,
) -> Vec<T> {
    /// How many indices a thread takes at once, so that small work is not all taking.
    const SHARE: usize = 4;
    let threads = threads.min(count.div_ceil(SHARE)).max(1);
    if threads == 1 {
        let mut own = memory();
        return (0..count).map(|index| work(&mut own, index)).collect();
    }
    let next = AtomicUsize::new(0);
    let run = || {
        let mut own = memory();
        let mut done: Vec<(usize, T)> = Vec::new();
        loop {
            let start = next.fetch_add(SHARE, Ordering::Relaxed);
            if start >= count {
                return done;
            }
            for index in start..(start + SHARE).min(count) {
                done.push((index, work(&mut own, index)));
            }
        }
    };
    let mut slots: Vec<Option<T>> = std::iter::repeat_with(|| None).take(count).collect();
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let mut fill = |done: Vec<(usize, T)>| {
            for (index, value) in done {
                slots[index] = Some(value);
            }
        };
        fill(run());
        for other in others {
            match other.join() {
                Ok(done) => fill(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    slots.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_on_any_number_of_threads() {
        for threads in [0, 1, 2, 7, 100] {
            let squares = map(threads, 53, || (), |(), i| i * i);
            assert_eq!(squares, (0..53).map(|i| i * i).collect::<Vec<_>>());
        }
        assert_eq!(map(4, 0, || (), |(), i| i), [] as [usize; 0]);
    }
}
