//! Names that are digests: datasets, protocols and methods get the ids that Matheel gives them, and bundles merge as
//! Matheel merges them.

use serde_json::{Value, json};

use crate::args;
use crate::support::bench::Bench;
use crate::support::bundle::Bundle;
use crate::support::proctor::proctor;
use crate::support::{compare_rows, json, shared};

fn report(arguments: &[std::ffi::OsString]) -> Value {
    let done = proctor(arguments).exits(0);
    serde_json::from_str(&done.stdout).expect("one JSON document")
}

#[test]
fn datasets_protocols_and_methods_are_named_as_by_matheel() {
    let test = "identities::datasets_protocols_and_methods_are_named_as_by_matheel";
    let Some(vectors) = shared(test, "interop/matheel") else {
        return;
    };
    let index = json(&vectors.join("index.json"));
    let field = |value: &Value, key: &str| value[key].as_str().expect("a text").to_owned();

    for group in ["datasets", "fingerprint_cases"] {
        for (name, case) in index[group].as_object().expect("cases") {
            let root = vectors.join(field(case, "root"));
            let family = field(case, "task_family");
            // Without anything to score a dataset has its fingerprint, but cannot be frozen.
            let counts = &case["content"]["counts"];
            let empty = ["pairs", "queries", "corpus"]
                .iter()
                .any(|table| counts[table] == 0);
            let checked = proctor(args![
                "dataset", "check", root, "--family", family, "--json"
            ])
            .exits(i32::from(empty));
            let checked: Value = serde_json::from_str(&checked.stdout).expect("a report");
            assert_eq!(checked["content"], case["content"], "{name}");
        }
    }
    for (name, case) in index["protocols"].as_object().expect("cases") {
        let bench = Bench::empty();
        let manifest = vectors.join(field(case, "manifest"));
        let id = field(case, "benchmark_id");
        let frozen = report(args![
            "freeze",
            manifest,
            "-o",
            bench.protocol(),
            "--benchmark-id",
            id,
            "--json"
        ]);
        assert_eq!(frozen["protocol_id"], case["protocol_id"], "{name}");
    }
    let identity = |method: &Value, id: &str| json!([method["name"], method[id]]);
    for (name, case) in index["methods"].as_object().expect("cases") {
        let listed = report(args![
            "methods",
            vectors.join(field(case, "file")),
            "--json"
        ]);
        let ours = listed["methods"].as_array().expect("methods");
        let theirs = case["methods"].as_array().expect("methods");
        let ours: Vec<_> = ours.iter().map(|method| identity(method, "id")).collect();
        let theirs: Vec<_> = theirs
            .iter()
            .map(|method| identity(method, "algorithm_id"))
            .collect();
        assert_eq!(ours, theirs, "{name}");
    }
}

#[test]
fn matheels_bundles_merge_as_by_matheel() {
    let test = "identities::matheels_bundles_merge_as_by_matheel";
    let Some(vectors) = shared(test, "interop/matheel") else {
        return;
    };
    let index = json(&vectors.join("index.json"));
    let mut merged = 0;
    for (name, case) in index["merges"].as_object().expect("cases") {
        let bench = Bench::empty();
        let mut arguments = vec![std::ffi::OsString::from("merge")];
        for part in case["parts"].as_array().expect("parts") {
            let part = part.as_str().expect("a name");
            arguments.push(vectors.join(format!("results/{part}/{part}.json")).into());
        }
        arguments.extend(["-o".into(), bench.path("merged").into()]);
        let done = proctor(&arguments);
        if case["error"].is_null() {
            done.exits(0);
            let bundle = Bundle::open(&bench.path("merged"));
            let keys = ["algorithm_id", "dataset_name", "metric"];
            compare_rows(name, &keys, &case["per_dataset"], bundle.rows());
            let aggregate = bundle.payload["aggregate"].as_array().expect("rows");
            let keys = ["algorithm_id", "task_family", "metric"];
            compare_rows(name, &keys, &case["aggregate"], aggregate);
            merged += 1;
        } else if case["error"]["type"] == "ModuleNotFoundError" {
            // Matheel fails because it imports the method of a bundle; there is nothing to import for us.
            done.exits(0);
        } else {
            done.exits(2);
        }
    }
    assert_eq!(merged, 3);
}
