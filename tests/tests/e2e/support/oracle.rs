//! Counting what is still alive after a run, without asking the program under test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A control group that everything started through it stays in, whatever it does, unless something with the rights of
/// an administrator moves it. The old freezer hierarchy is preferred: rooms never use it.
#[derive(Debug)]
pub struct Oracle {
    group: Option<PathBuf>,
    folder: PathBuf,
}

impl Oracle {
    /// Counts programs that were started from files in `folder`, and, where this machine allows it, everything
    /// started through [`Oracle::watch`].
    pub fn new(folder: &Path) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "proctor-test-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let group = [
            "/sys/fs/cgroup/freezer",
            "/sys/fs/cgroup/unified",
            "/sys/fs/cgroup",
        ]
        .iter()
        .map(|root| Path::new(root).join(&name))
        .find(|group| std::fs::create_dir(group).is_ok() && group.join("cgroup.procs").exists());
        Self {
            group,
            folder: folder.canonicalize().expect("the folder exists"),
        }
    }

    /// Makes a command start inside the group.
    pub fn watch(&self, command: &Command) -> Command {
        let Some(group) = &self.group else {
            return copy(command, Command::new(command.get_program()));
        };
        let mut watched = Command::new("/bin/sh");
        watched
            .arg("-c")
            .arg("echo $$ > \"$0\" && exec \"$@\"")
            .arg(group.join("cgroup.procs"))
            .arg(command.get_program());
        copy(command, watched)
    }

    /// What is alive now: process ids with the programs they run.
    pub fn survivors(&self) -> Vec<String> {
        let mut pids = Vec::new();
        if let Some(group) = &self.group {
            collect(group, &mut pids);
        }
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(pid) = name.parse::<u32>() else {
                continue;
            };
            let program = std::fs::read_link(entry.path().join("exe")).unwrap_or_default();
            if program.starts_with(&self.folder) {
                pids.push(pid);
            }
        }
        pids.sort_unstable();
        pids.dedup();
        let alive = |pid: &u32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            (!status.contains("State:\tZ")).then(|| {
                let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                format!(
                    "{pid} {}",
                    String::from_utf8_lossy(&line).replace('\0', " ")
                )
            })
        };
        pids.iter().filter_map(alive).collect()
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let Some(group) = &self.group else { return };
        // A group can be removed when the last of those killed is gone, which takes a moment.
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end {
            let mut pids = Vec::new();
            collect(group, &mut pids);
            for pid in pids.into_iter().filter_map(|pid| i32::try_from(pid).ok()) {
                let pid = nix::unistd::Pid::from_raw(pid);
                let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
            }
            if std::fs::remove_dir(group).is_ok() || !group.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn copy(from: &Command, mut to: Command) -> Command {
    to.args(from.get_args()).stdin(std::process::Stdio::null());
    for (name, value) in from.get_envs() {
        match value {
            Some(value) => to.env(name, value),
            None => to.env_remove(name),
        };
    }
    to
}

/// Every process of a group and the groups below it.
fn collect(group: &Path, pids: &mut Vec<u32>) {
    let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    pids.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            collect(&entry.path(), pids);
        }
    }
}
