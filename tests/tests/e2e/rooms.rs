//! Rooms, looked at from inside by a worker that writes down what it sees, and from outside when the supervisor dies.

use std::process::Stdio;

use crate::support::bench::Bench;
use crate::support::oracle::Oracle;
use crate::support::proctor;
use crate::support::record::{Record, run_recorders, shown};
use crate::support::{json, skip, wait_for};

const NONE: &[u32] = &[];

/// A field of `/proc/self/status` as the worker saw it.
fn status<'a>(record: &'a Record, field: &'a str) -> &'a str {
    record
        .about("status")
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
        .unwrap_or_else(|| panic!("no {field}"))
        .trim()
}

#[test]
fn a_worker_is_alone_and_has_no_more_rights_than_it_needs() {
    let bench = Bench::fixtures(20.0);
    proctor::finish(run_recorders(&bench, &["one"], &[])).exits(0);
    let record = Record::of(&bench, "one");
    assert_eq!(status(&record, "NoNewPrivs"), "1");
    let names: Vec<&str> = record
        .about("environment")
        .map(|line| line.split('=').next().unwrap_or(line))
        .collect();
    let allowed = ["PATH", "LANG", "LC_ALL", "TZ", "HOME", "TMPDIR"];
    for name in &names {
        assert!(allowed.contains(name), "{name} was passed on");
    }
    let isolation = bench.bundle().execution(&shown("one"))["isolation"].clone();
    if isolation["guards"]["private_proc"]["state"] == "enforced" {
        // In a pid namespace of its own the init of the room is 1 and the worker comes right after it.
        let pid: u32 = status(&record, "Pid").parse().expect("a process id");
        assert!(pid < 10, "pid {pid}");
    }
}

#[test]
fn methods_at_a_time_have_cores_of_their_own() {
    let test = "rooms::methods_at_a_time_have_cores_of_their_own";
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        skip(test, "this machine has one core");
        return;
    }
    let bench = Bench::fixtures(20.0);
    proctor::finish(run_recorders(&bench, &["one", "two"], &["--jobs", "2"])).exits(0);
    let (one, two) = (Record::of(&bench, "one"), Record::of(&bench, "two"));
    let (one, two) = (status(&one, "Cpus_allowed"), status(&two, "Cpus_allowed"));
    let mask = |text: &str| -> Vec<u32> {
        text.split(',')
            .map(|word| u32::from_str_radix(word, 16).expect("a mask"))
            .collect()
    };
    let shared = mask(one).iter().zip(mask(two)).any(|(a, b)| a & b != 0);
    assert!(!shared, "{one} and {two} share a core");
}

#[test]
fn a_bundle_says_how_much_memory_a_worker_used_at_most() {
    let bench = Bench::fixtures(20.0);
    bench.run(&[bench.rogue("good", NONE)]).exits(0);
    let bundle = bench.bundle();
    let execution = bundle.execution("good");
    let record = bench.run_dir().join("methods").join(bundle.id_of("good"));
    let terminal = json(&record.join("attempts/0001.local.r0/terminal.json"));
    let peak = &execution["peak_memory_bytes"];
    assert_eq!(*peak, terminal["peak_memory_bytes"]);
    let by_cgroup = execution["facts"]["memory_kills"].is_u64();
    if by_cgroup {
        // More than a page, and far less than any machine has.
        let bytes = peak.as_u64().expect("what a control group counted");
        assert!((4096..1 << 30).contains(&bytes), "{bytes}");
    } else {
        assert!(peak.is_null(), "nobody counted {peak}");
    }
    assert_eq!(execution["facts"]["refused_processes"].is_u64(), by_cgroup);
}

#[test]
fn nothing_outlives_a_supervisor_that_is_killed() {
    let bench = Bench::fixtures(60.0);
    let oracle = Oracle::new(bench.path("").as_path());
    let methods = [bench.rogue("busy", NONE), bench.rogue("daemon", NONE)];
    let temporary = bench.path("temporary");
    std::fs::create_dir(&temporary).expect("a folder can be made");
    let mut run = oracle.watch(&bench.run_command(&methods, &[]));
    let mut child = run
        .env("TMPDIR", &temporary)
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
    child.kill().expect("the supervisor is alive");
    child.wait().expect("the supervisor ends");
    wait_for("the room to be empty", || oracle.survivors().is_empty());
    // What it left behind can still be read.
    let told = proctor::proctor(crate::args!["status", bench.run_dir()])
        .exits(0)
        .says("its supervisor is gone")
        .says("proctor merge");
    assert!(
        told.stdout.contains("busy"),
        "{}\n{}",
        told.stdout,
        told.stderr
    );
    proctor::proctor(crate::args!["merge", bench.run_dir()])
        .exits(0)
        .says("INCOMPLETE");
    let bundle = crate::support::json(&bench.bundle().dir.join("bundle.json"));
    assert_eq!(bundle["complete"], false);
    // The next run takes away what the worker left in its scratch directory.
    let left = || std::fs::read_dir(&temporary).expect("the folder").count();
    assert_eq!(left(), 1);
    let methods = bench.methods(&[serde_json::json!("GST")]);
    let again = crate::args!["run", bench.protocol(), methods, "-o", bench.path("again")];
    let mut again = proctor::command(again);
    again.env("TMPDIR", &temporary);
    proctor::finish(again).exits(0).says("left behind");
    assert_eq!(left(), 0);
}
