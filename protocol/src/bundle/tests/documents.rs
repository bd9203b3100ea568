//! Documents written back and merged.

use std::path::{Path, PathBuf};

use super::{BASE, accept, index, members, payload, protocol, read_payload, text};
use crate::bundle::{Artifact, Document, Finding, Validation, merge};
use crate::canonical::{Value, read};
use crate::vectors::shared;

fn written(document: &Document, artifact: Artifact) -> Vec<u8> {
    let mut bytes = Vec::new();
    document
        .write(artifact, "x", &mut bytes)
        .expect("memory takes everything");
    bytes
}

/// Fails at the first line that differs.
fn assert_same(found: &[u8], expected: &[u8], what: &str) {
    let lines = |bytes: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.split('\n').map(str::to_owned).collect()
    };
    let (found, expected) = (lines(found), lines(expected));
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found, expected, "{what}, line {}", at + 1);
    }
    assert_eq!(found.len(), expected.len(), "{what}: lines");
}

/// A CSV file with its columns in order of name: failed results of Matheel have them in another order.
fn sorted_columns(bytes: &[u8]) -> Vec<u8> {
    let mut reader = csv::Reader::from_reader(bytes);
    let names: Vec<String> = reader
        .headers()
        .unwrap()
        .iter()
        .map(str::to_owned)
        .collect();
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|&at| &names[at]);
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer
        .write_record(order.iter().map(|&at| &names[at]))
        .unwrap();
    for record in reader.records().map(Result::unwrap) {
        writer
            .write_record(order.iter().map(|&at| &record[at]))
            .unwrap();
    }
    writer.into_inner().unwrap()
}

/// The file of a run beside its payload.
fn beside(relative: &str, end: &str) -> PathBuf {
    let stem = relative.strip_suffix(".json").expect("a payload");
    shared(&format!("{BASE}/{stem}{end}")).expect("beside the payload")
}

#[test]
fn accepted_runs_are_written_back_to_the_same_bytes() {
    let Some(index) = index() else { return };
    let mut runs = 0;
    for (name, run) in members(&index, "runs") {
        let Some(result) = run.get("result").and_then(Value::as_str) else {
            continue;
        };
        let document = accept(result);
        let same = |artifact, file: &Path| {
            let mut expected = std::fs::read(file).expect("beside the payload");
            let mut found = written(&document, artifact);
            if name.starts_with("failed_") && artifact == Artifact::PerDatasetCsv {
                (found, expected) = (sorted_columns(&found), sorted_columns(&expected));
            }
            assert_same(&found, &expected, &file.display().to_string());
        };
        same(Artifact::Json, &beside(result, ".json"));
        same(Artifact::PerDatasetCsv, &beside(result, "_per_dataset.csv"));
        same(Artifact::AggregateCsv, &beside(result, "_aggregate.csv"));
        assert_eq!(
            read(&written(&document, Artifact::Json)),
            Ok(document.payload()),
            "{name}"
        );
        runs += 1;
    }
    assert_eq!(runs, 16);
}

#[test]
fn merged_bundles_have_the_rows_and_metadata_of_matheel() {
    let Some(index) = index() else { return };
    let mut merges = 0;
    for (name, case) in members(&index, "merges") {
        let protocol = protocol(text(case, "protocol"));
        let parts = case.get("parts").and_then(Value::as_array).expect("parts");
        let parts: Result<Vec<Document>, Finding> = parts
            .iter()
            .map(|part| {
                let part = part.as_str().expect("a name");
                let options = Validation {
                    protocol: Some(&protocol),
                    ..Validation::default()
                };
                Ok(Document::accept(
                    read_payload(&format!("results/{part}/{part}.json")),
                    &options,
                )?
                .0)
            })
            .collect();
        let Some(result) = case.get("result").and_then(Value::as_str) else {
            // A custom method that is only a file name is merged by us; Matheel tries to import it.
            let refused = parts.map_or(true, |parts| merge(&protocol, parts).is_err());
            assert_eq!(refused, name != "merge_custom_from_json", "{name}");
            continue;
        };
        let joined = merge(&protocol, parts.expect("valid parts")).expect("mergeable");
        let expected = payload(result);
        let found = joined.payload();
        for part in ["per_dataset", "aggregate", "manifest", "cards"] {
            assert_eq!(found.get(part), expected.get(part), "{name}: {part}");
        }
        let mut expected = expected
            .get("metadata")
            .and_then(Value::as_object)
            .unwrap()
            .clone();
        // The parts had been given their executions in memory, after they were written.
        expected.insert("supervised_executions", Value::Array(Vec::new()));
        let mut found = joined.metadata().clone();
        if name == "merge_of_merge" {
            found.insert("supervised_executions", Value::Array(Vec::new()));
        }
        for (key, value) in expected.iter() {
            assert_eq!(found.get(key), Some(value), "{name}: {key}");
        }
        assert_eq!(found.len(), expected.len(), "{name}");
        let csv = written(&joined, Artifact::AggregateCsv);
        assert_same(
            &csv,
            &std::fs::read(beside(result, "_aggregate.csv")).unwrap(),
            name,
        );
        let csv = sorted_columns(&written(&joined, Artifact::PerDatasetCsv));
        let expected = std::fs::read(beside(result, "_per_dataset.csv")).unwrap();
        assert_same(&csv, &sorted_columns(&expected), name);
        merges += 1;
    }
    assert_eq!(merges, 3);
}
