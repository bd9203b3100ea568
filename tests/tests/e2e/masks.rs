//! A machine that refuses something gives the next best thing, and the bundle says so. Each rung and each protection is
//! refused in turn, by the kernel, as a container without privileges would.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::args;
use crate::support::bench::Bench;
use crate::support::proctor::{self, Done};
use crate::support::{programs, skip};

/// What is refused, the rungs that are left, best first, and what the protections then say: name, state, and the
/// beginning of the means or a part of the reason.
struct Case {
    refused: &'static [&'static str],
    rungs: &'static [&'static str],
    says: &'static [(&'static str, &'static str, &'static str)],
}

const CASES: &[Case] = &[
    Case {
        refused: &["clone3"],
        rungs: &["K3a", "K1"],
        says: &[],
    },
    Case {
        refused: &["pid-namespace"],
        rungs: &["K3b", "K1"],
        says: &[
            ("private_proc", "unavailable", "needs a pid namespace"),
            (
                "network",
                "enforced",
                "seccomp: sockets within the machine only",
            ),
            ("file_system", "enforced", "landlock"),
        ],
    },
    Case {
        refused: &["pid-namespace", "clone3"],
        rungs: &["K1"],
        says: &[],
    },
    Case {
        refused: &["network-namespace"],
        rungs: &["K4", "K3a", "K1"],
        says: &[(
            "network",
            "enforced",
            "seccomp: sockets within the machine only",
        )],
    },
    Case {
        refused: &["mount-trees"],
        rungs: &["K4", "K3a", "K1"],
        says: &[("file_system", "enforced", "landlock")],
    },
    Case {
        refused: &["mount-trees", "landlock"],
        rungs: &["K4", "K3a", "K1"],
        says: &[("file_system", "unavailable", "landlock")],
    },
    Case {
        refused: &["filters"],
        rungs: &["K4", "K3a", "K1"],
        says: &[
            ("system_calls", "unavailable", "seccomp: "),
            ("cpu_set", "unavailable", "without seccomp"),
        ],
    },
    Case {
        refused: &["filters", "network-namespace"],
        rungs: &["K4", "K3a", "K1"],
        says: &[("network", "unavailable", "seccomp: ")],
    },
];

/// A run of the built-in method under a kernel that refuses these.
fn caged(bench: &Bench, refused: &[&str], more: &[&str]) -> Done {
    let run = bench.run_command(&[json!("GST")], more);
    let mut cage = Command::new(programs().join("cage"));
    cage.args(refused).arg("--").arg(run.get_program());
    cage.args(run.get_args());
    proctor::finish(cage)
}

/// The rungs this machine has.
fn here() -> Value {
    let told = proctor::proctor(args!["doctor", "--json"]).stdout;
    let document: Value = serde_json::from_str(&told).expect("one document");
    document["rooms"]["rungs"].clone()
}

/// The isolation that the bundle of the run publishes.
fn published(bench: &Bench) -> Value {
    let bundle = bench.bundle();
    proctor::proctor(args!["validate", &bundle.dir]).exits(0);
    let isolation = bundle.execution("GST")["isolation"].clone();
    // The record that stands as evidence says the same.
    let id = bundle.id_of("GST");
    let attempt = format!("evidence/attempts/{id}/0001.local.r0.json");
    let evidence = crate::support::json(&bundle.dir.join(attempt));
    assert_eq!(evidence["terminal"]["isolation"], isolation);
    isolation
}

#[test]
fn what_a_kernel_refuses_is_replaced_or_missing_and_the_bundle_says_so() {
    let here = here();
    let has = |rung: &&str| here[*rung]["state"] == "enforced";
    for case in CASES {
        let bench = Bench::fixtures(20.0);
        let rung = case.rungs.iter().copied().find(has);
        let Some(rung) = rung else {
            let test = "masks::what_a_kernel_refuses_is_replaced_or_missing_and_the_bundle_says_so";
            skip(test, &format!("no rung is left without {:?}", case.refused));
            continue;
        };
        caged(&bench, case.refused, &[]).exits(0);
        let isolation = published(&bench);
        let told = format!("without {:?}: {isolation:#}", case.refused);
        assert_eq!(isolation["containment"], rung, "{told}");
        for (name, state, text) in case.says {
            let guard = &isolation["guards"][*name];
            let said = guard["by"].as_str().or(guard["reason"].as_str());
            assert_eq!(guard["state"], *state, "{name} {told}");
            assert!(
                said.is_some_and(|said| said.contains(text)),
                "{name} {told}"
            );
        }
    }
}

#[test]
fn a_machine_that_can_empty_no_room_runs_nothing() {
    let bench = Bench::fixtures(20.0);
    let refused = ["pid-namespace", "clone3", "adoption"];
    let done = caged(&bench, &refused, &[]);
    done.exits(3).says("no room that can be emptied for sure");
    assert!(!bench.run_dir().exists());
    // Whoever wants that gets it, and it is written down.
    caged(&bench, &refused, &["--containment", "K0"]).exits(0);
    assert_eq!(published(&bench)["containment"], "K0");
}

#[test]
fn an_official_run_is_refused_by_name_where_something_is_refused() {
    let official = ["--official", "--max-memory", "512M"];
    for (refused, said) in [
        (&["pid-namespace", "clone3"][..], "containment: K1 is used"),
        (&["mount-trees", "landlock"], "file system: is not enforced"),
        (
            &["filters", "network-namespace"],
            "network: is not enforced",
        ),
        (&["filters"], "disjoint cores: is not enforced"),
    ] {
        let bench = Bench::fixtures(20.0);
        caged(&bench, refused, &official).exits(2).says(said);
        assert!(!bench.run_dir().exists());
    }
}

/// The word for "somebody took our control groups away", as a container with none of its own does.
const COVER: &str = "mount -t tmpfs -o ro none /sys/fs/cgroup && exec \"$@\"";

#[test]
fn without_control_groups_limits_are_kept_process_by_process() {
    let test = "masks::without_control_groups_limits_are_kept_process_by_process";
    let unshare = Path::new("/usr/bin/unshare");
    if !is_root() || !unshare.exists() {
        skip(test, "covering /sys/fs/cgroup needs root and unshare");
        return;
    }
    let bench = Bench::fixtures(20.0);
    let run = bench.run_command(&[json!("GST")], &["--max-memory", "2G"]);
    let mut covered = Command::new(unshare);
    covered.args(["-m", "--", "/bin/sh", "-c", COVER, "sh"]);
    covered.arg(run.get_program()).args(run.get_args());
    let done = proctor::finish(covered);
    done.exits(0);
    let isolation = published(&bench);
    assert_eq!(isolation["containment"], "K3a", "{isolation:#}");
    let guards = &isolation["guards"];
    assert_eq!(guards["memory"]["by"], "RLIMIT_AS, per process");
    assert_eq!(guards["process_count"]["by"], "RLIMIT_NPROC, per user");
    let exact = bench.bundle().execution("GST")["cpu_exact"].clone();
    assert_eq!(exact, false, "nobody counts the whole tree");
}

#[test]
fn without_the_right_to_change_users_the_worker_has_none_of_its_own() {
    let test = "masks::without_the_right_to_change_users_the_worker_has_none_of_its_own";
    let setpriv = Path::new("/usr/bin/setpriv");
    if !is_root() || !setpriv.exists() {
        skip(test, "giving up capabilities needs root and setpriv");
        return;
    }
    let bench = Bench::fixtures(20.0);
    let run = bench.run_command(&[json!("GST")], &[]);
    let mut lesser = Command::new(setpriv);
    lesser.args([
        "--bounding-set=-setuid,-setgid",
        "--inh-caps=-setuid,-setgid",
    ]);
    lesser.arg(run.get_program()).args(run.get_args());
    proctor::finish(lesser).exits(0);
    let user = published(&bench)["guards"]["user"].clone();
    assert_eq!(user["state"], "unavailable");
    assert_eq!(
        user["reason"],
        "only root can give the worker a user of its own"
    );
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.starts_with("Uid:\t0\t0\t"))
}
