//! Memory and process limits by control groups of the first version.
//!
//! Moving a process between such groups takes the kernel ten milliseconds or more; a child that is born in one costs
//! nothing. So each slot is a pair of groups and a thread that lives in them for ever and starts one room after the
//! other. The kernel's counters are read as differences.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use super::launch::Spawner;
use super::{cgroup, prepared};

/// The controllers that are used, with the file that holds the limit.
const MEMORY: &str = "memory";
const PIDS: &str = "pids";

/// What may be left of an earlier room's memory: less than any program needs to start.
const LEFT_OVER: u64 = 1 << 20;

/// Slots nobody uses now.
static IDLE: Mutex<Vec<Slot>> = Mutex::new(Vec::new());
/// Every group that was made and the thread in it, to be taken down at the end.
static MADE: Mutex<Vec<(PathBuf, i32)>> = Mutex::new(Vec::new());

/// Where groups of a controller can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parents {
    pub(super) memory: Result<PathBuf, String>,
    pub(super) pids: Result<PathBuf, String>,
}

impl Parents {
    /// Looks where this process is.
    pub(super) fn find() -> Self {
        Self {
            memory: cgroup::parent_v1(MEMORY),
            pids: cgroup::parent_v1(PIDS),
        }
    }
}

/// A pair of groups and the thread that starts rooms in them. While it is held, nobody else uses it; when it is dropped,
/// as where a room could not be made, thread and groups go.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) spawner: Spawner,
    memory: Option<Counted>,
    pids: Option<Counted>,
}

/// A group, the limit it has, and what its counter showed when the slot was taken, `None` when that could not be read.
#[derive(Debug)]
struct Counted {
    path: PathBuf,
    limit: Option<u64>,
    before: Option<u64>,
    /// The kernel's record of the most that was used began anew with this room.
    peak_is_its_own: bool,
}

/// What the kernel counted for one room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// Processes that were killed for memory.
    pub(crate) memory_kills: Option<u64>,
    /// Processes that were not made because of the limit.
    pub(crate) refused_processes: Option<u64>,
    /// The most memory that was used, in bytes.
    pub(crate) peak_memory: Option<u64>,
    /// The counter that said so.
    pub(crate) peak_memory_by: Option<&'static str>,
}

impl Slot {
    /// Takes an idle slot or makes one.
    pub(super) fn take(run_id: &str, parents: &Parents) -> Result<Self, String> {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(slot) = idle {
            return Ok(slot);
        }
        let group = |parent: &Result<PathBuf, String>| -> Result<Option<PathBuf>, String> {
            let Ok(parent) = parent else { return Ok(None) };
            let path = parent.join(cgroup::next_name(run_id)?);
            fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            Ok(Some(path))
        };
        let memory = group(&parents.memory)?;
        let pids = group(&parents.pids).inspect_err(|_| {
            if let Some(path) = &memory {
                let _ = fs::remove_dir(path);
            }
        })?;
        let made: Vec<PathBuf> = [&memory, &pids].into_iter().flatten().cloned().collect();
        let entered = made.clone();
        let enter = move || {
            let thread = nix::unistd::gettid().as_raw();
            for path in entered {
                self::made().push((path.clone(), thread));
                write(&path, "tasks", "0")?;
            }
            Ok(())
        };
        let spawner = Spawner::begin(enter, move || leave(&made))?;
        take_down_at_exit();
        let counted = |path| Counted {
            path,
            limit: None,
            before: None,
            peak_is_its_own: false,
        };
        Ok(Self {
            spawner,
            memory: memory.map(counted),
            pids: pids.map(counted),
        })
    }

    /// Sets the memory limit of the next room, or none.
    pub(super) fn limit_memory(&mut self, bytes: Option<u64>) -> Result<(), String> {
        let group = self.memory.as_mut().ok_or("no memory group")?;
        // What an earlier room left in the page cache is not this one's. Taking back a little costs more than it is worth.
        if read_number(&group.path, "memory.usage_in_bytes").is_some_and(|used| used > LEFT_OVER) {
            let _ = write(&group.path, "memory.force_empty", "0");
        }
        if group.limit != bytes {
            set_memory(&group.path, bytes)?;
            group.limit = bytes;
        }
        group.peak_is_its_own = write(&group.path, "memory.max_usage_in_bytes", "0").is_ok();
        group.before = kills(&group.path);
        Ok(())
    }

    /// Sets the process limit of the next room, or none. The slot's thread and the stage come on top.
    pub(super) fn limit_processes(&mut self, count: Option<u32>) -> Result<(), String> {
        let group = self.pids.as_mut().ok_or("no pids group")?;
        let text = count.map_or("max".to_owned(), |count| (u64::from(count) + 2).to_string());
        let limit = count.map(u64::from);
        if group.limit != limit {
            write(&group.path, "pids.max", &text)?;
            group.limit = limit;
        }
        group.before = refused(&group.path);
        Ok(())
    }

    /// What was counted since the limits were set.
    pub(super) fn counts(&self) -> Counts {
        // What an earlier room made of the counter must be known, or this room would have to answer for it.
        let since = |group: &Counted, now: Option<u64>| Some(now?.saturating_sub(group.before?));
        let peak_memory = self
            .memory
            .as_ref()
            .filter(|group| group.peak_is_its_own)
            .and_then(|group| read_number(&group.path, "memory.max_usage_in_bytes"));
        Counts {
            memory_kills: self
                .memory
                .as_ref()
                .and_then(|group| since(group, kills(&group.path))),
            refused_processes: self
                .pids
                .as_ref()
                .and_then(|group| since(group, refused(&group.path))),
            peak_memory,
            peak_memory_by: peak_memory.and(Some("cgroup1 memory.max_usage_in_bytes")),
        }
    }

    /// Gives the slot back. Only for a room that was seen to be empty.
    pub(super) fn give_back(self) {
        IDLE.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(self);
    }
}

fn made() -> MutexGuard<'static, Vec<(PathBuf, i32)>> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread of a slot that nobody holds any more takes its groups down. One with somebody in it is left for the end of
/// this process.
fn leave(groups: &[PathBuf]) {
    for path in groups {
        if let Some(parent) = path.parent() {
            let _ = write(parent, "tasks", "0");
        }
        if fs::remove_dir(path).is_ok() {
            made().retain(|(other, _)| other != path);
        }
    }
}

fn write(group: &Path, file: &str, text: &str) -> Result<(), String> {
    let path = group.join(file);
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn set_memory(group: &Path, bytes: Option<u64>) -> Result<(), String> {
    // The limit with swap may never be below the one without.
    let swap = group.join("memory.memsw.limit_in_bytes").exists();
    if swap {
        write(group, "memory.memsw.limit_in_bytes", "-1")?;
    }
    let text = bytes.map_or("-1".to_owned(), |bytes| bytes.to_string());
    write(group, "memory.limit_in_bytes", &text)?;
    if swap {
        write(group, "memory.memsw.limit_in_bytes", &text)?;
    } else if bytes.is_some() {
        // Without counting swap, the best is not to use it.
        let _ = write(group, "memory.swappiness", "0");
    }
    Ok(())
}

fn read_number(group: &Path, file: &str) -> Option<u64> {
    fs::read_to_string(group.join(file))
        .ok()?
        .trim()
        .parse()
        .ok()
}

fn kills(group: &Path) -> Option<u64> {
    cgroup::field(&group.join("memory.oom_control"), "oom_kill")
}

fn refused(group: &Path) -> Option<u64> {
    cgroup::field(&group.join("pids.events"), "max")
}

/// Groups outlive their process; they are removed when it ends in order. Those of a process that was killed are found by
/// the next sweep.
fn take_down_at_exit() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| super::sys::at_exit(take_down));
}

extern "C" fn take_down() {
    // A group with a stage in it cannot be removed.
    prepared::dismiss_all();
    let Ok(mut made) = MADE.try_lock() else {
        return;
    };
    for (path, thread) in made.drain(..) {
        if let Some(parent) = path.parent() {
            let _: io::Result<()> = fs::write(parent.join("tasks"), thread.to_string());
        }
        let _ = fs::remove_dir(&path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    #[allow(clippy::print_stdout, reason = "a test that skips says so")]
    fn a_slot_that_is_given_up_leaves_no_group() {
        let parents = Parents::find();
        if parents.memory.is_err() && parents.pids.is_err() {
            println!("skipped: no controller of the first version can be used here");
            return;
        }
        let slot = match Slot::take("given-up", &parents) {
            Ok(slot) => slot,
            Err(reason) => {
                println!("skipped: {reason}");
                return;
            }
        };
        let groups: Vec<PathBuf> = [&slot.memory, &slot.pids]
            .into_iter()
            .flatten()
            .map(|group| group.path.clone())
            .collect();
        assert!(groups.iter().all(|group| group.is_dir()));
        drop(slot);
        let end = Instant::now() + Duration::from_secs(30);
        while groups.iter().any(|group| group.exists()) {
            assert!(Instant::now() < end, "{groups:?}");
            std::thread::yield_now();
        }
        assert!(!made().iter().any(|(path, _)| groups.contains(path)));
    }
}
