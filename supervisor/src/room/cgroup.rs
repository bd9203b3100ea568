//! A cgroup2 of the room's own: killed at once, seen to be empty, and its CPU time known exactly.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::controllers::{self, Cgroupfs};
use super::procfs::{Process, own_pid, pid_namespace};

/// How the names of all our groups begin.
const PREFIX: &str = "proctor.";

/// Where groups are made: the cgroup2 this process was in at the first call.
pub(super) fn parent() -> Result<PathBuf, String> {
    static PARENT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PARENT.get_or_init(find_parent).clone()
}

fn find_parent() -> Result<PathBuf, String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")
        .map_err(|error| format!("/proc/self/mountinfo: {error}"))?;
    let own = fs::read_to_string("/proc/self/cgroup")
        .map_err(|error| format!("/proc/self/cgroup: {error}"))?;
    locate(&mounts, &own).ok_or_else(|| "no cgroup2 is mounted that holds this process".to_owned())
}

/// Where groups of a controller of the first version are made: the group this process is in.
pub(super) fn parent_v1(controller: &str) -> Result<PathBuf, String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")
        .map_err(|error| format!("/proc/self/mountinfo: {error}"))?;
    let own = fs::read_to_string("/proc/self/cgroup")
        .map_err(|error| format!("/proc/self/cgroup: {error}"))?;
    let path = locate_v1(&mounts, &own, controller)
        .ok_or_else(|| format!("no {controller} controller of the first version is mounted"))?;
    nix::unistd::access(&path, nix::unistd::AccessFlags::W_OK)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// Finds the directory of our group from the mount table and our membership.
fn locate(mounts: &str, own: &str) -> Option<PathBuf> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    directory_of(mounts, own, |right| right.starts_with("cgroup2 "))
}

/// As [`locate`], for a controller of the first version.
fn locate_v1(mounts: &str, own: &str, controller: &str) -> Option<PathBuf> {
    let named = |list: &str| list.split(',').any(|name| name == controller);
    let own = own.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        named(controllers).then_some(path)
    })?;
    directory_of(mounts, own, |right| {
        right.starts_with("cgroup ") && right.rsplit(' ').next().is_some_and(named)
    })
}

/// The directory of a group under the first mount that is wanted.
fn directory_of(mounts: &str, own: &str, wanted: impl Fn(&str) -> bool) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        if !wanted(right) {
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

/// How the names of the groups begin that supervisors move themselves into.
const LEAF_PREFIX: &str = "proctor-supervisor.";

/// Makes a controller of the second version available to the rooms.
pub(super) fn enable(controller: &str) -> Result<(), String> {
    let own = own_pid();
    let leaf = format!("{LEAF_PREFIX}{own}");
    controllers::hand_down(&Cgroupfs, &parent()?, controller, own, &leaf)
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
        let path = parent()?.join(next_name(run_id)?);
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

    /// Makes everything in the group and below it stand still; false when it does not within `bound`, and then it goes on.
    pub(super) fn freeze(&self, bound: Duration) -> bool {
        let end = Instant::now() + bound;
        if fs::write(self.path.join("cgroup.freeze"), "1").is_err() {
            return false;
        }
        loop {
            if field(&self.path.join("cgroup.events"), "frozen") == Some(1) {
                return true;
            }
            if Instant::now() >= end {
                self.thaw();
                return false;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Lets everything in the group go on.
    pub(super) fn thaw(&self) {
        let _ = fs::write(self.path.join("cgroup.freeze"), "0");
    }

    /// CPU time of everything that ever ran in it.
    pub(super) fn cpu(&self) -> Option<Duration> {
        field(&self.path.join("cpu.stat"), "usage_usec").map(Duration::from_micros)
    }

    /// Limits the memory of the group, swap left out.
    pub(super) fn limit_memory(&self, bytes: u64) -> Result<(), String> {
        controllers::limit_memory(&Cgroupfs, &self.path, bytes)
    }

    /// Limits the processes of the group.
    pub(super) fn limit_processes(&self, count: u32) -> Result<(), String> {
        controllers::limit_processes(&Cgroupfs, &self.path, count)
    }

    /// How often the kernel killed a process of the group for memory.
    pub(super) fn memory_kills(&self) -> Option<u64> {
        field(&self.path.join("memory.events"), "oom_kill")
    }

    /// How often a new process was refused.
    pub(super) fn refused_processes(&self) -> Option<u64> {
        field(&self.path.join("pids.events"), "max")
    }

    /// The most memory the group used.
    pub(super) fn peak_memory(&self) -> Option<u64> {
        let text = fs::read_to_string(self.path.join("memory.peak")).ok()?;
        text.trim().parse().ok()
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

/// One number of a file with a name and a number in each line.
pub(super) fn field(file: &Path, name: &str) -> Option<u64> {
    fs::read_to_string(file).ok()?.lines().find_map(|line| {
        let (other, number) = line.split_once(' ')?;
        (other == name).then(|| number.trim().parse().ok())?
    })
}

/// The name of the next group of this process.
pub(super) fn next_name(run_id: &str) -> Result<String, String> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    name(run_id, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// `proctor.RUN.PIDNS.PID.STARTED.NUMBER`: whose room it is, and which supervisor made it.
fn name(run_id: &str, number: u64) -> Result<String, String> {
    static OWNER: OnceLock<Result<String, &'static str>> = OnceLock::new();
    let run: String = run_id
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        .take(80)
        .collect();
    let owner = OWNER.get_or_init(|| {
        let own = own_pid();
        let process = Process::read(own).ok_or("/proc/self/stat cannot be read")?;
        let namespace = pid_namespace().ok_or("/proc/self/ns/pid cannot be read")?;
        Ok(format!("{namespace}.{own}.{}", process.started))
    });
    let owner = owner.as_ref().map_err(|reason| (*reason).to_owned())?;
    Ok(format!("{PREFIX}{run}.{owner}.{number}"))
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
    let parents = [parent(), parent_v1("memory"), parent_v1("pids")];
    let namespace = pid_namespace();
    parents
        .into_iter()
        .filter_map(Result::ok)
        .flat_map(|parent| directories(&parent))
        .filter_map(|path| {
            let name = path.file_name().and_then(OsStr::to_str)?.to_owned();
            if name.starts_with(LEAF_PREFIX) {
                // Goes only when nobody is in it, and is nobody's room.
                let _ = fs::remove_dir(&path);
            }
            let owner = Owner::parse(&name)?;
            if Some(owner.namespace) != namespace || owner.alive() {
                return None;
            }
            let counts_only = !path.join("cgroup.kill").exists();
            let stale = sweep(&path, name, owner.run_id);
            // Groups of the first version only count and limit; an empty one was nobody's room any more.
            (!counts_only || stale.survivors > 0 || !stale.removed).then_some(stale)
        })
        .collect()
}

fn sweep(path: &Path, name: String, run_id: String) -> StaleRoom {
    let mut members = Vec::new();
    collect_members(path, &mut members);
    let killable = path.join("cgroup.kill").exists();
    let end = Instant::now() + Duration::from_secs(5);
    if killable {
        let _ = kill(path);
        while !is_empty(path) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    } else {
        while Instant::now() < end && kill_members(path) > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    StaleRoom {
        run_id,
        name,
        survivors: members.len() as u32,
        removed: remove(path).is_ok(),
    }
}

/// Kills what is in a group of the first version, which only rooms of ours enter; gives back how many there were.
fn kill_members(path: &Path) -> usize {
    let mut members = Vec::new();
    collect_members(path, &mut members);
    for member in &members {
        let _ = nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(*member),
            nix::sys::signal::Signal::SIGKILL,
        );
    }
    members.len()
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
        let joint = "31 25 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";
        assert_eq!(
            locate_v1(joint, "3:cpu,cpuacct:/a\n0::/\n", "cpuacct"),
            Some("/sys/fs/cgroup/cpu,cpuacct/a".into())
        );
        assert_eq!(locate_v1(joint, "3:cpu,cpuacct:/a\n", "memory"), None);
        assert_eq!(locate_v1(pure, "0::/\n", "memory"), None);
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
