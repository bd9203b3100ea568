//! Ctrl-C: once stops cleanly and says what is missing, twice stops at once.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::args;
use crate::support::bench::Bench;
use crate::support::oracle::Oracle;
use crate::support::proctor::proctor;
use crate::support::wait_for;

const NONE: &[u32] = &[];

/// The number of attempts with at least one durable checkpoint.
fn checkpoints(run: &Path) -> usize {
    let methods = std::fs::read_dir(run.join("methods"))
        .into_iter()
        .flatten()
        .flatten();
    methods
        .filter(|method| {
            let log = method.path().join("attempts/0001.local.r0/checkpoints.log");
            std::fs::read(log).is_ok_and(|bytes| bytes.contains(&b'\n'))
        })
        .count()
}

fn interrupt(child: &Child) {
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    kill(pid, Signal::SIGINT).expect("the supervisor is alive");
}

#[test]
fn once_leaves_an_honest_bundle_and_nothing_alive() {
    let bench = Bench::fixtures(60.0);
    let oracle = Oracle::new(bench.path("").as_path());
    let methods = [
        json!("Levenshtein"),
        bench.rogue("busy", &["1"]),
        json!("GST"),
    ];
    let mut run = oracle.watch(&bench.run_command(&methods, &[]));
    let mut child = run
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("proctor starts");
    wait_for("the checkpoint of the second method", || {
        checkpoints(&bench.run_dir()) == 2
    });
    interrupt(&child);
    let status = child.wait().expect("proctor ends");
    assert_eq!(status.code(), Some(130));
    assert_eq!(oracle.survivors(), Vec::<String>::new());

    let bundle = bench.bundle();
    assert_eq!(bundle.outcome("Levenshtein"), "completed");
    assert_eq!(bundle.outcome("busy"), "interrupted");
    assert_eq!(bundle.scored("busy").len(), 1);
    assert_eq!(bundle.scored("GST").len(), 0);
    for name in ["busy", "GST"] {
        for row in bundle.rows_of(name) {
            let error = row["error"].as_str().unwrap_or_default();
            assert_eq!(
                row["score"].is_null(),
                error.starts_with("NotCharged: "),
                "{row}"
            );
        }
    }
    assert_eq!(
        crate::support::json(&bundle.dir.join("bundle.json"))["complete"],
        false
    );
    proctor(args![
        "validate",
        &bundle.dir,
        "--protocol",
        bench.protocol()
    ])
    .exits(0);
}

#[test]
fn twice_stops_at_once() {
    let bench = Bench::fixtures(60.0);
    let oracle = Oracle::new(bench.path("").as_path());
    let mut run = oracle.watch(&bench.run_command(&[bench.rogue("busy", NONE)], &[]));
    let mut child = run
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("proctor starts");
    wait_for("the worker", || {
        oracle
            .survivors()
            .iter()
            .any(|line| line.contains("rogue-busy"))
    });
    interrupt(&child);
    let first = Instant::now();
    interrupt(&child);
    let status = child.wait().expect("proctor ends");
    assert_eq!(status.code(), Some(130));
    assert!(
        first.elapsed() < Duration::from_secs(5),
        "took {:?}",
        first.elapsed()
    );
    wait_for("the room to be empty", || oracle.survivors().is_empty());
}
