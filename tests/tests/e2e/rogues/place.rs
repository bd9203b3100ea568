//! Where rogues are let loose: every rung this machine gives, under a supervisor of this user and, when this user is
//! root, under one without any rights.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::bench::Bench;
use crate::support::oracle::Oracle;
use crate::support::proctor::{self, Done};
use crate::support::{programs, skip};

/// How long after a verdict something may still be alive.
const GONE_WITHIN: Duration = Duration::from_secs(2);

/// Whose supervisor it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// The one the tests run as.
    Own,
    /// One that has no account, no rights and no process but what the tests start: some rogues kill all of a user's.
    Nobody,
}

/// A rung under a user.
#[derive(Debug, Clone)]
pub struct Place {
    /// Whose supervisor.
    pub user: User,
    /// The rung, by name.
    pub rung: &'static str,
    /// What the kernel refuses there, as `cage` names it.
    pub refused: &'static [&'static str],
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let root = nix::unistd::geteuid().is_root();
        let user = match self.user {
            User::Own if root => "root",
            User::Own => "this user",
            User::Nobody => "nobody",
        };
        write!(f, "{} as {user}", self.rung)?;
        for name in self.refused {
            write!(f, ", without {name}")?;
        }
        Ok(())
    }
}

impl Place {
    /// True when rooms have a pid namespace, so that a worker sees nobody outside.
    pub fn walled(&self) -> bool {
        matches!(self.rung, "K4" | "K3a")
    }

    /// True when the supervisor has the rights of an administrator: control groups, and a user for each worker.
    pub fn as_root(&self) -> bool {
        self.user == User::Own && nix::unistd::geteuid().is_root()
    }

    /// True when a worker may reach its guardian and its supervisor with signals.
    pub fn exposed(&self) -> bool {
        !self.walled() && !self.as_root()
    }

    /// Makes a command run as this place's user. Everything in the folder of the bench is given to that user first.
    pub fn command(&self, bench: &Bench, methods: &[Value], more: &[&str]) -> Command {
        let mut options = vec!["--containment", self.rung];
        options.extend(more);
        let run = bench.run_command(methods, &options);
        let user = self.user.number();
        hand_over(&bench.path(""), user);
        if self.refused.is_empty() {
            return as_user(user, run);
        }
        let mut caged = Command::new(programs().join("cage"));
        caged
            .args(self.refused)
            .arg("--")
            .arg(run.get_program())
            .args(run.get_args());
        as_user(user, caged)
    }

    /// Runs methods; demands that nobody is alive afterwards.
    pub fn run(&self, bench: &Bench, methods: &[Value], more: &[&str]) -> Done {
        let oracle = Oracle::new(&bench.path(""));
        let done = proctor::finish(oracle.watch(&self.command(bench, methods, more)));
        assert_eq!(
            alive_after(&oracle),
            Vec::<String>::new(),
            "{self}: nobody may be alive"
        );
        done
    }
}

/// Who is still alive when everybody must be gone.
pub fn alive_after(oracle: &Oracle) -> Vec<String> {
    let end = Instant::now() + GONE_WITHIN;
    loop {
        let alive = oracle.survivors();
        if alive.is_empty() || Instant::now() >= end {
            return alive;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Every place of this machine but K0, best rung first; says what is missing.
pub fn places(test: &str) -> &'static [Place] {
    static PLACES: OnceLock<Vec<Place>> = OnceLock::new();
    PLACES.get_or_init(|| {
        let mut places = Vec::new();
        for user in [User::Own, User::Nobody] {
            if user == User::Nobody && !nobody_can_run(test) {
                continue;
            }
            let mut doctor = Command::new(programs().join("proctor"));
            doctor.args(["doctor", "--json"]);
            let told = as_user(user.number(), doctor)
                .output()
                .expect("doctor can be started");
            let told: Value = serde_json::from_slice(&told.stdout).expect("one document");
            for rung in ["K4", "K3a", "K3b", "K1"] {
                let place = Place {
                    user,
                    rung,
                    refused: &[],
                };
                let state = &told["rooms"]["rungs"][rung];
                if state["state"] == "enforced" {
                    places.push(place);
                } else {
                    skip(test, &format!("{place}: {}", state["reason"]));
                }
            }
        }
        places
    })
}

/// Does the same at every place, three at a time: for runs that mostly wait.
pub fn at_once(test: &str, each: impl Fn(&Place) + Sync) {
    for some in places(test).chunks(3) {
        std::thread::scope(|scope| {
            let threads: Vec<_> = some
                .iter()
                .map(|place| scope.spawn(|| each(place)))
                .collect();
            for thread in threads {
                if let Err(panic) = thread.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        });
    }
}

fn nobody_can_run(test: &str) -> bool {
    let root = nix::unistd::geteuid().is_root();
    let mut doctor = Command::new(programs().join("proctor"));
    doctor.args(["doctor", "--json"]);
    let able = root
        && as_user(User::Nobody.number(), doctor)
            .output()
            .is_ok_and(|output| !output.stdout.is_empty());
    if !able {
        skip(
            test,
            "a second user needs root, setpriv, and programs that everybody may run",
        );
    }
    able
}

impl User {
    /// The number of the user; `None` for the one the tests run as. Every run of nobody has a number of its own, which
    /// no account has, so that a rogue that kills all of a user's processes hits no other run.
    fn number(self) -> Option<u32> {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        // Process numbers stay below 2^22, and no test makes a hundred runs as nobody.
        let number =
            || 1_500_000_000 + std::process::id() * 100 + RUNS.fetch_add(1, Ordering::Relaxed);
        (self == Self::Nobody).then(number)
    }
}

fn as_user(number: Option<u32>, command: Command) -> Command {
    let Some(id) = number else {
        return command;
    };
    let mut other = Command::new("setpriv");
    other.args([
        format!("--reuid={id}"),
        format!("--regid={id}"),
        "--clear-groups".into(),
        "--".into(),
    ]);
    other.arg(command.get_program()).args(command.get_args());
    other
}

/// Gives a folder with everything in it to a user, and lets everybody enter it.
fn hand_over(folder: &Path, number: Option<u32>) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))
        .expect("the folder is ours");
    let Some(id) = number else {
        return;
    };
    let mut left = vec![folder.to_path_buf()];
    while let Some(path) = left.pop() {
        std::os::unix::fs::lchown(&path, Some(id), Some(id)).expect("root can give it away");
        if path.is_dir() && !path.is_symlink() {
            let entries = std::fs::read_dir(&path).expect("it can be read");
            left.extend(entries.map(|entry| entry.expect("it can be read").path()));
        }
    }
}
