//! Bundles against vectors made with Matheel 0.7.1.

use std::path::{Path, PathBuf};

use super::{Artifact, Document, Finding, Payload, Validation, merge, score_csv, validate};
use crate::canonical::{Object, Value, read};
use crate::dataset::Dataset;
use crate::frozen::{LoadedEntry, Protocol};
use crate::report::{DatasetResult, Gold, MethodIdentity, Row, Status, rank, rows};
use crate::vectors::{shared, shared_json};

const BASE: &str = "interop/matheel";

fn index() -> Option<Value> {
    shared_json(&format!("{BASE}/index.json"))
}

fn payload(relative: &str) -> Value {
    shared_json(&format!("{BASE}/{relative}")).expect("named by the index")
}

fn read_payload(relative: &str) -> Payload {
    let path = shared(&format!("{BASE}/{relative}")).expect("named by the index");
    Payload::open(&path).expect("an object")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{key} in {value:?}"))
}

fn members<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    value.get(key).and_then(Value::as_object).expect(key).iter()
}

/// Steps to a place of a document.
fn place<'a>(mut value: &'a mut Value, path: &[Value]) -> &'a mut Value {
    for step in path {
        value = match step {
            Value::Int(at) => &mut value.as_array_mut().expect("an array")[*at as usize],
            Value::String(key) => value
                .as_object_mut()
                .expect("an object")
                .get_mut(key)
                .expect("a key"),
            other => panic!("{other:?}"),
        };
    }
    value
}

fn apply(document: &mut Value, edit: &Value) {
    let path = edit.get("path").and_then(Value::as_array).expect("a path");
    let value = edit.get("value").cloned().unwrap_or(Value::Null);
    match text(edit, "op") {
        "dup" => {
            let items = place(document, path).as_array_mut().expect("an array");
            let copy = items[value.as_int().expect("a position") as usize].clone();
            items.push(copy);
        }
        op => {
            let (last, parents) = path.split_last().expect("a step");
            match (place(document, parents), last, op) {
                (Value::Array(items), Value::Int(at), "set") => items[*at as usize] = value,
                (Value::Array(items), Value::Int(at), "del") => drop(items.remove(*at as usize)),
                (Value::Object(object), Value::String(key), "set") => {
                    drop(object.insert(key.clone(), value))
                }
                (Value::Object(object), Value::String(key), "del") => drop(object.remove(key)),
                (_, last, op) => panic!("{op} {last:?}"),
            }
        }
    }
}

/// The rule of ours that a refusal of Matheel's stands for.
fn rule_of(message: &str) -> &'static str {
    let rules = [
        ("missing its frozen benchmark protocol", "protocol"),
        ("Benchmark protocol fingerprint", "protocol"),
        ("Result protocol identity", "protocol_id"),
        ("requires per-dataset scores", "rows"),
        ("retain their benchmark and protocol identity", "identity"),
        ("missing columns", "columns"),
        ("'not_applicable_reason'", "columns"),
        ("method identities do not match", "methods"),
        ("method configuration fingerprint", "configuration"),
        ("Portable benchmark metadata", "configuration"),
        ("Two-stage retrieval", "configuration"),
        ("score artifact filename", "score_artifacts"),
        ("Score artifact refers", "score_artifacts"),
        (
            "missing required method/dataset/metric rows",
            "missing_rows",
        ),
        ("duplicate method/dataset/metric rows", "duplicate_rows"),
        ("Per-dataset eligibility", "eligible"),
        ("Per-dataset ranks", "rank"),
        ("Result aggregate is missing", "aggregate"),
        ("aggregate eligibility", "aggregate_eligible"),
        ("aggregate scores/ranks", "aggregate_values"),
        ("aggregate status", "aggregate_status"),
    ];
    rules
        .iter()
        .find(|(part, _)| message.contains(part))
        .map_or("row", |(_, rule)| rule)
}

#[test]
fn edited_bundles_get_the_verdicts_of_matheel() {
    let Some(index) = index() else { return };
    let cases = index
        .get("validate_cases")
        .and_then(Value::as_array)
        .expect("cases");
    assert_eq!(cases.len(), 69);
    for case in cases {
        let name = text(case, "case");
        let mut document = payload(text(case, "base"));
        for edit in case.get("edits").and_then(Value::as_array).expect("edits") {
            apply(&mut document, edit);
        }
        let outcome = case.get("outcome").expect("an outcome");
        let verdict = validate(&Payload::from(&document), &Validation::default());
        match outcome.get("message") {
            None => {
                let verdict = verdict
                    .unwrap_or_else(|finding| panic!("{name}: {finding}"))
                    .to_value();
                for (key, expected) in outcome.as_object().expect("an object").iter() {
                    assert_eq!(verdict.get(key), Some(expected), "{name}: {key}");
                }
            }
            Some(message) => {
                let message = message.as_str().expect("text");
                let finding: Finding = verdict.expect_err(name);
                assert_eq!(
                    finding.rule,
                    rule_of(message),
                    "{name}: {finding} / {message}"
                );
            }
        }
    }
}

fn accept(relative: &str) -> Document {
    let options = Validation::default();
    let accepted = Document::accept(read_payload(relative), &options);
    accepted
        .unwrap_or_else(|finding| panic!("{relative}: {finding}"))
        .0
}

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
        let protocol =
            shared(&format!("{BASE}/protocols/{}.json", text(case, "protocol"))).expect("named");
        let protocol = Protocol::load(&protocol).expect("sound");
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

/// One dataset's score files of a run, by method id.
fn scores_of(
    folder: &Path,
    data: &LoadedEntry,
    name: &str,
    id: &str,
) -> Option<(PathBuf, Vec<f64>)> {
    let dataset = crate::canonical::sha256_hex(name.as_bytes());
    let family = data.test.family().name();
    let path = folder.join(format!("{}_{}_{family}.csv", &dataset[..12], &id[..20]));
    let mut reader = csv::Reader::from_path(&path).ok()?;
    let column = reader
        .headers()
        .ok()?
        .iter()
        .position(|name| name == "similarity_score")?;
    let listed: Vec<f64> = reader
        .records()
        .map(|record| record.unwrap()[column].parse().unwrap())
        .collect();
    let Dataset::Retrieval(retrieval) = &data.test else {
        return Some((path, listed));
    };
    if listed.len() as u64 == data.test.item_count() {
        return Some((path, listed));
    }
    // Candidates of the query's own file are not in the file; the worker scored them all the same.
    let mut listed = listed.into_iter();
    let full = retrieval.query_file.iter().flat_map(|query| {
        let own = retrieval
            .document_file
            .iter()
            .map(move |document| query == document);
        own.collect::<Vec<_>>()
    });
    let full = full
        .map(|own| if own { 9.0 } else { listed.next().unwrap() })
        .collect();
    Some((path, full))
}

#[test]
fn raw_scores_give_every_value_of_matheel_and_the_same_score_files() {
    let Some(index) = index() else { return };
    let (mut values, mut files) = (0, 0);
    for (run_name, run) in members(&index, "runs") {
        let Some(folder) = run.get("scores").and_then(Value::as_str) else {
            continue;
        };
        let folder = shared(&format!("{BASE}/{folder}")).expect("named");
        let protocol =
            shared(&format!("{BASE}/protocols/{}.json", text(run, "protocol"))).expect("named");
        let protocol = Protocol::load(&protocol).expect("sound");
        let data = protocol.verify_data().expect("the frozen data");
        let document = accept(text(run, "result"));
        let mut computed: Vec<Row> = Vec::new();
        let mut expected: Vec<&Row> = Vec::new();
        for (entry, data) in protocol.datasets().iter().zip(&data) {
            let gold = Gold::new(entry, data);
            let of_dataset = |row: &&Row| *row.dataset_name == *entry.name;
            let first = &protocol.metrics(entry.family)[0];
            for row in document
                .rows()
                .iter()
                .filter(of_dataset)
                .filter(|row| *row.metric == **first)
            {
                let method = MethodIdentity {
                    name: row.algorithm_name.clone(),
                    id: row.algorithm_id.clone(),
                    kind: row.algorithm_kind.clone(),
                    configuration: Value::Null,
                    manifest_entry: Value::Null,
                };
                let result = match row.status {
                    Some(Status::NotApplicable) => DatasetResult::NotApplicable(
                        row.not_applicable_reason
                            .as_deref()
                            .unwrap_or_default()
                            .to_owned(),
                    ),
                    Some(Status::Failed) => DatasetResult::Failed {
                        error: row.error.as_deref().unwrap_or_default().to_owned(),
                        elapsed_seconds: row.elapsed_seconds,
                    },
                    _ => {
                        let (path, scores) =
                            scores_of(&folder, data, &entry.name, &row.algorithm_id)
                                .unwrap_or_else(|| {
                                    panic!("{run_name}: scores of {}", row.algorithm_name)
                                });
                        let mut bytes = Vec::new();
                        let artifact = score_csv(&mut bytes, entry, &data.test, &method, &scores)
                            .expect("fits");
                        assert_eq!(bytes, std::fs::read(&path).unwrap(), "{}", path.display());
                        assert_eq!(
                            artifact.filename,
                            path.file_name().unwrap().to_str().unwrap()
                        );
                        assert_eq!(artifact.sha256, crate::canonical::sha256_hex(&bytes));
                        files += 1;
                        DatasetResult::Scored {
                            scores,
                            validation_scores: None,
                            elapsed_seconds: row.elapsed_seconds,
                        }
                    }
                };
                // Validation scores are not in the vectors, so calibrated runs are held to their values below.
                let evaluated = match (row.selected_threshold, result) {
                    (
                        Some(threshold),
                        DatasetResult::Scored {
                            scores,
                            elapsed_seconds,
                            ..
                        },
                    ) => {
                        let Gold::Pair { labels, .. } = &gold else {
                            panic!("a threshold of a ranking")
                        };
                        let metrics =
                            crate::metric::PairMetrics::compute(labels, &scores, threshold)
                                .unwrap();
                        let same = document
                            .rows()
                            .iter()
                            .filter(of_dataset)
                            .filter(|other| other.algorithm_id == row.algorithm_id);
                        for row in same {
                            assert_eq!(metrics.get(&row.metric), row.score, "{run_name}: {row:?}");
                            assert_eq!(elapsed_seconds, row.elapsed_seconds);
                            values += 1;
                        }
                        continue;
                    }
                    (_, result) => rows(&protocol, entry, &gold, &method, &result).expect("fits"),
                };
                computed.extend(evaluated.rows);
                expected.extend(
                    document
                        .rows()
                        .iter()
                        .filter(of_dataset)
                        .filter(|other| other.algorithm_id == row.algorithm_id),
                );
            }
        }
        let mut expected: Vec<Row> = expected.into_iter().cloned().collect();
        rank(&mut expected);
        rank(&mut computed);
        for (computed, expected) in computed.iter().zip(&expected) {
            assert_eq!(computed, expected, "{run_name}");
        }
        assert_eq!(computed.len(), expected.len(), "{run_name}");
        values += computed.len();
    }
    // Every row of the runs with score files, the excluded and failed ones included.
    assert_eq!((values, files), (967, 183));
}

#[test]
fn a_bundle_with_score_files_is_computed_again_and_a_changed_score_is_seen() {
    let Some(index) = index() else { return };
    let run = index
        .get("runs")
        .and_then(|runs| runs.get("core_validation"))
        .expect("a run");
    let folder = shared(&format!("{BASE}/{}", text(run, "scores"))).expect("named");
    let protocol =
        shared(&format!("{BASE}/protocols/{}.json", text(run, "protocol"))).expect("named");
    let protocol = Protocol::load(&protocol).expect("sound");
    let data = protocol.verify_data().expect("the frozen data");
    let payload = payload(text(run, "result"));
    let options = Validation {
        protocol: Some(&protocol),
        scores: Some(&folder),
        data: Some(&data),
    };
    let verdict = validate(&Payload::from(&payload), &options).expect("sound");
    assert_eq!((verdict.scored_rows, verdict.recomputed_rows), (6, 6));

    // The same bundle with one score changed in the file, and the index honest about the file.
    let copy = tempfile::tempdir().unwrap();
    let mut changed = payload.clone();
    let entries = changed
        .get("metadata")
        .unwrap()
        .get("score_artifacts")
        .and_then(Value::as_array)
        .unwrap();
    let entries: Vec<Object> = entries
        .iter()
        .map(|entry| entry.as_object().unwrap().clone())
        .collect();
    let mut index = Vec::new();
    for (at, mut entry) in entries.into_iter().enumerate() {
        let name = entry
            .get("filename")
            .and_then(Value::as_str)
            .unwrap()
            .to_owned();
        let mut lines: Vec<String> = std::fs::read_to_string(folder.join(&name))
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect();
        if at == 0 {
            let cut = lines[1].rfind(',').unwrap();
            lines[1].replace_range(cut.., ",-0.5");
        }
        let text = lines.join("\n") + "\n";
        entry.insert("sha256", crate::canonical::sha256_hex(text.as_bytes()));
        std::fs::write(copy.path().join(name), text).unwrap();
        index.push(Value::Object(entry));
    }
    apply(
        &mut changed,
        &crate::object! {
            "op" => "set", "path" => vec!["metadata", "score_artifacts"], "value" => index,
        },
    );
    let options = Validation {
        scores: Some(copy.path()),
        ..options
    };
    let finding = validate(&Payload::from(&changed), &options).unwrap_err();
    assert_eq!(finding.rule, "recomputed_score", "{finding}");
    let finding = validate(&Payload::from(&payload), &options).unwrap_err();
    assert_eq!(finding.rule, "score_artifacts", "{finding}");
}

#[test]
fn the_bundle_of_irplag_is_valid_and_has_the_expected_scores() {
    let Some(bundle) = shared_json("interop/irplag/bundle.matheel-0.7.1.json") else {
        return;
    };
    let (document, verdict) =
        Document::accept(Payload::from(&bundle), &Validation::default()).expect("valid");
    assert_eq!(verdict.methods, 5);
    assert_eq!(
        verdict.protocol_id,
        "bdb3a9be46796ad277d6ef3e2aa312c27e5d088c4c619726fe2100dfc3e01302"
    );
    let expected = shared_json("interop/irplag/expected.json").expect("beside it");
    let expected = expected
        .get("per_dataset")
        .and_then(Value::as_array)
        .unwrap();
    assert_eq!(expected.len(), document.rows().len());
    for row in expected {
        let same = |key: &str, found: &str| text(row, key) == found;
        let found = document.rows().iter().find(|found| {
            same("dataset_name", &found.dataset_name)
                && same("algorithm_name", &found.algorithm_name)
                && same("metric", &found.metric)
        });
        assert_eq!(
            found.expect("a row").score,
            row.get("score").unwrap().as_number()
        );
    }
}
