//! A cgroup2 of the room's own: killed at once, seen to be empty, and its CPU time known exactly.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::procfs::{Process, own_pid};

/// How the names of all our groups begin.
const PREFIX: &str = "proctor.";

/// Where groups are made: the cgroup2 this process is in.
pub(super) fn parent() -> Result<PathBuf, String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")
        .map_err(|error| format!("/proc/self/mountinfo: {error}"))?;
    let own = fs::read_to_string("/proc/self/cgroup")
        .map_err(|error| format!("/proc/self/cgroup: {error}"))?;
    locate(&mounts, &own).ok_or_else(|| "no cgroup2 is mounted that holds this process".to_owned())
}

/// Finds the directory of our group from the mount table and our membership.
fn locate(mounts: &str, own: &str) -> Option<PathBuf> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        if !right.starts_with("cgroup2 ") {
            return None;
        }
        let mut fields = left.split(' ').skip(3);
        let root = fields.next()?;
        let mount = unescape(fields.next()?);
        let inside = Path::new(own).strip_prefix(root).ok()?;
        Some(Path::new(&mount).join(inside))
    })
}

/// The mount table writes blanks and backslashes as three octal digits.
fn unescape(text: &str) -> String {
    text.replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\134", "\\")
}

/// The group of one room. Its directory is removed when the value is dropped, if it is empty by then.
#[derive(Debug)]
pub(super) struct Cgroup {
    path: PathBuf,
    directory: OwnedFd,
}

impl Cgroup {
    /// Makes the group of a room of this run.
    pub(super) fn create(run_id: &str) -> Result<Self, String> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let parent = parent()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(name(run_id, number)?);
        let say = |error: io::Error| format!("{}: {error}", path.display());
        fs::create_dir(&path).map_err(say)?;
        let group = fs::File::open(&path).map(|directory| Self {
            path: path.clone(),
            directory: directory.into(),
        });
        let group = group.map_err(say)?;
        if !path.join("cgroup.kill").exists() {
            return Err("this kernel has no cgroup.kill (Linux 5.14 and later have it)".into());
        }
        Ok(group)
    }

    /// The directory, for the kernel.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// The directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Kills everything in the group and below it.
    pub(super) fn kill(&self) -> io::Result<()> {
        kill(&self.path)
    }

    /// True when no process is left in it.
    pub(super) fn is_empty(&self) -> bool {
        is_empty(&self.path)
    }

    /// CPU time of everything that ever ran in it.
    pub(super) fn cpu(&self) -> Option<Duration> {
        let stat = fs::read_to_string(self.path.join("cpu.stat")).ok()?;
        let usage = stat
            .lines()
            .find_map(|line| line.strip_prefix("usage_usec "))?;
        Some(Duration::from_micros(usage.parse().ok()?))
    }

    /// Processes in it now.
    pub(super) fn members(&self) -> Vec<i32> {
        let mut members = Vec::new();
        collect_members(&self.path, &mut members);
        members
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A group that is still busy is found by the next sweep.
        let _ = remove(&self.path);
    }
}

/// Kills everything in a group directory and below it.
pub(super) fn kill(path: &Path) -> io::Result<()> {
    fs::write(path.join("cgroup.kill"), "1")
}

/// True when no process is left in a group directory or below it.
pub(super) fn is_empty(path: &Path) -> bool {
    match fs::read_to_string(path.join("cgroup.events")) {
        Ok(events) => events.lines().any(|line| line == "populated 0"),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Processes in a group directory and below it.
pub(super) fn collect_members(path: &Path, members: &mut Vec<i32>) {
    if let Ok(list) = fs::read_to_string(path.join("cgroup.procs")) {
        members.extend(list.lines().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    for below in directories(path) {
        collect_members(&below, members);
    }
}

/// Removes a group directory and those below it.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    for below in directories(path) {
        remove(&below)?;
    }
    match fs::remove_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn directories(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else {
        return Vec::new();
    };
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// `proctor.RUN.PIDNS.PID.STARTED.NUMBER`: whose room it is, and which supervisor made it.
fn name(run_id: &str, number: u64) -> Result<String, String> {
    let run: String = run_id
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        .take(80)
        .collect();
    let own = own_pid();
    let started = Process::read(own)
        .ok_or("/proc/self/stat cannot be read")?
        .started;
    let namespace = pid_namespace().ok_or("/proc/self/ns/pid cannot be read")?;
    Ok(format!(
        "{PREFIX}{run}.{namespace}.{own}.{started}.{number}"
    ))
}

/// The number of this process's pid namespace.
fn pid_namespace() -> Option<u64> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    let text = link.to_str()?;
    text.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// A room that a dead supervisor left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleRoom {
    /// The run it belonged to.
    pub run_id: String,
    /// Name of its control group.
    pub name: String,
    /// Processes that were still alive in it and were killed.
    pub survivors: u32,
    /// True when it is empty and removed.
    pub removed: bool,
}

/// Finds the rooms of supervisors that are dead, kills what is left in them and removes them. Rooms of living
/// supervisors, and of supervisors in another pid namespace, are not touched.
pub fn sweep_stale_rooms() -> Vec<StaleRoom> {
    let Ok(parent) = parent() else {
        return Vec::new();
    };
    let namespace = pid_namespace();
    directories(&parent)
        .into_iter()
        .filter_map(|path| {
            let name = path.file_name().and_then(OsStr::to_str)?.to_owned();
            let owner = Owner::parse(&name)?;
            (Some(owner.namespace) == namespace && !owner.alive())
                .then(|| sweep(&path, name, owner.run_id))
        })
        .collect()
}

fn sweep(path: &Path, name: String, run_id: String) -> StaleRoom {
    let mut members = Vec::new();
    collect_members(path, &mut members);
    let _ = kill(path);
    let end = Instant::now() + Duration::from_secs(5);
    while !is_empty(path) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    StaleRoom {
        run_id,
        name,
        survivors: members.len() as u32,
        removed: remove(path).is_ok(),
    }
}

/// What the name of a group says.
#[derive(Debug, PartialEq, Eq)]
struct Owner {
    run_id: String,
    namespace: u64,
    pid: i32,
    started: u64,
}

impl Owner {
    fn parse(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix(PREFIX)?.split('.');
        let owner = Self {
            run_id: parts.next()?.to_owned(),
            namespace: parts.next()?.parse().ok()?,
            pid: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
        };
        let _number: u64 = parts.next()?.parse().ok()?;
        parts.next().is_none().then_some(owner)
    }

    fn alive(&self) -> bool {
        Process::read(self.pid)
            .is_some_and(|process| process.started == self.started && process.alive())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_group_is_located_in_every_usual_layout() {
        let hybrid = "30 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      42 25 0:39 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        assert_eq!(
            locate(hybrid, "4:memory:/x\n0::/\n"),
            Some("/sys/fs/cgroup/unified".into())
        );
        let pure = "35 24 0:30 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
        let scope = "0::/user.slice/user-1000.slice/a b.scope\n";
        assert_eq!(
            locate(pure, scope),
            Some("/sys/fs/cgroup/user.slice/user-1000.slice/a b.scope".into())
        );
        let inside = "35 24 0:30 /docker/ab /sys/fs/cgro\\040up ro - cgroup2 cgroup rw\n";
        assert_eq!(
            locate(inside, "0::/docker/ab/x\n"),
            Some("/sys/fs/cgro up/x".into())
        );
        assert_eq!(locate(inside, "0::/elsewhere\n"), None);
        assert_eq!(locate("", "0::/\n"), None);
        assert_eq!(locate(pure, "4:memory:/\n"), None);
    }

    #[test]
    fn a_name_says_whose_room_it_is() {
        let Ok(name) = name("run/7.x-y", 3) else {
            return;
        };
        let owner = Owner::parse(&name).unwrap();
        assert_eq!(owner.run_id, "run7x-y");
        assert_eq!(owner.pid, own_pid());
        assert!(owner.alive());
        assert!(
            !Owner {
                started: owner.started + 1,
                ..owner
            }
            .alive()
        );
        for other in [
            "proctor.x",
            "proctor.x.1.2.3",
            "proctor.x.1.2.3.4.5",
            "other.x.1.2.3.4",
        ] {
            assert_eq!(Owner::parse(other), None);
        }
    }
}
