//! Kernels that lie: whatever answer never comes, an attempt ends, and says what it could not see.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::thread::park_timeout;
use std::time::{Duration, Instant};

use proctor_supervisor::room::{Kernel, Rung};
use serde_json::{Value, json};

use crate::checks::{drive_with, rungs};
use crate::oracle::User;

/// All tests here.
pub(crate) const TESTS: &[(&str, fn())] = &[
    (
        "no_lie_of_the_kernel_makes_an_attempt_wait_for_ever",
        every_lie,
    ),
    ("processes_that_cannot_be_killed_are_named", unkillable),
    (
        "a_scratch_directory_that_cannot_be_removed_is_left",
        removal,
    ),
];

/// An answer that never comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// Kills reach nobody.
    Immortal,
    /// The room's own process says nothing, and the end of its sockets is not seen either.
    Mute,
    /// The room's own process never ends.
    NeverReaped,
    /// The control group is never empty.
    NeverEmpty,
    /// The file system does not come back from a removal.
    NeverRemoved,
}

const LIES: [(&str, Lie); 5] = [
    ("immortal", Lie::Immortal),
    ("mute", Lie::Mute),
    ("never reaped", Lie::NeverReaped),
    ("never empty", Lie::NeverEmpty),
    ("never removed", Lie::NeverRemoved),
];

#[derive(Debug)]
struct Liar(Lie);

impl Kernel for Liar {
    fn kills(&self) -> bool {
        self.0 != Lie::Immortal
    }

    fn delivers(&self) -> bool {
        self.0 != Lie::Mute
    }

    fn reaps(&self, stage: BorrowedFd<'_>) -> io::Result<bool> {
        if self.0 == Lie::NeverReaped {
            return Ok(false);
        }
        proctor_supervisor::room::Honest.reaps(stage)
    }

    fn says_empty(&self, group: &Path) -> bool {
        self.0 != Lie::NeverEmpty && proctor_supervisor::room::Honest.says_empty(group)
    }

    fn removes(&self, directory: &Path, bound: Duration) -> io::Result<()> {
        if self.0 == Lie::NeverRemoved {
            // Longer than anybody waits; the process ends before.
            park_timeout(Duration::from_mins(10));
        }
        proctor_supervisor::room::Honest.removes(directory, bound)
    }

    fn patience(&self) -> Duration {
        Duration::from_millis(600)
    }

    fn removal(&self) -> Duration {
        Duration::from_millis(200)
    }
}

/// A kernel by the name of its lie, for the options of a driver.
pub(crate) fn kernel(name: &str) -> &'static dyn Kernel {
    let known = LIES.iter().find(|(other, _)| *other == name);
    let (_, lie) = known.unwrap_or_else(|| panic!("no lie is called {name}"));
    Box::leak(Box::new(Liar(*lie)))
}

/// The bound of a whole attempt here: budget, patience, removal, and a busy machine.
const BOUND: Duration = Duration::from_secs(20);

fn every_lie() {
    for user in User::all() {
        for rung in rungs(user) {
            // They only wait, so they can do it at the same time.
            std::thread::scope(|scope| {
                for (name, lie) in LIES {
                    for worker in ["good", "hang"] {
                        scope.spawn(move || one_lie(user, rung, name, lie, worker));
                    }
                }
            });
        }
    }
}

fn one_lie(user: User, rung: Rung, name: &str, lie: Lie, worker: &str) {
    let begun = Instant::now();
    let options = json!({ "lie": name });
    let (lines, survivors, _) = drive_with(user, rung, 1500, 0, &[worker], &options);
    let case = format!("{rung} as {user:?}, {name}, {worker}: {}", lines[0]);
    assert!(begun.elapsed() < BOUND, "{case}");
    // Without a kill everything ends only with its supervisor, a moment later.
    assert!(survivors == 0 || lie == Lie::Immortal, "{case}");
    let outcome = lines[0]["outcome"].as_str().unwrap();
    let seen = if lie == Lie::NeverEmpty {
        rung.has_cgroup()
    } else {
        // A worker that ended well needs no kill, and a guardian that has nobody left goes by itself.
        lie == Lie::NeverReaped || lie == Lie::Immortal && worker == "hang"
    };
    if seen {
        assert!(outcome.starts_with("infrastructure(unkillable: "), "{case}");
        assert_eq!(lines[0]["facts"]["room_empty"], false, "{case}");
        // How long it took to be what it never was is no number.
        assert_eq!(lines[0]["facts"]["emptying_seconds"], Value::Null, "{case}");
    } else if worker == "hang" || lie == Lie::Mute {
        assert_eq!(outcome, "timeout", "{case}");
    }
    if lines[0]["facts"]["room_empty"] == true {
        assert!(lines[0]["facts"]["emptying_seconds"].is_f64(), "{case}");
    }
    let stored = lines[0]["stored"].as_array().unwrap().len();
    assert!(stored <= 2, "{case}");
}

fn unkillable() {
    for rung in rungs(User::Own) {
        let options = json!({ "lie": "immortal" });
        let workers = ["daemon-and-hang"];
        let (lines, _, _) = drive_with(User::Own, rung, 700, 0, &workers, &options);
        let outcome = lines[0]["outcome"].as_str().unwrap();
        let pids: Vec<i64> = lines[0]["unkillable"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pid| pid.as_i64().unwrap())
            .collect();
        // Worker and daemon at least, by the numbers they have outside, each with its state.
        assert!(pids.len() >= 2, "{rung}: {}", lines[0]);
        for pid in pids {
            assert!(outcome.contains(&format!("{pid} (")), "{rung}: {outcome}");
        }
        assert!(outcome.contains("(S)"), "{rung}: {outcome}");
    }
}

fn removal() {
    // Without a view of its own the worker's files lie in the directory itself.
    let options: Value = json!({ "lie": "never removed", "mask": ["mount namespace"] });
    for rung in rungs(User::Own) {
        let oracle = crate::oracle::Oracle::new();
        let directory = crate::checks::open_directory();
        let workers = ["make-files"];
        let arguments =
            crate::checks::driver_arguments(rung, 20_000, 0, directory.path(), &workers);
        let begun = Instant::now();
        let output = oracle
            .command(User::Own, &arguments)
            .env(crate::driver::OPTIONS, options.to_string())
            .output()
            .unwrap();
        let line: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(begun.elapsed() < BOUND, "{rung}: {line}");
        let why = line["facts"]["scratch_left"].as_str().unwrap();
        assert!(why.contains("the file system does not answer"), "{why}");
        // The verdict is the method's own.
        assert_eq!(line["outcome"], "completed", "{rung}: {line}");
        assert!(directory.path().join("0/scratch").exists(), "{rung}");
    }
}
