//! Re-validation: what a protocol that was changed by hand is refused for.

use std::path::Path;

use super::*;
use crate::canonical::{digest, read};
use crate::object;

/// A protocol as its file says it, with relative paths.
fn sound() -> Value {
    let json = r#"{
        "aggregation": "a", "benchmark_id": "b", "coverage_policy": "c", "domain": "plagiarism",
        "datasets": [{
            "name": "d", "domain": "plagiarism", "task_family": "pair", "path": "data/d", "source_url": "u",
            "source_revision": "r", "split": "test", "selection": "all", "similarity_options": {"code_language": "java"},
            "k": 10, "expected_result_count": 3,
            "content": {"counts": {"files": 2, "pairs": 3},
                        "sha256": "0000000000000000000000000000000000000000000000000000000000000000"}
        }],
        "evaluation_rules": {}, "execution_policy": {"max_method_seconds": 2}, "pair_metrics": ["f1"],
        "retrieval_metrics": ["ndcg_at_k"], "schema_version": 1, "seed": [1], "split_policy": {},
        "threshold_policy": {"mode": "fixed", "value": "0.25"}
    }"#;
    sealed(read(json.as_bytes()).expect("the test's JSON"))
}

/// With the id that fits.
fn sealed(mut protocol: Value) -> Value {
    let id = digest(&public_form(&protocol));
    if let Some(object) = protocol.as_object_mut() {
        object.insert("protocol_id", id);
    }
    protocol
}

#[test]
fn a_sound_protocol_reads_as_it_says() {
    let value = sound();
    let protocol = Protocol::from_value(&value, Some(Path::new("/base"))).expect("sound");
    assert_eq!(protocol.threshold(), &ThresholdPolicy::Fixed(0.25));
    assert_eq!(protocol.max_method_seconds(), 2.0);
    assert_eq!(protocol.seed(), &Value::from(vec![1i64]));
    assert_eq!(protocol.metrics(Family::Pair), ["f1"]);
    assert_eq!(protocol.metrics(Family::Retrieval), ["ndcg_at_k"]);
    let entry = &protocol.datasets()[0];
    assert_eq!(entry.path.as_deref(), Some(Path::new("/base/data/d")));
    assert_eq!(entry.code_language.as_deref(), Some("java"));
    assert_eq!((entry.count("pairs"), entry.count("queries")), (3, 0));
    let file = read(protocol.file_text().as_bytes()).expect("JSON");
    assert_eq!(
        file.get("datasets")
            .and_then(|d| d.as_array()?[0].get("path")),
        Some(&"/base/data/d".into())
    );

    let exported = read(protocol.export().as_bytes()).expect("JSON");
    let mut expected = value;
    let entries = expected
        .as_object_mut()
        .and_then(|p| p.get_mut("datasets"))
        .and_then(Value::as_array_mut);
    entries.expect("datasets")[0]
        .as_object_mut()
        .expect("an object")
        .remove("path");
    assert_eq!(exported, expected);
}

#[test]
fn a_changed_protocol_is_refused() {
    let mut value = sound();
    value
        .as_object_mut()
        .expect("an object")
        .insert("seed", 2i64);
    let error = Protocol::from_value(&value, None)
        .expect_err("changed")
        .to_string();
    assert!(
        error.starts_with("protocol_id: is not the digest"),
        "{error}"
    );
}

#[test]
fn unsound_fields_are_refused_by_name() {
    let top: &[(&str, Value, &str)] = &[
        ("schema_version", 2i64.into(), "schema_version: "),
        ("datasets", Value::Array(Vec::new()), "datasets: "),
        ("datasets", Value::Array(vec![Value::Null]), "datasets[0]: "),
        ("benchmark_id", "".into(), "benchmark_id: "),
        ("domain", "other".into(), "domain: "),
        ("aggregation", Value::Null, "aggregation: "),
        (
            "execution_policy",
            object! {},
            "execution_policy.max_method_seconds: ",
        ),
        (
            "execution_policy",
            object! { "max_method_seconds" => -1.0 },
            "execution_policy.max_method_seconds: ",
        ),
        (
            "execution_policy",
            object! { "max_method_seconds" => 2.0, "cpus" => 0i64 },
            "execution_policy.cpus: ",
        ),
        ("pair_metrics", vec!["f1", "f1"].into(), "pair_metrics: "),
        ("pair_metrics", vec!["F1"].into(), "pair_metrics: "),
        (
            "retrieval_metrics",
            Value::Array(Vec::new()),
            "retrieval_metrics: ",
        ),
        (
            "threshold_policy",
            object! { "mode" => "best" },
            "threshold_policy.mode: ",
        ),
        (
            "threshold_policy",
            object! { "mode" => "fixed" },
            "threshold_policy.value: ",
        ),
        (
            "split_policy",
            object! { "at" => "/srv/x" },
            "split_policy.at: ",
        ),
    ];
    for (key, value, expected) in top {
        let mut protocol = sound();
        protocol
            .as_object_mut()
            .expect("an object")
            .insert(*key, value.clone());
        let error = Protocol::from_value(&sealed(protocol), None)
            .expect_err(key)
            .to_string();
        assert!(error.starts_with(expected), "{key}: {error}");
    }
    let entry: &[(&str, Value, &str)] = &[
        ("name", 5i64.into(), "name"),
        ("task_family", "ranking".into(), "task_family"),
        ("domain", "other".into(), "domain"),
        ("k", 0i64.into(), "k"),
        (
            "expected_result_count",
            0i64.into(),
            "expected_result_count",
        ),
        ("expected_result_count", 1.5.into(), "expected_result_count"),
        (
            "expected_result_count",
            Value::Null,
            "expected_result_count",
        ),
        (
            "similarity_options",
            object! { "preprocess_mode" => "basic" },
            "similarity_options.preprocess_mode",
        ),
        (
            "content",
            object! { "counts" => object! { "files" => 1i64, "pairs" => 1i64 }, "sha256" => "AB" },
            "content.sha256",
        ),
        (
            "content",
            object! { "counts" => object! { "files" => 1i64 } },
            "content.counts.pairs",
        ),
        ("content", object! {}, "content.counts"),
        ("path", 3i64.into(), "path"),
    ];
    for (key, value, expected) in entry {
        let mut protocol = sound();
        let entries = protocol
            .as_object_mut()
            .and_then(|p| p.get_mut("datasets"))
            .and_then(Value::as_array_mut);
        let entry = entries.expect("datasets")[0]
            .as_object_mut()
            .expect("an object");
        entry.insert(*key, value.clone());
        let error = Protocol::from_value(&sealed(protocol), None)
            .expect_err(key)
            .to_string();
        assert!(
            error.starts_with(&format!("datasets[0].{expected}: ")),
            "{key}: {error}"
        );
    }
    for key in [
        "split",
        "source_url",
        "source_revision",
        "selection",
        "k",
        "content",
        "name",
    ] {
        let mut protocol = sound();
        let entries = protocol
            .as_object_mut()
            .and_then(|p| p.get_mut("datasets"))
            .and_then(Value::as_array_mut);
        entries.expect("datasets")[0]
            .as_object_mut()
            .expect("an object")
            .remove(key);
        let error = Protocol::from_value(&sealed(protocol), None)
            .expect_err(key)
            .to_string();
        assert_eq!(error, format!("datasets[0].{key}: is missing"));
    }
    let mut protocol = sound();
    let entries = protocol
        .as_object_mut()
        .and_then(|p| p.get_mut("datasets"))
        .and_then(Value::as_array_mut);
    let entries = entries.expect("datasets");
    entries.push(entries[0].clone());
    let error = Protocol::from_value(&sealed(protocol), None)
        .expect_err("two of one name")
        .to_string();
    assert!(error.starts_with("datasets[1].name: "), "{error}");
}
