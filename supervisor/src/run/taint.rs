//! Marks of a machine on which processes could not be killed: whatever is measured beside them is not what it seems.
//!
//! A mark is a file beside the scratch directories. It holds as long as one of its processes is there: their numbers and
//! starts name them until the machine starts anew, which its boot id tells.

use super::{host, scratch};
use crate::attempt::Ending;
use crate::room::Survivor;
use crate::rundir::durable::{self, DiskResult};
use crate::rundir::{Supervisor, regular};
use proctor_protocol::canonical::{Value, pretty, read};
use proctor_protocol::object;
use proctor_protocol::outcome::Outcome;
use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How the names of all marks begin.
const PREFIX: &str = "proctor-tainted-";
const SCHEMA: &str = "proctor.tainted/1";
/// The largest mark that is read. One process takes less than a hundred bytes.
const MAX_BYTES: u64 = 4 << 20;

/// What a mark says now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// Processes of the run are still there, or that cannot be seen from here.
    Holds(String),
    /// Nothing of what it names is left.
    Over(String),
}

/// Marks this machine for processes of a run that could not be killed. `None` for processes that cannot be seen: such a
/// mark holds until the machine starts anew.
///
/// # Errors
/// The mark cannot be written.
pub fn mark(folder: &Path, run_id: &str, left: &[Survivor]) -> DiskResult<PathBuf> {
    let processes: Vec<Value> = left
        .iter()
        .map(|process| {
            object! {
                "pid" => i64::from(process.pid),
                "state" => process.state.to_string(),
                "started" => i64::try_from(process.started).unwrap_or(0),
            }
        })
        .collect();
    let this = Supervisor::this();
    let value = object! {
        "schema" => SCHEMA,
        "boot_id" => host::boot_id(),
        "pid_namespace" => i64::try_from(this.namespace).unwrap_or(0),
        "run_id" => run_id,
        "marked_utc" => host::now_utc(),
        "processes" => processes,
    };
    let random = host::random_hex(6).unwrap_or_else(|_| this.mark());
    let path = folder.join(format!("{PREFIX}{random}"));
    durable::write_file(&path, pretty(&value).as_bytes())?;
    Ok(path)
}

/// Marks this machine when the room of an attempt could not be emptied. What cannot be written is said in the outcome.
pub fn note(folder: &Path, run_id: &str, ending: &Ending, outcome: &mut Outcome) {
    if ending.facts.room_empty {
        return;
    }
    if let Err(error) = mark(folder, run_id, &ending.unkillable)
        && let Outcome::Infrastructure(reason) = outcome
    {
        let _ = write!(reason, "; the machine could not be marked: {error}");
    }
}

/// The marks in the folder of the scratch directories. Those that are over are taken away when `clear` says so.
pub fn marks(clear: bool) -> Vec<Mark> {
    marks_in(&scratch::root(), clear)
}

fn marks_in(folder: &Path, clear: bool) -> Vec<Mark> {
    let own = nix::unistd::geteuid().as_raw();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter(|entry| {
            entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.starts_with(PREFIX))
        })
        // Anybody can write there; the marks of others are not believed.
        .filter(|entry| {
            entry.metadata().is_ok_and(|found| {
                let known = [0, own].contains(&found.uid());
                known && found.is_file() && found.len() <= MAX_BYTES
            })
        })
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths.iter().map(|path| look(path, clear)).collect()
}

fn look(path: &Path, clear: bool) -> Mark {
    let shown = path.display();
    let Some(value) = regular::read(path).ok().and_then(|bytes| read(&bytes).ok()) else {
        return Mark::Holds(format!(
            "tainted machine: {shown} says that processes could not be killed, and cannot be read; remove it when you know better"
        ));
    };
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let run = text("run_id");
    let over = |why: &str| {
        let mut text =
            format!("the processes of run {run} that could not be killed are gone: {why}");
        if clear && let Err(error) = std::fs::remove_file(path) {
            let _ = write!(
                text,
                "; {shown} says otherwise and cannot be removed: {error}"
            );
        }
        Mark::Over(text)
    };
    if text("boot_id") != host::boot_id() {
        return over("the machine was started anew");
    }
    let number = |value: &Value, key: &str| value.get(key).and_then(Value::as_int);
    let namespace = number(&value, "pid_namespace").and_then(|number| u64::try_from(number).ok());
    let processes = value.get("processes").and_then(Value::as_array);
    let processes = processes.unwrap_or_default();
    let here = namespace == Some(Supervisor::this().namespace);
    let alive: Vec<String> = processes
        .iter()
        .filter_map(|process| {
            let owner = Supervisor {
                namespace: namespace?,
                pid: number(process, "pid")?,
                started: u64::try_from(number(process, "started")?).ok()?,
            };
            let state = process.get("state").and_then(Value::as_str)?;
            (!owner.is_gone()).then(|| format!("{} ({state})", owner.pid))
        })
        .collect();
    if here && !processes.is_empty() && alive.is_empty() {
        return over("every one has ended");
    }
    let who = if processes.is_empty() {
        "processes that cannot be seen".to_owned()
    } else if here {
        format!("processes {}", alive.join(", "))
    } else {
        format!("processes {} of another pid namespace", alive.join(", "))
    };
    let by_hand = if here && !processes.is_empty() {
        String::new()
    } else {
        format!(", or remove {shown} when you know that they are gone")
    };
    Mark::Holds(format!(
        "tainted machine: {who} of run {run} could not be killed and disturb what runs beside them; restart the machine{by_hand}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn survivor(pid: i32, started: u64) -> Survivor {
        Survivor {
            pid,
            state: 'D',
            started,
        }
    }

    #[test]
    fn a_mark_holds_as_long_as_one_of_its_processes_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("sleep")
            .arg("60")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let started = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19);
        let started: u64 = started.unwrap().parse().unwrap();
        // The number alone is not the process.
        let left = [survivor(pid, started), survivor(1, u64::MAX >> 1)];
        let path = mark(folder.path(), "r1", &left).unwrap();
        let found = marks_in(folder.path(), true);
        let [Mark::Holds(text)] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert!(
            text.contains(&format!(
                "processes {pid} (D) of run r1 could not be killed"
            )),
            "{text}"
        );
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(matches!(
            marks_in(folder.path(), false)[..],
            [Mark::Over(_)]
        ));
        assert!(path.exists());
        let found = marks_in(folder.path(), true);
        let [Mark::Over(text)] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert!(text.contains("every one has ended"), "{text}");
        assert!(!path.exists());
        assert!(marks_in(folder.path(), true).is_empty());
    }

    #[test]
    fn a_start_of_the_machine_ends_every_mark() {
        let folder = tempfile::tempdir().unwrap();
        let this = Supervisor::this();
        let left = [survivor(this.pid as i32, this.started)];
        let path = mark(folder.path(), "r2", &left).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let other = text.replace(&host::boot_id(), "00000000-0000-0000-0000-000000000000");
        assert_ne!(other, text);
        std::fs::write(&path, other).unwrap();
        assert!(matches!(
            &marks_in(folder.path(), true)[..],
            [Mark::Over(why)] if why.contains("started anew")
        ));
        assert!(!path.exists());
    }

    #[test]
    fn what_cannot_be_seen_or_read_is_not_taken_for_gone() {
        let folder = tempfile::tempdir().unwrap();
        mark(folder.path(), "r3", &[]).unwrap();
        std::fs::write(folder.path().join(format!("{PREFIX}zz")), "{").unwrap();
        std::fs::write(folder.path().join("proctor-1-2-3-4"), "{").unwrap();
        std::os::unix::fs::symlink("/dev/null", folder.path().join(format!("{PREFIX}link")))
            .unwrap();
        let found = marks_in(folder.path(), true);
        assert_eq!(found.len(), 2, "{found:?}");
        for mark in found {
            let Mark::Holds(text) = mark else {
                panic!("{mark:?}");
            };
            assert!(text.contains("cannot be"), "{text}");
        }
    }

    #[test]
    fn a_room_that_could_not_be_emptied_leaves_a_mark() {
        let folder = tempfile::tempdir().unwrap();
        let this = Supervisor::this();
        let unkillable = || Outcome::Infrastructure("unkillable".into());
        let mut ending = Ending::not_started(unkillable(), crate::room::Isolation::none());
        ending.unkillable = vec![survivor(this.pid as i32, this.started)];
        let mut outcome = unkillable();
        note(folder.path(), "r4", &ending, &mut outcome);
        assert!(marks_in(folder.path(), true).is_empty());
        ending.facts.room_empty = false;
        note(folder.path(), "r4", &ending, &mut outcome);
        assert_eq!(outcome, unkillable());
        let found = marks_in(folder.path(), true);
        assert!(matches!(&found[..], [Mark::Holds(text)] if text.contains("of run r4")));
        note(&folder.path().join("nowhere"), "r4", &ending, &mut outcome);
        let text = outcome.to_string();
        assert!(
            text.contains("unkillable; the machine could not be marked"),
            "{text}"
        );
    }
}
