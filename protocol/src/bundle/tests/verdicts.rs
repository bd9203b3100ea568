//! The verdicts on edited bundles.

use super::{apply, index, payload, text};
use crate::bundle::{Document, Finding, Payload, Validation, validate};
use crate::canonical::Value;
use crate::vectors::shared_json;

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
