//! Every other way of misbehaving, each with the outcome it deserves. One run holds them all, two at a time.

use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::oracle::Oracle;
use crate::support::proctor;

const NONE: &[u32] = &[];

/// Rogue, datasets it answers first, outcome, datasets that count.
const VERDICTS: &[(&str, u32, &str, usize)] = &[
    ("good", 0, "completed", 3),
    ("holder", 0, "completed", 3),
    ("chatterbox", 0, "completed", 3),
    ("exiter", 0, "exit(3)", 2),
    ("forger", 1, "protocol_error", 1),
    ("finisher", 0, "protocol_error", 0),
    ("not-a-number", 0, "protocol_error", 0),
    ("duplicator", 0, "protocol_error", 0),
    ("flood", 0, "protocol_error", 0),
    ("rude", 0, "protocol_error", 0),
    ("mute", 0, "incomplete(0/3)", 0),
    ("refuser", 0, "dataset_errors(1/3)", 2),
    ("latecomer", 0, "timeout", 0),
];

#[test]
fn each_gets_its_outcome_and_keeps_what_it_finished() {
    let bench = Bench::fixtures(2.5);
    let oracle = Oracle::new(bench.path("").as_path());
    let methods: Vec<Value> = VERDICTS
        .iter()
        .map(|(name, first, ..)| match first {
            0 => bench.rogue(name, NONE),
            first => bench.rogue(name, &[first.to_string()]),
        })
        .collect();
    let run = bench.run_command(&methods, &["--jobs", "2"]);
    proctor::finish(oracle.watch(&run)).exits(1);
    assert_eq!(
        oracle.survivors(),
        Vec::<String>::new(),
        "nothing may be alive"
    );

    let bundle = bench.bundle();
    for (name, _, outcome, scored) in VERDICTS {
        assert_eq!(bundle.outcome(name), *outcome, "{name}");
        assert_eq!(bundle.scored(name).len(), *scored, "{name}");
    }
    let facts = |name: &str| bundle.execution(name)["facts"].clone();
    assert_eq!(facts("holder")["leaked_processes"], 1);
    assert_eq!(facts("holder")["leaked_pipe"], true);
    assert_eq!(facts("good")["leaked_processes"], 0);
    assert_eq!(facts("good")["leaked_pipe"], false);

    // A rogue that talks without end is cut in the middle; its first and last words are kept.
    assert!(facts("chatterbox")["output_cut"].as_u64().expect("a count") > 60 << 20);
    let log = std::fs::read_to_string(bench.stderr_log("chatterbox")).expect("the log is kept");
    assert!(log.len() < 1 << 20, "{} bytes were kept", log.len());
    assert!(log.starts_with("chatter chatter"));
    assert!(log.ends_with("the last words\n"));

    // The worker's own words stand in the rows of the dataset it refused.
    let refused: Vec<_> = bundle
        .rows_of("refuser")
        .into_iter()
        .filter(|row| row["score"].is_null())
        .map(|row| row["error"].clone())
        .collect();
    assert!(
        refused
            .iter()
            .all(|e| *e == "ValueError: these texts are not for me"),
        "{refused:?}"
    );
    assert!(!refused.is_empty());
}

#[test]
fn a_method_that_nothing_applies_to_is_done_without_a_worker() {
    let bench = Bench::fixtures(5.0);
    let reason = json!({ "status": "not_applicable", "reason": "scores nothing" });
    let methods = [
        json!("Jaro"),
        json!({ "name": "idle", "preset": "Jaro", "task_eligibility": { "pair": reason, "retrieval": reason } }),
        json!({ "name": "pairs only", "preset": "Jaro", "task_eligibility": { "retrieval": reason } }),
    ];
    bench.run(&methods).exits(0);
    let bundle = bench.bundle();
    assert_eq!(bundle.outcome("idle"), "not_applicable");
    assert_eq!(bundle.outcome("pairs only"), "completed");
    assert_eq!(bundle.scored("pairs only"), ["java_pairs", "python_pairs"]);
    for row in bundle.rows_of("idle") {
        assert_eq!(row["status"], "not_applicable");
        assert_eq!(row["not_applicable_reason"], "scores nothing");
        assert_eq!(row["sample_count"], 0);
        assert!(row["error"].is_null());
    }
}

#[test]
fn the_demos_two_programs_work_and_hang() {
    let bench = Bench::fixtures(3.0);
    let fixtures = crate::support::repository().join("fixtures");
    let mut run = proctor::command(crate::args![
        "run",
        bench.protocol(),
        fixtures.join("methods.json"),
        "-o",
        bench.run_dir()
    ]);
    run.args([
        "--only",
        "Shared words (a program)",
        "--only",
        "Stuck (a program that hangs)",
    ]);
    proctor::finish(run).exits(1);
    let bundle = bench.bundle();
    assert_eq!(bundle.outcome("Shared words (a program)"), "completed");
    assert_eq!(bundle.outcome("Stuck (a program that hangs)"), "timeout");
    assert_eq!(bundle.scored("Stuck (a program that hangs)").len(), 1);
}
