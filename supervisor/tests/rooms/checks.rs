//! Verdicts, facts and protections.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use proctor_supervisor::attempt::{self, Control, Exam, Progress};
use proctor_supervisor::room::{self, Rung};
use proctor_wire::{BlindDataset, ToWorker};
use serde_json::Value;

use crate::driver::{self, TwoDatasets};
use crate::oracle::{Oracle, User};

/// First argument of a supervisor that runs many attempts.
pub(crate) const MANY_WORD: &str = "--many";

/// All tests here.
pub(crate) const TESTS: &[(&str, fn())] = &[
    ("every_ending_gets_its_verdict_and_leaves_nobody", verdicts),
    ("attacks_on_a_guardian_are_never_completed", attacks),
    (
        "a_process_group_alone_says_so_and_may_leave_survivors",
        weakest,
    ),
    ("grace_ends_in_a_kill_of_everything", grace),
    ("stopping_gives_an_outcome_of_ours", stopping),
    ("who_ended_before_the_stop_ended_by_itself", late_stop),
    ("floods_do_not_grow_the_supervisor", floods),
    ("a_room_shows_the_worker_nothing_else", views),
    ("many_attempts_leave_no_trace", many),
    ("a_command_that_cannot_start_says_why", cannot_start),
];

/// The rungs that work here for a user, K0 left out.
pub(crate) fn rungs(user: User) -> Vec<Rung> {
    [Rung::K4, Rung::K3a, Rung::K3b, Rung::K1]
        .into_iter()
        .filter(|rung| {
            let lines = drive(user, *rung, 5_000, 0, &["silent-exit"]).0;
            let works = lines[0]["outcome"] == "incomplete(0/2)";
            if !works {
                println!("skipped: {rung} as {user:?}: {}", lines[0]["outcome"]);
            }
            works
        })
        .collect()
}

/// A directory that the other user can use too.
pub(crate) fn open_directory() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    directory
}

pub(crate) fn driver_arguments(
    rung: Rung,
    budget: u64,
    grace: u64,
    directory: &Path,
    workers: &[&str],
) -> Vec<String> {
    let mut arguments = vec![
        driver::WORD.to_owned(),
        rung.to_string(),
        budget.to_string(),
        grace.to_string(),
        directory.display().to_string(),
    ];
    arguments.extend(workers.iter().map(ToString::to_string));
    arguments
}

/// Runs workers at the same time under one supervisor. Gives back a line for each, in the order they ended, the
/// processes alive at the end, and the content of the logs.
pub(crate) fn drive(
    user: User,
    rung: Rung,
    budget: u64,
    grace: u64,
    workers: &[&str],
) -> (Vec<Value>, usize, Vec<String>) {
    drive_with(user, rung, budget, grace, workers, &Value::Null)
}

/// As [`drive`], with options of the rooms.
pub(crate) fn drive_with(
    user: User,
    rung: Rung,
    budget: u64,
    grace: u64,
    workers: &[&str],
    options: &Value,
) -> (Vec<Value>, usize, Vec<String>) {
    let oracle = Oracle::new();
    let directory = open_directory();
    let arguments = driver_arguments(rung, budget, grace, directory.path(), workers);
    let output = oracle
        .command(user, &arguments)
        .env(driver::OPTIONS, options.to_string())
        .output()
        .unwrap();
    let survivors = oracle.alive().len();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        lines.len(),
        workers.len(),
        "{rung} {user:?} {workers:?}: {text}"
    );
    let logs = (0..workers.len())
        .map(|number| {
            let own = directory.path().join(number.to_string());
            assert!(
                !own.join("scratch").exists(),
                "{rung} {workers:?}: scratch is left"
            );
            fs::read_to_string(own.join("stderr")).unwrap_or_default()
        })
        .collect();
    (lines, survivors, logs)
}

/// Worker, outcome, leaked processes, stored datasets.
const VERDICTS: &[(&str, &str, u64, usize)] = &[
    ("good", "completed", 0, 2),
    ("make-files", "completed", 0, 2),
    ("deep-files", "completed", 0, 2),
    ("daemon", "completed", 1, 2),
    ("holder", "completed", 1, 2),
    ("brief-helper", "completed", 0, 2),
    ("late-row", "completed", 1, 2),
    ("odd-name", "completed", 1, 2),
    ("half", "incomplete(1/2)", 0, 1),
    ("gives-up", "incomplete(0/2)", 0, 0),
    ("gives-up-exit-4", "exit(4)", 0, 0),
    ("exit-3", "exit(3)", 0, 1),
    ("exit-137", "exit(137)", 0, 0),
    ("segv", "signal(11)", 0, 0),
    ("kill-self", "signal(9)", 0, 0),
    ("silent-exit", "incomplete(0/2)", 0, 0),
    ("hang", "timeout", 0, 0),
    ("stop-self", "timeout", 0, 0),
    ("daemon-and-hang", "timeout", 0, 0),
    ("busy", "timeout", 0, 0),
    ("closes-all", "timeout", 0, 0),
    ("tree", "timeout", 0, 0),
    ("phoenix", "timeout", 0, 0),
];

fn verdicts() {
    for user in User::all() {
        for rung in rungs(user) {
            for (worker, outcome, leaked, stored) in VERDICTS {
                let patient = *outcome != "timeout";
                let budget = if patient { 20_000 } else { 700 };
                let begun = Instant::now();
                let (lines, survivors, _) = drive(user, rung, budget, 0, &[worker]);
                let took = begun.elapsed();
                let line = &lines[0];
                let case = format!("{rung} as {user:?}: {worker}: {line}");
                assert_eq!(line["outcome"], *outcome, "{case}");
                // Who was killed in the middle was not counted.
                let counted = &line["facts"]["leaked_processes"];
                let expected = (patient && *worker != "gives-up").then_some(*leaked);
                assert_eq!(counted.as_u64(), expected, "{case}");
                let gave_up = worker.starts_with("gives-up").then_some("no model");
                assert_eq!(line["facts"]["worker_error"].as_str(), gave_up, "{case}");
                assert_eq!(line["stored"].as_array().unwrap().len(), *stored, "{case}");
                assert_eq!(line["facts"]["room_empty"], true, "{case}");
                assert_eq!(line["isolation"]["containment"], rung.name(), "{case}");
                assert_eq!(survivors, 0, "{case}");
                let leaked_pipe = matches!(*worker, "holder" | "late-row");
                assert_eq!(line["facts"]["leaked_pipe"], leaked_pipe, "{case}");
                let late = u64::from(*worker == "late-row") * 2;
                assert_eq!(line["facts"]["late_rows"], late, "{case}");
                if *stored == 2 {
                    let scores = serde_json::json!([[0, [0.0, 1.0]], [1, [0.0, 1.0, 2.0]]]);
                    assert_eq!(line["stored"], scores, "{case}");
                }
                // Wide: the machine may be busy. The kill itself is measured elsewhere.
                assert!(
                    took < Duration::from_millis(budget) + Duration::from_secs(5),
                    "{case}"
                );
                if !patient {
                    let delay = line["facts"]["kill_delay_seconds"].as_f64().unwrap();
                    assert!((0.0..1.0).contains(&delay), "{case}");
                }
                assert_eq!(line["cpu_exact"], rung.has_cgroup(), "{case}");
            }
        }
    }
}

/// Without a pid namespace the worker can reach its guardian and even the supervisor's group.
fn attacks() {
    for user in User::all() {
        for rung in rungs(user) {
            for worker in [
                "kill-parent",
                "stop-parent",
                "keeps-parent-stopped",
                "kill-group",
                "kill-control-group",
            ] {
                if worker == "kill-control-group" && !rung.has_cgroup() {
                    continue;
                }
                let (lines, survivors, _) = drive(user, rung, 700, 0, &[worker]);
                let outcome = lines[0]["outcome"].as_str().unwrap();
                let case = format!("{rung} as {user:?}: {worker}: {}", lines[0]);
                if rung.has_pid_namespace() {
                    let expected: &[&str] = match worker {
                        "kill-group" => &["signal(9)"],
                        // It may not be able to see the group.
                        "kill-control-group" => &["signal(9)", "timeout"],
                        _ => &["timeout"],
                    };
                    assert!(expected.contains(&outcome), "{case}");
                } else {
                    assert!(!outcome.starts_with("completed"), "{case}");
                }
                assert_eq!(survivors, 0, "{case}");
            }
        }
    }
}

fn weakest() {
    let (lines, survivors, _) = drive(User::Own, Rung::K0, 20_000, 0, &["daemon"]);
    assert_eq!(lines[0]["outcome"], "completed", "{}", lines[0]);
    assert_eq!(lines[0]["isolation"]["containment"], "K0");
    assert_eq!(survivors, 1, "the daemon has a session of its own");
    let (lines, survivors, _) = drive(User::Own, Rung::K0, 500, 0, &["hang"]);
    assert_eq!(lines[0]["outcome"], "timeout", "{}", lines[0]);
    assert_eq!(survivors, 0);
}

fn grace() {
    for rung in rungs(User::Own) {
        let (lines, survivors, _) = drive(User::Own, rung, 300, 400, &["leaves-on-term"]);
        assert_eq!(lines[0]["outcome"], "timeout", "{}", lines[0]);
        assert_eq!(survivors, 0, "{rung}");
        assert_eq!(lines[0]["status"]["signal"], 15, "{}", lines[0]);
        let (lines, survivors, _) = drive(User::Own, rung, 300, 400, &["busy"]);
        let delay = lines[0]["facts"]["kill_delay_seconds"].as_f64().unwrap();
        assert_eq!(lines[0]["outcome"], "timeout", "{}", lines[0]);
        assert!((0.4..2.0).contains(&delay), "{}", lines[0]);
        assert_eq!(survivors, 0, "{rung}");
        // A guardian that was killed is not listened to for the rest of the grace.
        let workers = ["kill-parent-on-term"];
        let (lines, survivors, _) = drive(User::Own, rung, 300, 1500, &workers);
        assert_eq!(lines[0]["outcome"], "timeout", "{}", lines[0]);
        assert!(
            lines[0]["own_cpu_seconds"].as_f64().unwrap() < 0.7,
            "{}",
            lines[0]
        );
        assert_eq!(survivors, 0, "{rung}");
    }
}

fn stopping() {
    let directory = open_directory();
    let begun = Instant::now();
    for (number, stop) in [Control::interrupt, Control::cancel, Control::kill]
        .into_iter()
        .enumerate()
    {
        let spec = driver::spec(None, "hang", &directory.path().join(number.to_string()));
        fs::create_dir_all(spec.stderr_log.parent().unwrap()).unwrap();
        let control = Control::new().unwrap();
        let ending = std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                let budget = Duration::from_mins(1);
                attempt::run(&spec, budget, &mut TwoDatasets::default(), &control)
            });
            while !spec.scratch.exists() && !run.is_finished() {
                std::thread::yield_now();
            }
            stop(&control);
            run.join().unwrap()
        });
        let expected = if number == 1 {
            "cancelled"
        } else {
            "interrupted"
        };
        assert_eq!(ending.outcome.to_string(), expected);
        assert!(ending.facts.room_empty);
    }
    assert!(begun.elapsed() < Duration::from_secs(30));
}

/// Asks to stop when the worker has ended already and nobody has heard it yet.
struct LateStop<'a> {
    exam: TwoDatasets,
    control: &'a Control,
}

impl Exam for LateStop<'_> {
    fn count(&self) -> u32 {
        self.exam.count()
    }

    fn hello(&self) -> ToWorker {
        self.exam.hello()
    }

    fn open(&mut self, dataset: u32) -> io::Result<BlindDataset> {
        self.exam.open(dataset)
    }

    fn checkpoint(&mut self, dataset: u32, scores: Vec<f64>, elapsed: f64) -> io::Result<()> {
        self.exam.checkpoint(dataset, scores, elapsed)
    }

    fn failed(&mut self, dataset: u32, error: &str, elapsed: f64) -> io::Result<()> {
        self.exam.failed(dataset, error, elapsed)
    }

    /// Called between listening and waiting.
    fn progress(&mut self, progress: Progress<'_>) {
        if matches!(progress, Progress::Items { .. }) && self.control.stop().is_none() {
            let end = Instant::now() + Duration::from_secs(10);
            while !stage_rests_alone() && Instant::now() < end {
                std::thread::yield_now();
            }
            self.control.interrupt();
        }
    }
}

/// True when this process's only child has no child and waits for something, or has ended.
fn stage_rests_alone() -> bool {
    let children = |pid: &str| {
        fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok())
            .collect::<String>()
    };
    let stage = children("self").trim().to_owned();
    let line = fs::read_to_string(format!("/proc/{stage}/stat")).unwrap_or_default();
    children(&stage).trim().is_empty() && [") S ", ") Z "].iter().any(|s| line.contains(s))
}

fn late_stop() {
    let directory = open_directory();
    let spec = driver::spec(None, "exit-3-when-greeted", directory.path());
    let control = Control::new().unwrap();
    let mut exam = LateStop {
        exam: TwoDatasets::default(),
        control: &control,
    };
    let ending = attempt::run(&spec, Duration::from_mins(1), &mut exam, &control);
    assert_eq!(ending.outcome.to_string(), "exit(3)");
}

/// Eight floods of a gigabyte at once, beside a worker that behaves.
fn floods() {
    let (quiet, _, _) = drive(User::Own, Rung::K1, 60_000, 0, &["good"; 9]);
    let peak = |lines: &[Value]| {
        let all = lines.iter().map(|line| line["peak_kib"].as_u64().unwrap());
        all.max().unwrap()
    };
    for (worker, outcome) in [
        (
            "flood-out",
            "protocol_error(stdout line 1 is longer than 65536 bytes",
        ),
        (
            "flood-progress",
            "resource_limit(output: more than 16777472 bytes on standard output)",
        ),
        ("flood-err", "incomplete(0/2)"),
    ] {
        let mut workers = vec![worker; 8];
        workers.push("good");
        let (lines, survivors, logs) = drive(User::Own, Rung::K1, 60_000, 0, &workers);
        for line in &lines {
            let text = line["outcome"].as_str().unwrap();
            assert!(text.starts_with(outcome) || text == "completed", "{line}");
        }
        assert_eq!(survivors, 0, "{worker}");
        let grown = peak(&lines).saturating_sub(peak(&quiet));
        // The goal is 8 MiB, eight lines of a megabyte, which the benchmark looks at; some is left to the allocator.
        assert!(grown < 12 * 1024, "{worker}: {grown} KiB");
        for log in &logs[..8] {
            assert!(log.len() <= (256 << 10) + 64, "{worker}: {}", log.len());
        }
        if worker == "flood-err" {
            assert!(logs[0].contains("bytes cut]"), "{}", logs[0].len());
            assert_eq!(
                lines[8]["facts"]["stderr_bytes"],
                1_u64 << 30,
                "{}",
                lines[8]
            );
        }
    }
}

fn views() {
    for user in User::all() {
        for rung in rungs(user) {
            let (lines, _, logs) = drive(user, rung, 20_000, 0, &["look"]);
            let case = format!("{rung} as {user:?}: {}", logs[0]);
            assert_eq!(lines[0]["outcome"], "completed", "{case}");
            let seen: Value = serde_json::from_str(logs[0].trim()).unwrap();
            assert_eq!(seen["fds"], serde_json::json!([0, 1, 2]), "{case}");
            let env = serde_json::json!([crate::oracle::MARK, "SUPERVISOR"]);
            assert_eq!(seen["env"], env, "{case}");
            assert_eq!(seen["capabilities"], "0000000000000000", "{case}");
            assert_eq!(seen["no_new_privileges"], "1", "{case}");
            assert_eq!(seen["umask"], "0077", "{case}");
            assert_eq!(seen["blocked"], "0000000000000000", "{case}");
            // Rust's own start-up ignores SIGPIPE (13).
            assert_eq!(seen["ignored"], "0000000000001000", "{case}");
            assert_eq!(seen["pid"], seen["session"], "{case}");
            assert!(
                seen["directory"].as_str().unwrap().ends_with("scratch"),
                "{case}"
            );
            assert_eq!(seen["core_limit"], serde_json::json!([0, 0]), "{case}");
            assert_eq!(seen["opens_init"], false, "{case}");
            if rung.has_pid_namespace() {
                assert_eq!(seen["sees_supervisor"], false, "{case}");
                assert_eq!(
                    lines[0]["isolation"]["guards"]["private_proc"]["state"],
                    "enforced"
                );
            }
            let root = user == User::Own && nix::unistd::geteuid().is_root();
            let nested = rung.has_pid_namespace() && !root;
            assert_eq!(lines[0]["isolation"]["user_namespace"], nested, "{case}");
        }
    }
}

/// `--many RUNG COUNT DIRECTORY`: prints what attempts leave behind in their supervisor.
pub(crate) fn many_attempts(arguments: &[String]) {
    let rung: Rung = arguments[0].parse().unwrap();
    let count: u32 = arguments[1].parse().unwrap();
    let directory = Path::new(&arguments[2]);
    let traces = || {
        let children = fs::read_dir("/proc/self/task")
            .unwrap()
            .filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok())
            .map(|list| list.split_whitespace().count())
            .sum::<usize>();
        let descriptors = fs::read_dir("/proc/self/fd").unwrap().count();
        let threads = fs::read_dir("/proc/self/task").unwrap().count();
        let files = fs::read_dir(directory).unwrap().count();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        // Others mount and unmount meanwhile; these are what a room mounts.
        let of_rooms = |line: &&str| {
            let place = line.split(' ').nth(4).unwrap();
            line.contains(" tmpfs proctor ")
                || Path::new(place).starts_with(directory)
                || ["/proc", "/tmp", "/var/tmp", "/dev/shm", "/run"].contains(&place)
        };
        let mounts = mounts.lines().filter(of_rooms).count();
        (children, descriptors, threads, files, mounts, groups())
    };
    let once = || {
        let spec = driver::spec(Some(rung), "noop", directory);
        let budget = Duration::from_mins(1);
        let ending = attempt::run(
            &spec,
            budget,
            &mut TwoDatasets::default(),
            &Control::new().unwrap(),
        );
        assert_eq!(ending.outcome.to_string(), "incomplete(0/2)");
    };
    // The stage for the next room is started after the last one.
    let settled = || {
        let mut seen = traces();
        loop {
            std::thread::sleep(Duration::from_millis(100));
            let again = traces();
            if again == seen {
                return seen;
            }
            seen = again;
        }
    };
    once();
    let before = settled();
    for _ in 0..count {
        once();
    }
    assert_eq!(settled(), before);
}

fn groups() -> usize {
    let own = format!(".{}.", std::process::id());
    let mut count = 0;
    let mut left = vec![Path::new("/sys/fs/cgroup").to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let name = entry.file_name().to_string_lossy().into_owned();
                count += usize::from(name.starts_with("proctor.") && name.contains(&own));
                left.push(entry.path());
            }
        }
    }
    count
}

fn many() {
    let count = std::env::var("PROCTOR_ATTEMPTS").unwrap_or_else(|_| "200".into());
    for user in User::all() {
        for rung in rungs(user) {
            let oracle = Oracle::new();
            let directory = open_directory();
            let arguments = [
                MANY_WORD.to_owned(),
                rung.to_string(),
                count.clone(),
                directory.path().display().to_string(),
            ];
            let status = oracle.command(user, &arguments).status().unwrap();
            assert!(status.success(), "{rung} as {user:?}");
            assert!(oracle.alive().is_empty(), "{rung} as {user:?}");
        }
    }
}

fn cannot_start() {
    let directory = open_directory();
    let program = |name: &str, content: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let text = program("text", "print('no interpreter')\n");
    let lost = program("lost", "#!/no/such/interpreter\n");
    let script = program("script", "#!/bin/sh\n");
    let long = "x".repeat(200 << 10);
    let ours = "infrastructure(";
    let its = "protocol_error(could not be started: ";
    for (command, kind, expected) in [
        (vec!["/no/such/program"], ours, "No such file"),
        (vec!["no-such-program"], ours, "not found in"),
        (vec!["/etc/passwd"], ours, "ermission denied"),
        (vec![text.as_str()], its, "text: execve: Exec format error"),
        // It may be there and hidden by the room.
        (vec![lost.as_str()], ours, "or not shown to the room"),
        (vec![script.as_str(), &long], its, "Argument list too long"),
    ] {
        let mut spec = driver::spec(None, "noop", directory.path());
        spec.command = command.into_iter().map(Into::into).collect();
        let budget = Duration::from_secs(10);
        let ending = attempt::run(
            &spec,
            budget,
            &mut TwoDatasets::default(),
            &Control::new().unwrap(),
        );
        let outcome = ending.outcome.to_string();
        assert!(outcome.starts_with(kind), "{outcome}");
        assert!(outcome.contains(expected), "{outcome}");
        assert!(ending.facts.room_empty);
    }
    let probe = room::probe();
    assert!(probe.best().is_some(), "{probe:?}");
    assert!(
        probe
            .rungs
            .iter()
            .any(|(rung, guard)| *rung == Rung::K1 && guard.holds())
    );
    // Something to run at all is found by its bare name.
    assert!(Command::new("true").status().is_ok());
}
