//! Counting survivors from outside: a control group of the test's own, else an environment variable that every process
//! of a test inherits.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The variable that marks the processes of one test.
pub(crate) const MARK: &str = "PROCTOR_TEST_MARK";

const NOBODY: u32 = 65534;

/// Where a driver runs, and who is counted.
pub(crate) struct Oracle {
    group: Option<PathBuf>,
    /// A group of the second version that was given to [`User::Nobody`], as a login manager would.
    delegated: Option<PathBuf>,
    mark: String,
}

/// Whose supervisor it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    /// The one the tests run as.
    Own,
    /// Another one without privileges; only when the tests run as root.
    Nobody,
}

impl User {
    /// Everybody who can be tested here.
    pub(crate) fn all() -> Vec<Self> {
        let root = nix::unistd::geteuid().is_root();
        let has_setpriv = Path::new("/usr/bin/setpriv").exists();
        if root && has_setpriv {
            vec![Self::Own, Self::Nobody]
        } else {
            println!("skipped: a second user needs root and setpriv");
            vec![Self::Own]
        }
    }
}

impl Oracle {
    /// A group with nobody in it. A freezer group of the first control group version is used where there is one, as no room
    /// ever touches that hierarchy.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("proctor-test-{}-{number}", std::process::id());
        let group = Path::new("/sys/fs/cgroup/freezer").join(&mark);
        let group = fs::create_dir(&group).is_ok().then_some(group);
        let delegated = delegate(&mark);
        Self {
            group,
            delegated,
            mark,
        }
    }

    /// A command that runs this test binary in the group.
    pub(crate) fn command(&self, user: User, arguments: &[String]) -> Command {
        let exe = std::env::current_exe().unwrap();
        let delegated = self.delegated.iter().filter(|_| user == User::Nobody);
        let groups = self.group.iter().chain(delegated);
        let join: Vec<String> = groups
            .map(|group| format!("echo $$ > {}/cgroup.procs && ", group.display()))
            .collect();
        let join = join.concat();
        let drop = match user {
            User::Own => "",
            User::Nobody => &format!("setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups "),
        };
        let mut command = Command::new("/bin/sh");
        command
            .arg("-c")
            .arg(format!("{join}exec {drop}\"$0\" \"$@\""))
            .arg(exe)
            .args(arguments)
            .env(MARK, &self.mark)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        command
    }

    /// Living processes, zombies not counted.
    pub(crate) fn alive(&self) -> Vec<i32> {
        let pids: Vec<i32> = match &self.group {
            Some(group) => fs::read_to_string(group.join("cgroup.procs"))
                .unwrap()
                .lines()
                .filter_map(|line| line.parse().ok())
                .collect(),
            None => self.marked(),
        };
        pids.into_iter()
            .filter(|pid| {
                fs::read_to_string(format!("/proc/{pid}/stat"))
                    .ok()
                    .and_then(|stat| stat.rsplit_once(')')?.1.trim().chars().next())
                    .is_some_and(|state| state != 'Z')
            })
            .collect()
    }

    fn marked(&self) -> Vec<i32> {
        let mark = format!("{MARK}={}", self.mark);
        fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|pid| {
                fs::read(format!("/proc/{pid}/environ"))
                    .is_ok_and(|env| env.split(|byte| *byte == 0).any(|v| v == mark.as_bytes()))
            })
            .collect()
    }

    /// Living processes once they are none, or after `bound`.
    pub(crate) fn alive_after(&self, bound: Duration) -> Vec<i32> {
        let end = Instant::now() + bound;
        loop {
            let alive = self.alive();
            if alive.is_empty() || Instant::now() >= end {
                return alive;
            }
            sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Oracle {
    /// Whatever a failed test left is killed here.
    fn drop(&mut self) {
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end {
            let alive = self.alive();
            if alive.is_empty() {
                break;
            }
            for pid in alive {
                let _ = nix::sys::signal::kill(
                    nix::unistd::Pid::from_raw(pid),
                    nix::sys::signal::Signal::SIGKILL,
                );
            }
            sleep(Duration::from_millis(5));
        }
        if let Some(group) = &self.group {
            let _ = fs::remove_dir(group);
        }
        if let Some(group) = &self.delegated {
            for entry in fs::read_dir(group).into_iter().flatten().flatten() {
                // Files of the group cannot be removed, and go with it.
                let _ = fs::remove_dir(entry.path());
            }
            let _ = fs::remove_dir(group);
        }
    }
}

/// Makes a control group of the second version and gives it to the user without privileges; `None` where root may not or
/// there is no such hierarchy.
fn delegate(name: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mut mounts = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let root = mounts.find(|mount| mount.get(2) == Some(&"cgroup2"))?[1].to_owned();
    let group = Path::new(&root).join(name);
    fs::create_dir(&group).ok()?;
    for file in [
        "",
        "cgroup.procs",
        "cgroup.subtree_control",
        "cgroup.threads",
    ] {
        std::os::unix::fs::chown(group.join(file), Some(NOBODY), Some(NOBODY)).ok()?;
    }
    Some(group)
}
