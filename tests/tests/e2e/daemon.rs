//! The daemon does what `run` does, one run after the other, and can be asked about it.

use std::os::unix::net::{UnixDatagram, UnixListener};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::args;
use crate::resume_kills::results;
use crate::support::bench::Bench;
use crate::support::daemon::Daemon;
use crate::support::oracle::Oracle;
use crate::support::proctor::{finish, proctor};
use crate::support::wait_for;

const NONE: &[u32] = &[];

fn quick(bench: &Bench) -> Value {
    bench.rogue("good", NONE)
}

/// The numbers of runs in the order in which they were started.
fn order(daemon: &Daemon<'_>) -> Vec<u64> {
    let log = daemon.log();
    let lines = log
        .lines()
        .filter(|line| line.contains(": starts on cores"));
    lines
        .filter_map(|line| line.strip_prefix("run ")?.split(':').next()?.parse().ok())
        .collect()
}

#[test]
fn a_run_is_queued_followed_and_fetched_with_the_results_of_run() {
    let bench = Bench::fixtures(3.0);
    let methods = [
        json!("Levenshtein"),
        bench.rogue("sleeper", &[1]),
        json!("GST"),
    ];
    bench.run(&methods).exits(1);
    let told = bench.path("told");
    let on_finish = format!(
        "sh -c 'echo \"$1\" > {0}.new; echo \"$2\" >> {0}.new; mv {0}.new {0}' -",
        told.display()
    );
    let mut daemon = Daemon::start(&bench, &["--on-finish", &on_finish]);
    let id = daemon.submit(&methods, &["--basename", "ours"]);
    assert_eq!(id, 1);
    // Its end is what watch ends with, and what it says on the way is for people.
    let watched = daemon.ask(&["watch", "1"]).exits(1);
    let watched = watched.says("sleeper: used up its budget of 3.000 s and was killed");
    assert!(
        watched
            .stdout
            .contains("2 of 3 methods completed, 1 failed")
    );
    let watched = daemon.ask(&["watch", "1", "--json"]).exits(1);
    let summary: Value = serde_json::from_str(&watched.stdout).expect("JSON");
    assert_eq!(summary["exit_code"], 1);

    wait_for("the command that is told", || told.exists());
    let words = std::fs::read_to_string(&told).expect("it was told");
    let bundle = daemon.state().join("runs/00000001/merged/0001");
    let line = "Matheel-Plagiarism-v1: 2 of 3 methods completed, 1 failed, 0 without a result";
    assert_eq!(words, format!("{line}\n{}\n", bundle.display()));

    let run = daemon.show(1);
    assert_eq!(run["state"], "ended");
    let outcomes: Vec<&Value> = run["methods"]
        .as_array()
        .expect("methods")
        .iter()
        .map(|method| &method["outcome"]["kind"])
        .collect();
    assert_eq!(outcomes, ["completed", "timeout", "completed"]);
    daemon
        .ask(&["show", "1"])
        .exits(0)
        .says("1 of 3 datasets finished");
    daemon
        .ask(&["ls"])
        .exits(0)
        .says("2 of 3 methods completed");

    let fetched = bench.path("fetched");
    let target = fetched.to_str().expect("text");
    daemon.ask(&["fetch", "1", "-o", target]).exits(0);
    proctor(args!["validate", &fetched]).exits(0);
    assert_eq!(results(&fetched), results(&bench.run_dir().join("bundle")));
    let again = daemon.ask(&["fetch", "1", "-o", target]).exits(2);
    again.says("it is not empty");
    // Nothing half-made is left beside it.
    let hidden = std::fs::read_dir(bench.path(""))
        .expect("the folder")
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with('.'))
        .count();
    assert_eq!(hidden, 0);

    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.wait(), Some(0));
    assert!(!daemon.socket().exists());
    daemon
        .ask(&["ls"])
        .exits(3)
        .says("no daemon answers at")
        .says("proctor daemon");
}

#[test]
fn stderr_of_a_method_is_shown_and_followed_and_cannot_touch_the_terminal() {
    let bench = Bench::fixtures(60.0);
    let mut noisy = bench.rogue("sleeper", NONE);
    noisy["command"] = json!([
        "/bin/sh",
        "-c",
        "printf 'one\\n\\033[2Jtwo\\n' >&2; sleep 1; printf 'three\\n' >&2; exit 3"
    ]);
    let daemon = Daemon::start(&bench, &[]);
    let id = daemon.submit(&[noisy], &[]);
    daemon.wait_method(id, "sleeper", "running");
    let log = daemon.ask(&["logs", "1", "sleeper", "-f"]).exits(0);
    assert_eq!(log.stdout, "one\n\\u{1b}[2Jtwo\nthree\n");
    daemon.ask(&["watch", "1"]).exits(1);
    let log = daemon.ask(&["logs", "1", "sleeper", "--attempt", "0001.local.r0"]);
    assert_eq!(log.exits(0).stdout, "one\n\\u{1b}[2Jtwo\nthree\n");
    daemon
        .ask(&["logs", "1", "nobody"])
        .exits(2)
        .says("there is no method nobody");
    let none = daemon.ask(&["logs", "1", "sleeper", "--attempt", "../x"]);
    none.exits(2).says("there is no attempt ../x");
}

#[test]
fn priorities_come_first_and_nothing_else_changes_the_order() {
    let bench = Bench::fixtures(60.0);
    let daemon = Daemon::start(&bench, &[]);
    let blocker = daemon.submit(&[bench.rogue("sleeper", NONE)], &[]);
    daemon.wait_state(blocker, "running");
    let method = [quick(&bench)];
    for more in [
        &[][..],
        &["--priority", "5"],
        &["--priority", "-1"],
        &["--exclusive"],
        &["--priority", "5", "--exclusive"],
    ] {
        daemon.submit(&method, more);
    }
    daemon.submit(&method, &[]);
    let waits = daemon.ask(&["logs", "6", "good"]).exits(2);
    waits.says("good of run 6 has not started yet; `proctor show RUN`");
    let cancelled = daemon.ask(&["cancel", "7"]).exits(0);
    cancelled.says("was cancelled before it started");
    let queue = daemon.get("/v1/queue").is(200).json();
    let next: Vec<u64> = queue["next"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|run| run["id"].as_u64().expect("a number"))
        .collect();
    assert_eq!(next, [3, 6, 2, 5, 4]);
    assert!(
        queue["waits_for"]
            .as_str()
            .expect("why")
            .starts_with("run 3 ")
    );
    daemon.ask(&["cancel", "1"]).exits(0);
    daemon.ask(&["watch", "1"]).exits(130).says("was cancelled");
    daemon.ask(&["watch", "4"]).exits(0);
    assert_eq!(order(&daemon), [1, 3, 6, 2, 5, 4]);
    daemon
        .ask(&["cancel", "1"])
        .exits(2)
        .says("run 1 has ended");
    let ended = daemon.ask(&["ls", "--state", "ended", "--limit", "3", "--json"]);
    let page: Value = serde_json::from_str(&ended.exits(0).stdout).expect("JSON");
    assert_eq!(page["next_before"], 5);
}

#[test]
fn one_method_is_cancelled_and_the_others_go_on() {
    let bench = Bench::fixtures(60.0);
    let daemon = Daemon::start(&bench, &[]);
    let methods = [
        bench.rogue("sleeper", NONE),
        json!("GST"),
        json!("Levenshtein"),
    ];
    let id = daemon.submit(&methods, &[]);
    daemon.wait_method(id, "sleeper", "running");
    daemon.ask(&["cancel", "1", "GST", "sleeper"]).exits(0);
    let ended = daemon.ask(&["watch", "1"]).exits(130);
    let ended = ended.says("1 of 3 methods completed, 0 failed, 2 without a result");
    assert!(!ended.stderr.contains("waits for its turn"), "{ended:?}");
    let run = daemon.show(1);
    let counts = json!({"total": 3, "running": 0, "ended": 3, "failed": 0, "without_result": 2});
    assert_eq!(run["counts"], counts);
    let kinds: Vec<&Value> = run["methods"]
        .as_array()
        .expect("methods")
        .iter()
        .map(|method| &method["outcome"]["kind"])
        .collect();
    assert_eq!(kinds, ["cancelled", "cancelled", "completed"]);
}

#[test]
fn runs_side_by_side_have_cores_of_their_own() {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if cores < 2 {
        crate::support::skip("daemon: side by side", "this machine has one core");
        return;
    }
    let bench = Bench::fixtures(60.0);
    let daemon = Daemon::start(&bench, &[]);
    let method = [bench.rogue("sleeper", NONE)];
    for _ in 0..2 {
        daemon.submit(&method, &["--cores", "1"]);
    }
    let alone = daemon.submit(&method, &["--cores", "1", "--exclusive"]);
    for id in [1, 2] {
        daemon.wait_method(id, "sleeper", "running");
    }
    let of = |id: u64| daemon.show(id)["methods"][0]["cores"].clone();
    assert_ne!(of(1), of(2));
    assert_eq!(of(1).as_array().map(Vec::len), Some(1));
    let waits = daemon.show(alone);
    let sentence = waits["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("exclusive"), "{sentence}");
    daemon.ask(&["cancel", "1"]).exits(0);
    daemon.wait_state(1, "ended");
    assert_eq!(daemon.show(alone)["state"], "queued");
    daemon.ask(&["cancel", "2"]).exits(0);
    daemon.wait_state(alone, "running");
}

#[test]
fn a_daemon_that_is_asked_to_stop_lets_methods_finish_and_the_next_goes_on() {
    let bench = Bench::fixtures(60.0);
    let oracle = Oracle::new(bench.path("").as_path());
    let mut daemon = Daemon::start(&bench, &["--stop-grace", "50"]);
    // Three datasets of a second each.
    let mut slow = bench.rogue("plodder", &[1000]);
    slow["name"] = json!("slow");
    let id = daemon.submit(&[slow, quick(&bench)], &[]);
    daemon.submit(&[quick(&bench)], &[]);
    daemon.wait_method(id, "slow", "running");
    daemon.signal(Signal::SIGTERM);
    wait_for("the daemon to be stopping", || {
        daemon.get("/healthz").json()["status"] == "stopping"
    });
    let late = daemon.post("/v1/runs", &daemon.submission().to_string());
    late.is(503);
    assert_eq!(daemon.wait(), Some(0));
    assert_eq!(oracle.survivors(), Vec::<String>::new());
    let attempts = |daemon: &Daemon<'_>, at: usize| {
        let run = daemon.show(1);
        let attempts = run["methods"][at]["attempts"].as_array().expect("attempts");
        let kinds = attempts.iter().map(|one| one["outcome"]["kind"].clone());
        kinds.collect::<Vec<_>>()
    };
    daemon.begin();
    daemon.ask(&["watch", "1"]).exits(0);
    daemon.ask(&["watch", "2"]).exits(0);
    assert_eq!(attempts(&daemon, 0), ["completed"]);
    assert_eq!(attempts(&daemon, 1), ["completed"]);
    assert_eq!(order(&daemon), [1, 1, 2]);
}

#[test]
fn without_grace_what_runs_is_interrupted_and_goes_on_with_the_next_daemon() {
    let bench = Bench::fixtures(60.0);
    let oracle = Oracle::new(bench.path("").as_path());
    let mut daemon = Daemon::start(&bench, &["--stop-grace", "0"]);
    let id = daemon.submit(&[bench.rogue("plodder", &[1500])], &[]);
    daemon.wait_method(id, "plodder", "running");
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.wait(), Some(0));
    assert_eq!(oracle.survivors(), Vec::<String>::new());
    daemon.begin();
    daemon.ask(&["watch", "1"]).exits(0);
    let run = daemon.show(1);
    let attempts = run["methods"][0]["attempts"].as_array().expect("attempts");
    let kinds: Vec<&Value> = attempts.iter().map(|one| &one["outcome"]["kind"]).collect();
    assert_eq!(kinds, ["interrupted", "completed"]);
    assert_eq!(attempts[1]["counts"], true);
}

#[test]
fn two_daemons_do_not_share_a_state_and_only_a_dead_socket_is_replaced() {
    let bench = Bench::fixtures(3.0);
    let mut daemon = Daemon::start(&bench, &[]);
    let socket = bench.path("other");
    let mut second = daemon.command();
    second.arg("--socket").arg(&socket);
    let mut words: Vec<_> = second.get_args().map(ToOwned::to_owned).collect();
    // The option may be given once: the first pair goes.
    let at = words
        .iter()
        .position(|word| word == "--socket")
        .expect("it");
    words.drain(at..at + 2);
    let refused = proctor(&words).exits(2);
    refused
        .says("another daemon uses this directory")
        .says(&format!("process {}", daemon.pid()));
    assert!(!socket.exists());
    let taken = proctor(args![
        "daemon",
        "--state",
        bench.path("state2"),
        "--socket",
        daemon.socket(),
        "--root",
        bench.path("")
    ]);
    taken.exits(2).says("another daemon listens there");
    daemon.get("/healthz").is(200);

    daemon.kill();
    assert!(daemon.socket().exists());
    daemon.begin();
    daemon.get("/healthz").is(200);
    daemon.kill();

    // Somebody else's socket, and what is no socket at all, stay.
    std::fs::remove_file(daemon.socket()).expect("it is there");
    let foreign = UnixListener::bind(daemon.socket()).expect("it can be bound");
    finish(daemon.command())
        .exits(2)
        .says("a program answers there");
    drop(foreign);
    std::fs::remove_file(daemon.socket()).expect("it is there");
    std::fs::write(daemon.socket(), "mine").expect("it can be written");
    finish(daemon.command()).exits(2).says("not a socket");
    assert_eq!(std::fs::read(daemon.socket()).expect("it stays"), b"mine");
    std::fs::remove_file(daemon.socket()).expect("it is there");
}

#[test]
fn what_cannot_listen_safely_does_not() {
    let bench = Bench::empty();
    let token = bench.path("token");
    std::fs::write(&token, "0123456789abcdef0123\n").expect("a file");
    let with = |words: &[&str]| {
        let mut all = args![
            "daemon",
            "--state",
            bench.path("state"),
            "--root",
            bench.path("")
        ]
        .to_vec();
        all.extend(words.iter().map(std::ffi::OsString::from));
        proctor(&all).exits(2)
    };
    let file = token.to_str().expect("text");
    with(&["--listen", "0.0.0.0:0", "--token-file", file]).says("mode is 644");
    std::fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .expect("a mode");
    with(&["--listen", "0.0.0.0:0", "--token-file", file]).says("is not a loopback address");
    with(&["--listen", "127.0.0.1:0"]).says("--token-file");
    with(&["--token-file", file]).says("--listen");
    with(&["--root", "/nowhere/at/all"]).says("--root /nowhere/at/all");
    with(&["--socket-mode", "777"]).says("600, 660 or 666");
    let long = "x".repeat(120);
    with(&["--socket", &long]).says("107 bytes");
}

#[test]
fn systemd_is_told_when_it_is_ready_and_when_it_stops() {
    let bench = Bench::fixtures(3.0);
    let place = bench.path("notify");
    let told = UnixDatagram::bind(&place).expect("a socket");
    told.set_read_timeout(Some(Duration::from_secs(30)))
        .expect("a bound");
    let mut daemon = Daemon::start(&bench, &[]);
    daemon.kill();
    let mut command = daemon.command();
    command
        .env("NOTIFY_SOCKET", &place)
        .stderr(std::process::Stdio::null());
    let mut child = command.spawn().expect("the daemon starts");
    let mut buffer = [0; 200];
    let mut next = || {
        let length = told.recv(&mut buffer).expect("it tells");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    assert_eq!(next(), "READY=1");
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    nix::sys::signal::kill(pid, Signal::SIGTERM).expect("it runs");
    assert_eq!(next(), "STOPPING=1");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}
