//! Matheel's own runs, repeated by ours: every row, aggregate, threshold and score file is the same.

use std::path::Path;

use serde_json::Value;

use crate::args;
use crate::support::bench::Bench;
use crate::support::proctor::proctor;
use crate::support::{compare_rows, json, shared};

/// Runs that call Matheel's Python custom algorithms, which no worker of ours serves yet.
const LEFT_OUT: &[&str] = &["custom_full", "one_custom"];

/// Runs whose failed rows Matheel made up from an error text; nothing was executed. The tests of the protocol crate
/// compare those.
const NOT_EXECUTED: &[&str] = &["failed_excluded", "failed_jw", "failed_min"];

#[test]
fn every_run_of_built_in_methods_is_repeated_to_the_last_bit() {
    let test = "interop::every_run_of_built_in_methods_is_repeated_to_the_last_bit";
    let Some(vectors) = shared(test, "interop/matheel") else {
        return;
    };
    let index = json(&vectors.join("index.json"));
    let runs = index["runs"].as_object().expect("runs");
    let mut repeated = 0;
    for (name, run) in runs {
        let name = name.as_str();
        if name == "string_weights_error"
            || LEFT_OUT.contains(&name)
            || NOT_EXECUTED.contains(&name)
        {
            continue;
        }
        repeat(&vectors, name, run);
        repeated += 1;
    }
    assert_eq!(repeated, 11);
}

fn repeat(vectors: &Path, name: &str, run: &Value) {
    let bench = Bench::empty();
    let text = |key: &str| run[key].as_str().expect("a text");
    let protocol = vectors
        .join("protocols")
        .join(format!("{}.json", text("protocol")));
    let methods = json(
        &vectors
            .join("methods")
            .join(format!("{}.json", text("methods"))),
    );
    let all = methods
        .get("algorithms")
        .unwrap_or(&methods)
        .as_array()
        .expect("methods");
    let chosen: Vec<Value> = match run["select"].as_array() {
        Some(picks) => picks
            .iter()
            .map(|at| all[at.as_u64().expect("a number") as usize].clone())
            .collect(),
        None => all.clone(),
    };
    let file = bench.methods(&chosen);
    proctor(args!["run", protocol, file, "-o", bench.run_dir()]).exits(0);
    let bundle = bench.bundle();

    compare_rows(
        name,
        &["algorithm_id", "dataset_name", "metric"],
        &run["per_dataset"],
        bundle.rows(),
    );
    let aggregate = bundle.payload["aggregate"].as_array().expect("rows");
    compare_rows(
        name,
        &["algorithm_id", "task_family", "metric"],
        &run["aggregate"],
        aggregate,
    );

    let thresholds = bundle.payload["metadata"]["thresholds"]
        .as_array()
        .expect("thresholds");
    let strip = |entry: &Value| {
        (
            entry["dataset_name"].to_string(),
            entry["algorithm_name"].to_string(),
            entry["threshold"].to_string(),
        )
    };
    let mut ours: Vec<_> = thresholds.iter().map(strip).collect();
    let mut theirs: Vec<_> = run["thresholds"]
        .as_array()
        .into_iter()
        .flatten()
        .map(strip)
        .collect();
    ours.sort();
    theirs.sort();
    assert_eq!(ours, theirs, "{name}: thresholds");

    // Score files carry the same names and the same bytes.
    if let Some(folder) = run["scores"].as_str() {
        for (file, bytes) in crate::support::tree(&vectors.join(folder)) {
            let ours = std::fs::read(bundle.dir.join("scores").join(&file))
                .unwrap_or_else(|e| panic!("{name}: {file}: {e}"));
            assert!(ours == bytes, "{name}: {file} differs");
        }
    }
}
