//! Reading /proc for processes and who started them.

use std::fs;

/// One process as /proc shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) session: i32,
    /// `R`, `S`, `D`, `Z` and so on.
    pub(super) state: char,
    /// Clock ticks after boot; with the number it names one process for ever.
    pub(crate) started: u64,
}

impl Process {
    /// Reads one process; `None` when it is gone.
    pub(crate) fn read(pid: i32) -> Option<Self> {
        Self::parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The fields after the command name, which may itself hold spaces, parentheses and bytes that are no text.
    fn parse(pid: i32, stat: &[u8]) -> Option<Self> {
        let name_ends = stat.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(&stat[name_ends + 1..]).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        let started = fields.nth(15)?.parse().ok()?;
        Some(Self {
            pid,
            parent,
            session,
            state,
            started,
        })
    }

    /// True unless it has ended and only waits to be reaped.
    pub(crate) fn alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }
}

/// The number of this process in its pid namespace.
pub(super) fn own_pid() -> i32 {
    nix::unistd::getpid().as_raw()
}

/// The number of this process's pid namespace; `None` when the system does not tell.
pub(crate) fn pid_namespace() -> Option<u64> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    let text = link.to_str()?;
    text.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// Every process that can be seen.
pub(super) fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Process::read)
        .collect()
}

/// Everything that descends from `ancestor`, itself left out.
pub(super) fn descendants(ancestor: i32, all: &[Process]) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![ancestor];
    while let Some(parent) = parents.pop() {
        for process in all.iter().filter(|process| process.parent == parent) {
            if !found.iter().any(|other| other.pid == process.pid) {
                found.push(*process);
                parents.push(process.pid);
            }
        }
    }
    found
}

/// The children of this single-threaded process.
pub(super) fn children_of_self() -> Vec<i32> {
    let own = own_pid();
    match fs::read_to_string(format!("/proc/self/task/{own}/children")) {
        Ok(list) => list
            .split_ascii_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect(),
        // Kernels without that file.
        Err(_) => processes()
            .into_iter()
            .filter(|process| process.parent == own)
            .map(|process| process.pid)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_does_not_move_the_fields() {
        let stat = b"7 (a) S \xff\xfe 9) Z 1 5 6 0 -1 4 0 0 0 0 1 2 3 4 20 0 1 0 777 8 9";
        let process = Process::parse(7, stat).unwrap();
        assert_eq!(
            process,
            Process {
                pid: 7,
                parent: 1,
                session: 6,
                state: 'Z',
                started: 777
            }
        );
        assert!(!process.alive());
    }

    #[test]
    fn descendants_are_found_at_any_depth() {
        let of = |pid, parent| Process {
            pid,
            parent,
            session: 0,
            state: 'S',
            started: 0,
        };
        let all = [of(4, 3), of(3, 2), of(9, 1), of(2, 1), of(1, 0)];
        let mut found: Vec<i32> = descendants(2, &all).iter().map(|p| p.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [3, 4]);
    }

    #[test]
    fn this_process_is_seen() {
        let own = own_pid();
        assert!(processes().iter().any(|p| p.pid == own && p.alive()));
    }
}
