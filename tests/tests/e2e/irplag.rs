//! The IR-Plag benchmark: our run of its five methods gives what Matheel gave, to the last bit.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::args;
use crate::support::bench::Bench;
use crate::support::bundle::Bundle;
use crate::support::proctor::proctor;
use crate::support::{json, matheel, shared};

const PROTOCOL_ID: &str = "bdb3a9be46796ad277d6ef3e2aa312c27e5d088c4c619726fe2100dfc3e01302";

/// (dataset, method, metric) -> the row.
type Rows = BTreeMap<(String, String, String), Value>;

fn by_key(rows: &[Value]) -> Rows {
    let text = |row: &Value, key: &str| row[key].as_str().expect("a text").to_owned();
    let key = |row: &Value| {
        (
            text(row, "dataset_name"),
            text(row, "algorithm_name"),
            text(row, "metric"),
        )
    };
    rows.iter().map(|row| (key(row), row.clone())).collect()
}

#[test]
fn five_methods_score_as_published_and_both_sides_accept_each_other() {
    let test = "irplag::five_methods_score_as_published_and_both_sides_accept_each_other";
    let (Some(vectors), Some(_)) = (shared(test, "interop/irplag"), shared(test, "data/irplag"))
    else {
        return;
    };
    let bench = Bench::empty();
    freeze(&vectors, &bench);
    assert_eq!(json(&bench.protocol())["protocol_id"], PROTOCOL_ID);

    let methods = vectors.join("methods.json");
    proctor(args![
        "run",
        bench.protocol(),
        methods,
        "-o",
        bench.run_dir()
    ])
    .exits(0);
    let bundle = bench.bundle();
    let expected = json(&vectors.join("expected.json"));
    let expected = by_key(expected["per_dataset"].as_array().expect("rows"));
    let ours = by_key(bundle.rows());
    assert_eq!(ours.len(), 55);
    assert_eq!(expected.len(), 55);
    for (key, row) in &expected {
        for field in ["score", "sample_count", "rank"] {
            assert_eq!(ours[key][field], row[field], "{key:?} {field}");
        }
    }

    // Matheel's bundle holds with us, and ours merges with it: the same methods twice are refused, as they must be.
    let theirs = vectors.join("bundle.matheel-0.7.1.json");
    proctor(args!["validate", &theirs]).exits(0);
    proctor(args!["validate", &theirs, "--protocol", bench.protocol()]).exits(0);
    proctor(args![
        "merge",
        &theirs,
        &bundle.dir,
        "-o",
        bench.path("twice")
    ])
    .exits(2);
    proctor(args!["merge", &theirs, "-o", bench.path("theirs")]).exits(0);
    let again = by_key(Bundle::open(&bench.path("theirs")).rows());
    for (key, row) in &expected {
        assert_eq!(again[key]["score"], row["score"], "{key:?}");
    }

    if let Some(python) = matheel::python(test) {
        let payload = bundle.payload_file();
        let told = matheel::command(&python, args!["benchmark", "validate", payload]);
        assert!(
            told.status.success(),
            "{}",
            String::from_utf8_lossy(&told.stderr)
        );
    }
}

#[test]
fn exporting_the_protocol_keeps_its_id_and_drops_its_paths() {
    let test = "irplag::exporting_the_protocol_keeps_its_id_and_drops_its_paths";
    let Some(vectors) = shared(test, "interop/irplag") else {
        return;
    };
    if shared(test, "data/irplag").is_none() {
        return;
    }
    let bench = Bench::empty();
    freeze(&vectors, &bench);
    let exported = proctor(args!["protocol", "export", bench.protocol()]).exits(0);
    let public: Value = serde_json::from_str(&exported.stdout).expect("JSON");
    assert_eq!(public, json(&vectors.join("protocol.public.json")));
}

fn freeze(vectors: &std::path::Path, bench: &Bench) {
    let manifest = vectors.join("manifest.json");
    let id = "IRPlag-Java-v1";
    proctor(args![
        "freeze",
        manifest,
        "-o",
        bench.protocol(),
        "--benchmark-id",
        id
    ])
    .exits(0);
}
