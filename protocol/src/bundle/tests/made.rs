//! Documents of our own making: a completed, a timed-out and an interrupted method.

use super::protocol;
use crate::bundle::{
    Artifact, Assembly, Document, Execution, Payload, Validation, assemble, cards,
    execution_failure, merge, score_csv, validate, validation_score_csv,
};
use crate::canonical::{Limits, Object, Value, digest, read};
use crate::frozen::{LoadedEntry, Protocol};
use crate::object;
use crate::outcome::Outcome;
use crate::report::{DatasetResult, Gold, MethodIdentity, Status, rows};

fn method(name: &str) -> MethodIdentity {
    let configuration =
        object! { "algorithm_options" => object! { "name" => name }, "k" => Value::Null };
    MethodIdentity {
        name: name.into(),
        id: digest(&configuration).into(),
        kind: "custom".into(),
        manifest_entry: object! {
            "name" => name, "algorithm_path" => "/home/somebody/m.py", "similarity_options" => object! {},
        },
        configuration,
    }
}

/// Scores with ties and without order.
fn some_scores(count: u64, salt: u64) -> Vec<f64> {
    (0..count)
        .map(|at| ((at * 7919 + salt) % 41) as f64 / 40.0)
        .collect()
}

/// A method that has scored the first datasets when it ended.
fn execution(
    protocol: &Protocol,
    data: &[LoadedEntry],
    name: &str,
    outcome: &Outcome,
    finished: usize,
    artifacts: &mut Vec<(Value, Vec<u8>)>,
) -> Execution {
    let method = method(name);
    let mut all = Vec::new();
    let mut thresholds = Vec::new();
    for (at, (entry, data)) in protocol.datasets().iter().zip(data).enumerate() {
        let result = if at < finished {
            let scores = some_scores(data.test.item_count(), at as u64);
            let validation = data.validation.as_ref();
            let mut file = Vec::new();
            let artifact = score_csv(&mut file, entry, &data.test, &method, &scores).unwrap();
            artifacts.push((artifact.to_value(), file));
            DatasetResult::Scored {
                scores,
                validation_scores: validation.map(|data| some_scores(data.item_count(), 5)),
                elapsed_seconds: 0.5,
            }
        } else {
            DatasetResult::Failed {
                error: outcome.error_text(1800.0).expect("not completed"),
                elapsed_seconds: 0.0,
            }
        };
        let evaluated = rows(protocol, entry, &Gold::new(entry, data), &method, &result).unwrap();
        all.extend(evaluated.rows);
        thresholds.extend(
            evaluated
                .threshold
                .map(|threshold| (entry.name.clone(), threshold)),
        );
    }
    let error = outcome.error_text(1800.0);
    let mut supervised = Object::new();
    supervised.insert("outcome", outcome.to_value());
    supervised.insert("wall_seconds", 2.5);
    supervised.insert("budget_seconds", 1800.0);
    Execution {
        failure: error.map(|error| execution_failure(&method.id, &error, 2.5)),
        method,
        rows: all,
        thresholds,
        supervised,
    }
}

fn document(
    protocol: &Protocol,
    executions: Vec<Execution>,
    artifacts: &[(Value, Vec<u8>)],
) -> Document {
    let methods: Vec<MethodIdentity> = executions.iter().map(|one| one.method.clone()).collect();
    let methods: Vec<&MethodIdentity> = methods.iter().collect();
    assemble(Assembly {
        protocol,
        cards: cards(protocol, &[], &methods),
        executions,
        score_artifacts: artifacts.iter().map(|(entry, _)| entry.clone()).collect(),
        reproducibility: object! { "schema_version" => 1i64, "created_utc" => "2026-01-02T03:04:05Z" },
        extra: Object::new(),
    })
}

fn text(document: &Document, artifact: Artifact) -> String {
    let mut bytes = Vec::new();
    document.write(artifact, "b", &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_bundle_with_partly_finished_methods_is_valid_and_says_what_is_owed_first() {
    if super::index().is_none() {
        return;
    }
    let protocol = protocol("full_fixed");
    let data = protocol.verify_data().unwrap();
    let mut files = Vec::new();
    let executions = vec![
        execution(
            &protocol,
            &data,
            "whole <b>",
            &Outcome::Completed,
            5,
            &mut files,
        ),
        execution(&protocol, &data, "slow", &Outcome::Timeout, 2, &mut files),
        execution(
            &protocol,
            &data,
            "stopped",
            &Outcome::Interrupted,
            1,
            &mut files,
        ),
    ];
    let document = document(&protocol, executions, &files);
    assert!(document.is_incomplete());
    assert_eq!(
        document.metadata().get("result_status"),
        Some(&"incomplete".into())
    );

    let folder = tempfile::tempdir().unwrap();
    for (entry, bytes) in &files {
        let name = entry.get("filename").and_then(Value::as_str).unwrap();
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let json = text(&document, Artifact::Json);
    assert_eq!(read(json.as_bytes()).unwrap(), document.payload());
    let payload = Payload::read(json.as_bytes(), Limits::default()).unwrap();
    let options = Validation {
        protocol: Some(&protocol),
        scores: Some(folder.path()),
        data: Some(&data),
    };
    let verdict = validate(&payload, &options).unwrap_or_else(|finding| panic!("{finding}"));
    assert_eq!((verdict.methods, verdict.incomplete), (3, true));
    assert_eq!(verdict.recomputed_rows, verdict.scored_rows);
    assert!(verdict.scored_rows > 0);

    // What was finished before the end keeps its scores; nothing of it is ranked over all datasets.
    let slow =
        |row: &&crate::report::AggregateRow| &*row.algorithm_name == "slow" && &*row.metric == "f1";
    let slow = document.aggregate().iter().find(slow).unwrap();
    assert_eq!(
        (slow.dataset_count, slow.status, slow.rank),
        (2, Status::Failed, None)
    );
    assert!(!json.contains("somebody"));

    let page = text(&document, Artifact::Html);
    let banner = page.find("This bundle is incomplete").unwrap();
    assert!(banner < page.find("<h2>Methods").unwrap());
    assert!(page.contains("whole &lt;b&gt;") && !page.contains("whole <b>"));
    assert!(page.contains("Used up its budget of 30 min 00 s; 2 of 5 datasets had been scored."));
    assert!(page.contains("3 methods: 1 completed, 1 failed, 1 owed another attempt."));
    assert!(page.contains("1 method failed"));
    assert!(!page.contains("<script"));
    let details = text(&document, Artifact::DetailsHtml);
    assert!(details.contains("TimeoutError: the budget of 1800.0 seconds was used up"));
    assert_eq!(text(&document, Artifact::DetailsHtml), details);
}

#[test]
fn calibrated_methods_keep_their_thresholds_through_validation_and_merge() {
    if super::index().is_none() {
        return;
    }
    let protocol = protocol("validation_mixed");
    let data = protocol.verify_data().unwrap();
    let datasets = data.len();
    let part = |name: &str| {
        let mut files = Vec::new();
        let execution = execution(
            &protocol,
            &data,
            name,
            &Outcome::Completed,
            datasets,
            &mut files,
        );
        assert!(!execution.thresholds.is_empty());
        let document = document(&protocol, vec![execution], &[]);
        let payload = Payload::from(&document.payload());
        let options = Validation {
            protocol: Some(&protocol),
            ..Validation::default()
        };
        Document::accept(payload, &options)
            .unwrap_or_else(|finding| panic!("{finding}"))
            .0
    };
    let merged = merge(&protocol, vec![part("a"), part("b")]).unwrap();
    let thresholds = merged
        .metadata()
        .get("thresholds")
        .and_then(Value::as_array)
        .unwrap();
    assert_eq!(thresholds.len(), 2);
    let of_pairs = |row: &&crate::report::Row| row.family == proctor_wire::Family::Pair;
    assert!(
        merged
            .rows()
            .iter()
            .filter(of_pairs)
            .all(|row| row.selected_threshold.is_some())
    );
    assert_eq!(
        merged.metadata().get("result_status"),
        Some(&"protocol_evaluation".into())
    );

    // Two methods of one name, letter case aside, cannot be told apart in a table.
    let refused = merge(&protocol, vec![part("Same"), part("same")]).unwrap_err();
    assert!(
        refused.to_string().contains("letter case aside"),
        "{refused}"
    );
}

/// Matheel's Levenshtein on short texts, by the plainest of algorithms.
fn levenshtein(a: &str, b: &str) -> f64 {
    let clean = |text: &str| {
        let lines: Vec<&str> = text.split('\n').map(str::trim_end).collect();
        lines.join("\n").trim().chars().collect::<Vec<char>>()
    };
    let (a, b) = (clean(a), clean(b));
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    1.0 - row[b.len()] as f64 / a.len().max(b.len()).max(1) as f64
}

#[test]
fn validation_scores_give_the_threshold_of_matheel() {
    use crate::dataset::Dataset;
    if super::index().is_none() {
        return;
    }
    let protocol = protocol("validation");
    let data = protocol.verify_data().unwrap();
    let document = super::accept("results/core_validation/core_validation.json");
    let score = |data: &Dataset| -> Vec<f64> {
        let Dataset::Pair(data) = data else {
            panic!("pairs")
        };
        let pairs = data.left.iter().zip(&data.right);
        let text = |file: &u32| &data.texts[*file as usize];
        pairs
            .map(|(left, right)| levenshtein(text(left), text(right)))
            .collect()
    };
    let (entry, data) = (&protocol.datasets()[0], &data[0]);
    let validation = data.validation.as_ref().unwrap();
    let result = DatasetResult::Scored {
        scores: score(&data.test),
        validation_scores: Some(score(validation)),
        elapsed_seconds: 1.0,
    };
    let gold = Gold::new(entry, data);
    let evaluated = rows(&protocol, entry, &gold, &method("Levenshtein"), &result).unwrap();
    let expected = document
        .rows()
        .iter()
        .filter(|row| &*row.algorithm_name == "Levenshtein");
    for expected in expected {
        let found = evaluated
            .rows
            .iter()
            .find(|row| row.metric == expected.metric)
            .unwrap();
        assert_eq!(found.score, expected.score, "{}", expected.metric);
        assert_eq!(found.selected_threshold, expected.selected_threshold);
    }
    assert_eq!(evaluated.threshold, Some(0.933_333_333_333_333_3));

    let mut bytes = Vec::new();
    let artifact = validation_score_csv(
        &mut bytes,
        entry,
        validation,
        &method("x"),
        &score(validation),
    )
    .unwrap();
    assert!(
        artifact.filename.ends_with("_pair_validation.csv"),
        "{}",
        artifact.filename
    );
    assert_eq!(artifact.rows, validation.item_count());
}
