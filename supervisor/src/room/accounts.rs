//! The processor time of all rooms of this process together, those that are closed included.
//!
//! Who looks at how busy the machine is takes this off to see what others do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::cgroup;

/// Processor time of all rooms this process made.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RoomsTime {
    /// Seconds of the rooms whose time a control group counts, those that are closed included.
    pub counted_seconds: f64,
    /// Rooms so far whose time nothing counts.
    pub uncounted: u64,
    /// How many of those are open.
    pub uncounted_open: u64,
}

static BOOKS: Mutex<Books> = Mutex::new(Books {
    closed_micros: 0,
    next: 0,
    open: BTreeMap::new(),
    uncounted: 0,
    uncounted_open: 0,
});

struct Books {
    closed_micros: u64,
    next: u64,
    /// Control groups of the rooms that are open.
    open: BTreeMap<u64, PathBuf>,
    uncounted: u64,
    uncounted_open: u64,
}

fn books() -> std::sync::MutexGuard<'static, Books> {
    BOOKS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn micros(group: &Path) -> Option<u64> {
    cgroup::field(&group.join("cpu.stat"), "usage_usec")
}

/// Time of all rooms so far.
pub(crate) fn rooms_time() -> RoomsTime {
    let books = books();
    let (mut open, mut silent) = (0, 0);
    for group in books.open.values() {
        match micros(group) {
            Some(micros) => open += micros,
            None => silent += 1,
        }
    }
    RoomsTime {
        counted_seconds: (books.closed_micros + open) as f64 / 1e6,
        uncounted: books.uncounted,
        uncounted_open: books.uncounted_open + silent,
    }
}

/// The entry of one room; dropping it closes the entry, and must happen before the room's group is removed.
#[derive(Debug)]
pub(super) struct Entry(Option<u64>);

impl Entry {
    /// Begins the entry of a room, with its control group where it has one.
    pub(super) fn begin(group: Option<&Path>) -> Self {
        let mut books = books();
        let Some(group) = group else {
            books.uncounted += 1;
            books.uncounted_open += 1;
            return Self(None);
        };
        let number = books.next;
        books.next += 1;
        books.open.insert(number, group.to_owned());
        Self(Some(number))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut books = books();
        match self.0 {
            None => books.uncounted_open -= 1,
            Some(number) => {
                let used = books.open.remove(&number).and_then(|group| micros(&group));
                match used {
                    Some(micros) => books.closed_micros += micros,
                    None => books.uncounted += 1,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_room_used_stays_in_the_books() {
        let group = tempfile::tempdir().unwrap();
        let before = rooms_time().counted_seconds;
        let write = |micros: u64| {
            let text = format!("usage_usec {micros}\nuser_usec 1\n");
            std::fs::write(group.path().join("cpu.stat"), text).unwrap();
        };
        write(0);
        let entry = Entry::begin(Some(group.path()));
        // Large, so that rooms of other tests in this process cannot matter.
        write(7_000_000_000);
        assert!(rooms_time().counted_seconds - before >= 7000.0);
        write(9_000_000_000);
        drop(entry);
        assert!(rooms_time().counted_seconds - before >= 9000.0);
        let uncounted = rooms_time().uncounted;
        drop(Entry::begin(None));
        assert!(rooms_time().uncounted > uncounted);

        // A counter that cannot be read is no zero.
        let silent = Entry::begin(Some(group.path()));
        std::fs::remove_file(group.path().join("cpu.stat")).unwrap();
        assert!(rooms_time().uncounted_open > 0);
        let uncounted = rooms_time().uncounted;
        drop(silent);
        assert!(rooms_time().uncounted > uncounted);
    }
}
