//! Metrics from raw scores, score files, and recomputation from them.

use std::path::{Path, PathBuf};

use super::{BASE, accept, apply, index, members, payload, protocol, text};
use crate::bundle::{Payload, Validation, score_csv, validate};
use crate::canonical::{Object, Value};
use crate::dataset::Dataset;
use crate::frozen::LoadedEntry;
use crate::report::{DatasetResult, Gold, MethodIdentity, Row, Status, rank, rows};
use crate::vectors::shared;

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
        let protocol = protocol(text(run, "protocol"));
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
    let protocol = protocol(text(run, "protocol"));
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
