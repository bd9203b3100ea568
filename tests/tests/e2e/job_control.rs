//! A supervisor that is stopped and goes on, as by Ctrl-Z and `fg`.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::bench::Bench;
use crate::support::oracle::Oracle;
use crate::support::{skip, wait_for};

/// Seconds a method has.
const BUDGET: f64 = 4.0;
/// What a whole run may take besides, on a machine that does other things too.
const SLACK: f64 = 8.0;
const RUNGS: [&str; 5] = ["K4", "K3a", "K3b", "K1", "K0"];

/// A run of a worker that sleeps for ever, which has begun to sleep.
struct Sleeping {
    bench: Bench,
    oracle: Oracle,
    supervisor: Child,
    worker: i32,
}

impl Sleeping {
    /// `None` where the machine does not give the rung.
    fn begin(test: &str, rung: &str, budget: f64) -> Option<Self> {
        let bench = Bench::fixtures(budget);
        let oracle = Oracle::new(bench.path("").as_path());
        let method = bench.rogue("sleeper", &["1"]);
        let mut run = oracle.watch(&bench.run_command(&[method], &["--containment", rung]));
        let mut supervisor = run
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("proctor starts");
        let mut worker = None;
        let mut ended = None;
        wait_for("the worker", || {
            worker = oracle.survivors().iter().find_map(|line| {
                let (pid, program) = line.split_once(' ')?;
                let sleeper = program.contains("rogue-sleeper") && !program.contains(" run ");
                sleeper.then(|| pid.parse().ok())?
            });
            ended = supervisor.try_wait().expect("a child");
            worker.is_some() || ended.is_some()
        });
        if ended.is_some_and(|status| status.code() == Some(2)) {
            skip(test, &format!("this machine does not give {rung}"));
            return None;
        }
        Some(Self {
            worker: worker.unwrap_or_else(|| panic!("{rung}: {ended:?}")),
            bench,
            oracle,
            supervisor,
        })
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.supervisor.id()).expect("a process id")
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("the supervisor is there");
    }

    fn await_stopped(&self) {
        wait_for("the supervisor to be stopped", || state(self.pid()) == 'T');
    }

    /// Its facts and its seconds, when the run is over.
    fn end(mut self) -> Value {
        self.supervisor.wait().expect("proctor ends");
        let bundle = self.bench.bundle();
        assert_eq!(bundle.outcome("sleeper"), "timeout");
        assert_eq!(self.oracle.survivors(), Vec::<String>::new());
        bundle.execution("sleeper").clone()
    }
}

/// The letter of a process's state.
fn state(pid: i32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    after_name.chars().next().unwrap_or('-')
}

/// Whether a process cannot run: it was stopped, or its control group stands still.
fn stands_still(pid: i32) -> bool {
    let own = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let group = own.lines().find_map(|line| line.strip_prefix("0::/"));
    let frozen = group.is_some_and(|group| {
        ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"]
            .iter()
            .any(|mount| {
                let events = std::fs::read_to_string(format!("{mount}/{group}/cgroup.events"));
                events.is_ok_and(|events| events.contains("frozen 1"))
            })
    });
    frozen || state(pid) == 'T'
}

#[test]
fn a_stopped_supervisor_pauses_its_rooms_and_their_time() {
    let test = "job_control::a_stopped_supervisor_pauses_its_rooms_and_their_time";
    std::thread::scope(|scope| {
        for rung in RUNGS {
            scope.spawn(move || {
                let Some(sleeping) = Sleeping::begin(test, rung, BUDGET) else {
                    return;
                };
                assert!(!stands_still(sleeping.worker), "{rung}");
                sleeping.signal(Signal::SIGTSTP);
                sleeping.await_stopped();
                let stopped = Instant::now();
                assert!(stands_still(sleeping.worker), "{rung}");
                // Longer than the whole budget.
                std::thread::sleep(Duration::from_secs_f64(BUDGET + 0.5));
                assert!(stands_still(sleeping.worker), "{rung}");
                sleeping.signal(Signal::SIGCONT);
                wait_for("the worker to go on", || !stands_still(sleeping.worker));
                let paused = stopped.elapsed().as_secs_f64();
                let execution = sleeping.end();
                let facts = &execution["facts"];
                let seconds = facts["paused_seconds"].as_f64().expect("a number");
                assert!(
                    (BUDGET + 0.4..paused + SLACK).contains(&seconds),
                    "{rung}: {seconds}"
                );
                assert_eq!(
                    facts["pauses"].as_array().map(Vec::len),
                    Some(1),
                    "{rung}: {facts}"
                );
                let pause = &facts["pauses"][0];
                assert_eq!(pause["seconds"].as_f64(), Some(seconds), "{rung}");
                let after = pause["after_seconds"].as_f64().expect("a number");
                assert!((0.0..BUDGET).contains(&after), "{rung}: {after}");
                // The whole budget was given, and the pause is in none of its seconds.
                let wall = execution["wall_seconds"].as_f64().expect("a number");
                assert!((BUDGET..BUDGET + 3.0).contains(&wall), "{rung}: {wall}");
            });
        }
    });
}

#[test]
fn a_supervisor_that_is_killed_while_it_is_stopped_leaves_nobody() {
    let test = "job_control::a_supervisor_that_is_killed_while_it_is_stopped_leaves_nobody";
    // K0 promises nothing.
    for rung in RUNGS.into_iter().filter(|rung| *rung != "K0") {
        let Some(mut sleeping) = Sleeping::begin(test, rung, 60.0) else {
            continue;
        };
        sleeping.signal(Signal::SIGTSTP);
        sleeping.await_stopped();
        assert!(stands_still(sleeping.worker), "{rung}");
        sleeping.signal(Signal::SIGKILL);
        sleeping.supervisor.wait().expect("it ends");
        wait_for("the room to be empty", || {
            sleeping.oracle.survivors().is_empty()
        });
    }
}

#[test]
fn a_supervisor_that_could_not_see_it_coming_says_how_long_it_did_not_look() {
    let test =
        "job_control::a_supervisor_that_could_not_see_it_coming_says_how_long_it_did_not_look";
    let best = RUNGS
        .into_iter()
        .find_map(|rung| Sleeping::begin(test, rung, BUDGET));
    let sleeping = best.expect("K0 is everywhere");
    sleeping.signal(Signal::SIGSTOP);
    sleeping.await_stopped();
    assert!(!stands_still(sleeping.worker));
    std::thread::sleep(Duration::from_secs_f64(BUDGET + 0.5));
    sleeping.signal(Signal::SIGCONT);
    let execution = sleeping.end();
    let facts = &execution["facts"];
    assert_eq!(facts["pauses"], serde_json::json!([]));
    let stalled = facts["supervisor_stalled_seconds"]
        .as_f64()
        .expect("a number");
    // A look is due every quarter of a second, and may have been due when it was stopped.
    assert!((BUDGET..BUDGET + SLACK).contains(&stalled), "{execution}");
    let delay = facts["kill_delay_seconds"].as_f64().expect("a number");
    assert!(delay > 0.1, "the kill came late and that is told: {delay}");
}
