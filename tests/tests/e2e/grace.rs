//! The grace period: asked to end at the deadline, killed when it is over or when the worker itself has left.

use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::oracle::Oracle;
use crate::support::{proctor, repository, wait_for};

const BUDGET: f64 = 1.0;
const GRACE: u32 = 8;

fn bench(grace: u32) -> Bench {
    Bench::of(&repository().join("fixtures/manifest.json"), |manifest| {
        manifest["execution_policy"]["max_method_seconds"] = json!(BUDGET);
        manifest["execution_policy"]["grace_seconds"] = json!(grace);
    })
}

/// Runs one rogue and gives its published execution.
fn run(bench: &Bench, method: Value) -> Value {
    let oracle = Oracle::new(bench.path("").as_path());
    let name = method["name"].as_str().expect("a name").to_owned();
    let command = oracle.watch(&bench.run_command(&[method], &[]));
    let done = proctor::finish(command).exits(1);
    assert_eq!(oracle.survivors(), Vec::<String>::new(), "{}", done.stderr);
    let bundle = bench.bundle();
    assert_eq!(bundle.outcome(&name), "timeout");
    assert!(bundle.scored(&name).is_empty());
    bundle.execution(&name).clone()
}

fn seconds(value: &Value) -> f64 {
    value.as_f64().expect("seconds")
}

#[test]
fn who_leaves_early_takes_its_children_along() {
    for role in ["running", "stopped"] {
        let bench = bench(GRACE);
        let execution = run(&bench, bench.rogue("heir", &[role]));
        assert_eq!(execution["exit_code"], 0, "{role}: {execution:#}");
        // The verdict fell at the deadline, and nobody waited for the rest of the grace.
        let wall = seconds(&execution["wall_seconds"]);
        assert!(
            (BUDGET..BUDGET + f64::from(GRACE) / 2.0).contains(&wall),
            "{role}: {wall}"
        );
        let delay = seconds(&execution["facts"]["kill_delay_seconds"]);
        assert!(
            (0.0..f64::from(GRACE) / 2.0).contains(&delay),
            "{role}: {delay}"
        );
        assert_eq!(execution["facts"]["room_empty"], true, "{role}");
    }
}

#[test]
fn who_does_not_leave_is_killed_when_the_grace_is_over() {
    let grace = 1;
    let bench = bench(grace);
    // It ignores the request.
    let execution = run(&bench, bench.rogue("heir", &["deaf"]));
    assert!(execution["exit_code"].is_null(), "{execution:#}");
    let wall = seconds(&execution["wall_seconds"]);
    assert!(
        (BUDGET..BUDGET + f64::from(grace)).contains(&wall),
        "{wall}"
    );
    let delay = seconds(&execution["facts"]["kill_delay_seconds"]);
    assert!(
        (f64::from(grace)..f64::from(grace) + 5.0).contains(&delay),
        "{delay}"
    );
}

#[test]
fn an_interrupted_method_has_its_grace_too() {
    let bench = Bench::of(&repository().join("fixtures/manifest.json"), |manifest| {
        manifest["execution_policy"]["max_method_seconds"] = json!(60.0);
        manifest["execution_policy"]["grace_seconds"] = json!(GRACE);
    });
    let oracle = Oracle::new(bench.path("").as_path());
    let method = bench.rogue("heir", &["running"]);
    let mut command = oracle.watch(&bench.run_command(&[method], &[]));
    command.stdout(std::process::Stdio::null());
    command.stderr(std::process::Stdio::null());
    let mut child = command.spawn().expect("proctor starts");
    wait_for("worker and child", || {
        let alive = oracle.survivors();
        alive.iter().any(|line| line.contains("deaf"))
    });
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("it is alive");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(oracle.survivors(), Vec::<String>::new());
    let execution = bench.bundle().execution("heir").clone();
    assert_eq!(execution["outcome"]["kind"], "interrupted");
    assert_eq!(execution["exit_code"], 0, "{execution:#}");
}
