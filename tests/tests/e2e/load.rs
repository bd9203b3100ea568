//! The load gate, with processes that keep the cores busy outside of any room.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::burner::Burner;
use crate::support::proctor::finish;
use crate::support::{json, skip};

const HALF: [&str; 2] = ["--max-load", "0.5"];

fn gate(bench: &Bench) -> Value {
    let log = bench.stderr_log("Jaro");
    json(&log.with_file_name("terminal.json"))["measured"]["load_gate"].clone()
}

#[test]
fn a_method_waits_for_quiet_and_starts_late_in_the_end() {
    let bench = Bench::fixtures(20.0);
    let burners = Burner::all_cores(&bench);
    let wait = ["--max-load-wait", "2"];
    let done = finish(bench.run_command(&[json!("Jaro")], &[HALF, wait].concat())).exits(0);
    drop(burners);
    let waiting = done
        .stderr
        .lines()
        .find(|line| line.contains("Jaro: waiting: "));
    let waiting = waiting.unwrap_or_else(|| panic!("{}", done.stderr));
    assert!(
        waiting.contains(" use") && waiting.ends_with(" cores"),
        "{waiting}"
    );
    let gate = gate(&bench);
    assert_eq!(
        (&gate["passed"], &gate["max_load"]),
        (&json!("late"), &json!(0.5)),
        "{gate}"
    );
    let waited = gate["waited_seconds"].as_f64().expect("a number");
    assert!((2.0..30.0).contains(&waited), "{gate}");
    assert!(gate["cores"].as_f64() > Some(0.5), "{gate}");
    // The wait is not the method's.
    let entry = bench.bundle().execution("Jaro").clone();
    assert!(entry["wall_seconds"].as_f64() < Some(20.0), "{entry}");
    let plan = json(&bench.run_dir().join("bundle/evidence/plan.json"));
    assert_eq!(plan["policy"]["load"]["max_wait_seconds"], 2.0);
    let again = plan["run_again"].to_string();
    assert!(
        again.contains("--max-load 0.5 --max-load-wait 2"),
        "{again}"
    );
}

#[test]
fn a_method_starts_as_soon_as_the_others_are_gone() {
    let test = "load::a_method_starts_as_soon_as_the_others_are_gone";
    let bench = Bench::fixtures(20.0);
    let burners = Burner::all_cores(&bench);
    let options = ["--max-load", "0.9", "--max-load-wait", "15"];
    let mut command = bench.run_command(&[json!("Jaro")], &options);
    let mut run = command
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("proctor starts");
    let told = BufReader::new(run.stderr.take().expect("a pipe")).lines();
    let mut burners = Some(burners);
    for line in told {
        if line.expect("text").contains("waiting: ") {
            drop(burners.take());
        }
    }
    assert!(run.wait().expect("an end").success());
    let gate = gate(&bench);
    match (burners, gate["passed"].as_str()) {
        (None, Some("quiet")) => {
            assert!(gate["waited_seconds"].as_f64() > Some(1.0), "{gate}");
            assert!(gate["cores"].is_number(), "{gate}");
        }
        // Tests run beside each other, and leave it no quiet moment.
        (None, Some("late")) => skip(test, "this machine was never quiet"),
        (burners, passed) => panic!("{burners:?} {passed:?}"),
    }
}

#[test]
fn an_official_run_does_not_start_a_method_under_load() {
    let test = "load::an_official_run_does_not_start_a_method_under_load";
    let bench = Bench::fixtures(20.0);
    let burners = Burner::all_cores(&bench);
    let official = [
        "--official",
        "--max-memory",
        "512M",
        "--max-load-wait",
        "0.5",
    ];
    let done = finish(bench.run_command(&[json!("Jaro")], &[&HALF[..], &official].concat()));
    drop(burners);
    if done.code == Some(2) {
        skip(test, "this machine gives no official run");
        return;
    }
    let done = done.exits(3);
    assert!(
        done.stdout.contains("the machine was busy for"),
        "{}",
        done.stdout
    );
    let entry = bench.bundle().execution("Jaro").clone();
    assert_eq!(entry["outcome"]["kind"], "infrastructure", "{entry}");
    assert_eq!(
        (&entry["charged"], &entry["wall_seconds"]),
        (&json!(false), &json!(0.0))
    );
}

#[test]
fn what_is_no_part_of_the_cores_is_refused() {
    for wrong in ["0", "-0.1", "1.1", "nan", "half", ""] {
        let bench = Bench::fixtures(20.0);
        let option = format!("--max-load={wrong}");
        finish(bench.run_command(&[json!("Jaro")], &[&option])).exits(2);
        assert!(!bench.run_dir().exists(), "{wrong}");
    }
    let bench = Bench::fixtures(20.0);
    for options in [
        vec!["--max-load-wait", "5"],
        vec!["--max-load=0.5", "--max-load-wait=inf"],
    ] {
        finish(bench.run_command(&[json!("Jaro")], &options)).exits(2);
    }
}
