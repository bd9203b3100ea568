//! Processor time against an independent counter, the cores a worker really has, and patience with an idle worker.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use proctor_supervisor::attempt::{self, Control};
use proctor_supervisor::room::Rung;
use serde_json::{Value, json};

use crate::checks::{drive_with, driver_arguments, open_directory, rungs};
use crate::driver::{self, TwoDatasets};
use crate::oracle::User;

/// First argument of a supervisor whose worker is idle for long.
pub(crate) const IDLE_WORD: &str = "--idle";

/// All tests here.
pub(crate) const TESTS: &[(&str, fn())] = &[
    ("processor_time_is_that_of_the_whole_tree_or_says_so", cpu),
    ("the_cores_are_those_the_kernel_gives", cores),
    (IDLE_TEST, idle),
];

const IDLE_TEST: &str = "a_worker_may_be_idle_longer_than_any_thread_waits";

/// A control group that counts processor time, made by this test and by nobody else.
struct Counter {
    group: PathBuf,
    file: &'static str,
    field: &'static str,
    per_second: f64,
}

impl Counter {
    fn new() -> Option<Self> {
        let mark = format!("proctor-test-cpu-{}", std::process::id());
        let made = |parent: &Path| {
            let group = parent.join(&mark);
            (parent.join("cgroup.procs").exists() && fs::create_dir(&group).is_ok())
                .then_some(group)
        };
        let old = ["/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpu,cpuacct"];
        if let Some(group) = old.iter().find_map(|parent| made(Path::new(parent))) {
            return Some(Self {
                group,
                file: "cpuacct.usage",
                field: "",
                per_second: 1e9,
            });
        }
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let group = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
            .iter()
            .find_map(|mount| made(&Path::new(mount).join(own)))?;
        Some(Self {
            group,
            file: "cpu.stat",
            field: "usage_usec ",
            per_second: 1e6,
        })
    }

    fn seconds(&self) -> f64 {
        let text = fs::read_to_string(self.group.join(self.file)).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(self.field));
        line.unwrap().trim().parse::<f64>().unwrap() / self.per_second
    }

    /// Runs one attempt in it. Gives back what was told, and the seconds everything but the supervisor used.
    fn drive(&self, rung: Rung, budget: u64, worker: &str) -> (Value, f64) {
        let directory = open_directory();
        let arguments = driver_arguments(rung, budget, 0, directory.path(), &[worker]);
        let join = format!("echo $$ > {}/cgroup.procs", self.group.display());
        let before = self.seconds();
        let output = Command::new("/bin/sh")
            .args(["-c", &format!("{join} && exec \"$0\" \"$@\"")])
            .arg(std::env::current_exe().unwrap())
            .args(arguments)
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        let own = told["own_cpu_seconds"].as_f64().unwrap();
        (told, self.seconds() - before - own)
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.group);
    }
}

/// What a shell and a stage use before the worker begins, in seconds.
const STARTING: f64 = 0.03;

fn cpu() {
    let Some(group) = Counter::new() else {
        println!("skipped: no control group that counts processor time can be made here");
        return;
    };
    for rung in rungs(User::Own) {
        if rung.has_cgroup() {
            let (told, counted) = group.drive(rung, 2_500, "four-busy");
            let said = told["cpu_seconds"].as_f64().unwrap();
            assert_eq!(told["outcome"], "timeout", "{told}");
            assert_eq!(told["cpu_exact"], true, "{told}");
            let off = (said - counted).abs();
            assert!(
                off <= 0.02 * counted + STARTING,
                "{rung}: {said} s, counted {counted} s"
            );
            continue;
        }
        // Nobody waited for those who were killed.
        let (told, _) = group.drive(rung, 300, "four-busy");
        assert_eq!(told["cpu_seconds"], Value::Null, "{told}");
        let (told, counted) = group.drive(rung, 60_000, "burns-with-a-child");
        assert_eq!(told["outcome"], "completed", "{told}");
        assert_eq!(told["cpu_exact"], false, "{told}");
        let said = told["cpu_seconds"].as_f64().unwrap();
        assert!(
            (0.3..=counted + STARTING).contains(&said),
            "{rung}: {said} s, counted {counted} s"
        );
    }
}

fn cores() {
    for user in User::all() {
        for rung in rungs(user) {
            let usable = |core: usize| -> Vec<usize> {
                let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap();
                (core..nix::sched::CpuSet::count())
                    .filter(|core| set.is_set(*core).unwrap())
                    .collect()
            };
            let all = usable(0);
            let (lines, ..) = drive_with(user, rung, 20_000, 0, &["good"], &Value::Null);
            assert_eq!(lines[0]["cores"], json!(all), "{}", lines[0]);
            let last = [*all.last().unwrap()];
            let options = json!({ "cores": last });
            let (lines, ..) = drive_with(user, rung, 20_000, 0, &["good"], &options);
            assert_eq!(lines[0]["cores"], json!(last), "{}", lines[0]);
        }
    }
}

/// Supervisors whose workers are idle while the other tests run.
static IDLE: Mutex<Vec<(Rung, Child, tempfile::TempDir)>> = Mutex::new(Vec::new());

/// Starts them, if their test is one of those that will run.
pub(crate) fn begin_idle(tests: &[(&str, fn())]) {
    if !tests.iter().any(|(name, _)| *name == IDLE_TEST) {
        return;
    }
    for rung in rungs(User::Own) {
        let directory = open_directory();
        let child = Command::new(std::env::current_exe().unwrap())
            .args([IDLE_WORD, rung.name()])
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        IDLE.lock().unwrap().push((rung, child, directory));
    }
}

/// `--idle RUNG DIRECTORY`: one attempt whose worker is idle for 16 s, from a thread of its own; meanwhile others begin and
/// end, each with the thread it was asked from.
pub(crate) fn idle_supervisor(arguments: &[String]) {
    let rung: Rung = arguments[0].parse().unwrap();
    let directory = PathBuf::from(&arguments[1]);
    let run = |number: usize, worker: &'static str| {
        let directory = directory.join(number.to_string());
        fs::create_dir_all(&directory).unwrap();
        std::thread::spawn(move || {
            let spec = driver::spec(Some(rung), worker, &directory);
            let (mut exam, control) = (TwoDatasets::default(), Control::new().unwrap());
            let budget = Duration::from_mins(1);
            let ending = attempt::run(&spec, budget, &mut exam, &control);
            (ending.outcome.to_string(), ending.wall_seconds)
        })
    };
    // The first attempt's thread has ended when the idle one starts, and its slot is used again.
    let (outcome, _) = run(0, "good").join().unwrap();
    assert_eq!(outcome, "completed");
    let idle = run(1, "idle");
    for number in 2..6 {
        let (outcome, _) = run(number, "good").join().unwrap();
        assert_eq!(outcome, "completed");
    }
    let (outcome, seconds) = idle.join().unwrap();
    println!("{}", json!({ "outcome": outcome, "wall_seconds": seconds }));
}

fn idle() {
    let started = std::mem::take(&mut *IDLE.lock().unwrap());
    assert!(!started.is_empty());
    let end = Instant::now() + Duration::from_secs(90);
    for (rung, mut child, _directory) in started {
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > end {
                let _ = child.kill();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let output = child.wait_with_output().unwrap();
        let told: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{rung}: {error}: {}", output.status));
        assert_eq!(told["outcome"], "completed", "{rung}: {told}");
        let seconds = told["wall_seconds"].as_f64().unwrap();
        assert!((16.0..80.0).contains(&seconds), "{rung}: {told}");
    }
}
