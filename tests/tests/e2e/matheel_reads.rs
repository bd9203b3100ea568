//! The real Matheel reads what we write: it validates our bundles, merges them with its own results, and freezes and
//! scores the fixtures as we do.

use std::path::Path;

use serde_json::{Value, json};

use crate::args;
use crate::support::bench::Bench;
use crate::support::proctor::proctor;
use crate::support::{json, matheel, repository, write_json};

const NONE: &[u32] = &[];

/// Validates each payload with the package, merges all of them, writes the artifacts and validates those again.
const MERGE: &str = r#"
import json, sys
from matheel.benchmark_protocol import load_benchmark_protocol, merge_benchmark_results, validate_benchmark_result
protocol = load_benchmark_protocol(sys.argv[1])
payloads = [json.load(open(path, encoding="utf-8")) for path in sys.argv[3:]]
for payload in payloads:
    validate_benchmark_result(payload)
    validate_benchmark_result(payload, protocol=protocol)
report, artifacts = merge_benchmark_results(protocol, payloads, output_dir=sys.argv[2], basename="merged")
written = json.load(open(artifacts["json"], encoding="utf-8"))
print(json.dumps(validate_benchmark_result(written, protocol=protocol)))
"#;

/// Validates a payload with its score files.
const VALIDATE_SCORES: &str = r#"
import json, sys
from matheel.benchmark_protocol import validate_benchmark_result
payload = json.load(open(sys.argv[1], encoding="utf-8"))
print(json.dumps(validate_benchmark_result(payload, score_artifact_dir=sys.argv[2])))
"#;

fn evaluate(python: &Path, bench: &Bench, methods: &[Value], name: &str) -> Value {
    let file = bench.path(&format!("{name}.methods.json"));
    write_json(&file, &json!(methods));
    let out = bench.path(name);
    let done = matheel::command(
        python,
        args![
            "benchmark",
            "evaluate",
            bench.protocol(),
            file,
            "--output-dir",
            &out
        ],
    );
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    json(&out.join("benchmark.json"))
}

#[test]
fn bundles_with_a_timeout_and_a_partly_finished_method_validate_and_merge() {
    let test =
        "matheel_reads::bundles_with_a_timeout_and_a_partly_finished_method_validate_and_merge";
    let Some(python) = matheel::python(test) else {
        return;
    };
    let bench = Bench::fixtures(2.0);
    bench
        .run(&[
            json!("Levenshtein"),
            bench.rogue("sleeper", NONE),
            bench.rogue("busy", &["1"]),
            bench.rogue("quitter", &["2"]),
            bench.rogue("refuser", NONE),
            json!({
                "name": "pairs only", "preset": "Jaro",
                "task_eligibility": { "retrieval": { "status": "not_applicable", "reason": "pairs only" } }
            }),
        ])
        .exits(1);
    let bundle = bench.bundle();
    let payload = bundle.payload_file();
    let told = matheel::command(
        &python,
        args![
            "benchmark",
            "validate",
            &payload,
            "--protocol",
            bench.protocol()
        ],
    );
    assert!(
        told.status.success(),
        "{}",
        String::from_utf8_lossy(&told.stderr)
    );

    let told = matheel::ask(
        &python,
        VALIDATE_SCORES,
        args![&payload, bundle.dir.join("scores")],
    );
    assert_eq!(told["valid"], true);

    let theirs = evaluate(&python, &bench, &[json!("GST")], "theirs");
    write_json(&bench.path("gst.json"), &theirs);
    let told = matheel::ask(
        &python,
        MERGE,
        args![
            bench.protocol(),
            bench.path("merged by matheel"),
            &payload,
            bench.path("gst.json")
        ],
    );
    assert_eq!(told["methods"], 7);

    // Our merge of the same two agrees with theirs row by row.
    let merged = bench.path("merged by proctor");
    proctor(args![
        "merge",
        &bundle.dir,
        bench.path("gst.json"),
        "-o",
        &merged
    ])
    .exits(0);
    let ours = crate::support::bundle::Bundle::open(&merged);
    let theirs = json(&bench.path("merged by matheel/merged.json"));
    for table in ["per_dataset", "aggregate"] {
        let sorted = |payload: &Value| {
            let mut rows = payload[table].as_array().expect("rows").clone();
            for row in &mut rows {
                row.as_object_mut()
                    .expect("a row")
                    .retain(|_, value| !value.is_null());
            }
            rows.sort_by_key(ToString::to_string);
            rows
        };
        assert_eq!(sorted(&ours.payload), sorted(&theirs), "{table}");
    }
}

#[test]
fn the_fixtures_freeze_and_score_the_same() {
    let test = "matheel_reads::the_fixtures_freeze_and_score_the_same";
    let Some(python) = matheel::python(test) else {
        return;
    };
    let methods: Vec<Value> = [
        "Levenshtein",
        "Longest Common Subsequence (LCS)",
        "Winnowing",
        "GST",
    ]
    .map(Value::from)
    .into();
    for manifest in ["manifest.json", "manifest.validation.json"] {
        let manifest = repository().join("fixtures").join(manifest);
        let bench = Bench::empty();
        proctor(args!["freeze", &manifest, "-o", bench.protocol()]).exits(0);
        let theirs = bench.path("theirs.json");
        let done = matheel::command(
            &python,
            args!["benchmark", "freeze", &manifest, "--output", &theirs],
        );
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        let ours = std::fs::read_to_string(bench.protocol()).expect("a protocol");
        assert_eq!(ours, std::fs::read_to_string(&theirs).expect("a protocol"));

        bench.run(&methods).exits(0);
        let theirs = evaluate(&python, &bench, &methods, "theirs");
        let bundle = bench.bundle();
        for table in ["per_dataset", "aggregate"] {
            let timeless = |payload: &Value| {
                let mut rows = payload[table].as_array().expect("rows").clone();
                for row in &mut rows {
                    row["elapsed_seconds"] = json!(0);
                }
                rows
            };
            assert_eq!(timeless(&bundle.payload), timeless(&theirs), "{table}");
        }
        let thresholds = |payload: &Value| {
            let mut rows = payload["metadata"]["thresholds"]
                .as_array()
                .expect("thresholds")
                .clone();
            rows.sort_by_key(ToString::to_string);
            rows
        };
        assert_eq!(thresholds(&bundle.payload), thresholds(&theirs));
        assert_eq!(
            bundle.payload["metadata"]["method_configurations"],
            theirs["metadata"]["method_configurations"]
        );
    }
}
