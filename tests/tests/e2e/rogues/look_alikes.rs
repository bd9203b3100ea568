//! Four ends that look alike from afar, and must be told apart: exit code 137, our own SIGKILL at the deadline, a
//! SIGKILL of somebody else, and the kernel's for memory.

use std::path::Path;

use serde_json::json;

use super::place::{Place, alive_after, at_once};
use super::{bench, check_scores};
use crate::support::oracle::Oracle;
use crate::support::{proctor, wait_for};

#[test]
fn four_ends_by_137_are_four_verdicts() {
    at_once(
        "rogues::look_alikes::four_ends_by_137_are_four_verdicts",
        four,
    );
}

fn four(place: &Place) {
    // The good worker comes first, and what is killed from outside comes before what waits for its time.
    let bench = bench(4.0, &json!({ "max_memory_bytes": 256 << 20 }));
    let mut methods = vec![bench.rogue::<u32>("good", &[])];
    for (name, rogue, first) in [
        ("killed from outside", "sleeper", &[1][..]),
        ("exit 137", "impostor", &[1]),
        ("out of memory", "hog", &[]),
        ("out of time", "busy", &[1]),
    ] {
        let mut method = bench.rogue(rogue, first);
        method["name"] = json!(name);
        methods.push(method);
    }
    let oracle = Oracle::new(&bench.path(""));
    let run = std::thread::scope(|scope| {
        let run = oracle.watch(&place.command(&bench, &methods, &[]));
        let run = scope.spawn(|| proctor::finish(run));
        // Its first dataset is on disk, so that it is known what counts.
        let stored = || stored_datasets(&bench.run_dir()) >= 4;
        wait_for("the first dataset of the second method", || {
            run.is_finished() || stored()
        });
        let sleeper = oracle.survivors().into_iter().find(|line| {
            line.split_whitespace()
                .nth(1)
                .is_some_and(|program| program.ends_with("rogue-sleeper"))
        });
        let sleeper = sleeper.expect("it is asleep");
        let pid = sleeper
            .split_whitespace()
            .next()
            .and_then(|pid| pid.parse().ok())
            .expect("a process id");
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(pid),
            nix::sys::signal::Signal::SIGKILL,
        )
        .expect("it is alive");
        run.join().expect("the run ends")
    });
    run.exits(1);
    assert_eq!(alive_after(&oracle), Vec::<String>::new(), "{place}");
    let bundle = bench.bundle();
    // Where nothing counts memory (no control group without root) it cannot be told why the worker ended itself.
    let memory = if place.as_root() {
        "out_of_memory"
    } else {
        "signal(6)"
    };
    for (name, outcome, scored) in [
        ("good", "completed", 3),
        ("killed from outside", "signal(9)", 1),
        ("exit 137", "exit(137)", 1),
        ("out of memory", memory, 0),
        ("out of time", "timeout", 1),
    ] {
        assert_eq!(
            bundle.outcome(name),
            outcome,
            "{place}: {name}: {}",
            bundle.execution(name)["facts"]
        );
        check_scores(place, &bundle, name, scored);
    }
    // The raw facts beside the verdicts.
    let facts = |name: &str| {
        let execution = bundle.execution(name);
        json!([execution["exit_code"], execution["signal"]])
    };
    assert_eq!(facts("exit 137"), json!([137, null]), "{place}");
    assert_eq!(facts("killed from outside"), json!([null, 9]), "{place}");
}

/// How many score files a run has so far.
fn stored_datasets(run: &Path) -> usize {
    let mut count = 0;
    let mut left = vec![run.join("methods")];
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            count += usize::from(path.extension().is_some_and(|extension| extension == "f64"));
            left.push(path);
        }
    }
    count
}
