//! What a manifest says that freezing takes otherwise than it reads. Matheel passes over all of it, so none of it is an
//! error; a person should know of it all the same.

use super::manifest::first_metrics;
use crate::canonical::{Object, Value, canonical};
use crate::coerce;
use crate::input::{Refusal, index, member};

/// Keys of a manifest. `schema_version` and `name` are allowed and change nothing.
const MANIFEST_KEYS: &[&str] = &[
    "datasets",
    "domain",
    "execution_policy",
    "name",
    "pair_metric",
    "pair_metrics",
    "retrieval_metric",
    "retrieval_metrics",
    "schema_version",
    "seed",
    "split_policy",
    "threshold_policy",
];

/// Keys of a dataset.
const DATASET_KEYS: &[&str] = &[
    "adapter",
    "domain",
    "identifier",
    "k",
    "kind",
    "name",
    "path",
    "selection",
    "similarity_options",
    "source",
    "source_checksum",
    "source_revision",
    "source_url",
    "split",
    "task",
    "task_family",
    "task_type",
    "validation_path",
    "validation_split",
];

/// Keys of the policies; others are kept in the protocol and do nothing.
const POLICIES: &[(&str, &[&str])] = &[
    (
        "execution_policy",
        &[
            "max_method_seconds",
            "max_memory_bytes",
            "max_processes",
            "max_scratch_bytes",
            "max_output_bytes",
            "grace_seconds",
            "cpus",
        ],
    ),
    ("split_policy", &["type", "description", "group_fields"]),
    ("threshold_policy", &["mode", "value"]),
];

/// Everything in a manifest that has no effect, or another one than it seems to have. The manifest is one that
/// [`super::freeze`] accepts; of others, only what can be told is told.
pub fn notices(manifest: &Value) -> Vec<Refusal> {
    let mut notices = Notices(Vec::new());
    let Some(manifest) = manifest.as_object() else {
        return notices.0;
    };
    notices.unknown(manifest, "", MANIFEST_KEYS, "was ignored");
    for (key, known) in POLICIES {
        match manifest.get(key) {
            Some(Value::Object(policy)) if !policy.is_empty() => {
                notices.unknown(
                    policy,
                    key,
                    known,
                    "is kept in the protocol, but does nothing",
                );
            }
            Some(empty) if !empty.truthy() && !empty.is_null() => {
                notices.add(*key, "is empty, so the default stands");
            }
            _ => {}
        }
    }
    notices.number(
        manifest.get("execution_policy"),
        "execution_policy",
        "max_method_seconds",
    );
    if mode(manifest) != "validation_f1" {
        notices.number(
            manifest.get("threshold_policy"),
            "threshold_policy",
            "value",
        );
    }
    notices.metrics(manifest, ["pair_metrics", "pair_metric"], "f1");
    let default = "mean_average_precision";
    notices.metrics(manifest, ["retrieval_metrics", "retrieval_metric"], default);
    let datasets = manifest.get("datasets").and_then(Value::as_array);
    for (at, item) in datasets.unwrap_or_default().iter().enumerate() {
        if let Some(item) = item.as_object() {
            notices.dataset(
                item,
                &index("datasets", at),
                mode(manifest) == "validation_f1",
            );
        }
    }
    notices.0
}

fn mode(manifest: &Object) -> &str {
    let policy = manifest.get("threshold_policy");
    let mode = policy.and_then(|policy| policy.get("mode")?.as_str());
    mode.unwrap_or("fixed")
}

struct Notices(Vec<Refusal>);

impl Notices {
    fn add(&mut self, field: impl Into<String>, problem: impl Into<String>) {
        self.0.push(Refusal::new(field, problem));
    }

    fn unknown(&mut self, object: &Object, field: &str, known: &[&str], what: &str) {
        for key in object.keys().filter(|key| !known.contains(key)) {
            let problem = format!(
                "is not a key here and {what}; the keys are {}",
                known.join(", ")
            );
            self.add(member(field, key), problem);
        }
    }

    /// A number that was written as something else.
    fn number(&mut self, policy: Option<&Value>, field: &str, key: &str) {
        let given = policy.and_then(|policy| policy.get(key));
        if let Some(given @ (Value::Bool(_) | Value::String(_))) = given
            && let Some(number) = coerce::finite(given)
        {
            let number = crate::canonical::float_text(number);
            let problem = format!("is {}, which was read as {number}", canonical(given));
            self.add(member(field, key), problem);
        }
    }

    fn metrics(&mut self, manifest: &Object, keys: [&'static str; 2], default: &str) {
        let used = first_metrics(manifest, keys).map(|(key, _)| key);
        for key in keys {
            match (manifest.get(key), used) {
                (None | Some(Value::Null), _) => {}
                (Some(given), None) if !given.truthy() => {
                    self.add(key, format!("is empty, so the default stands: {default}"));
                }
                (Some(_), Some(used)) if used != key => {
                    self.add(key, format!("was ignored, because there is {used} too"));
                }
                _ => {}
            }
        }
    }

    fn dataset(&mut self, item: &Object, field: &str, validation_f1: bool) {
        self.unknown(item, field, DATASET_KEYS, "was ignored");
        match item.get("k") {
            None | Some(Value::Null | Value::Int(1..)) => {}
            Some(k) => {
                let read = if k.truthy() { coerce::int(k) } else { Some(10) };
                if let Some(read) = read {
                    let problem = format!("is {}, which was read as {read}", canonical(k));
                    self.add(member(field, "k"), problem);
                }
            }
        }
        let is_pair = ["task", "task_family", "kind"]
            .iter()
            .find_map(|key| item.get(key).filter(|value| value.truthy()))
            .and_then(coerce::text)
            .is_some_and(|family| {
                family.to_lowercase().contains("classif") || family.to_lowercase().trim() == "pair"
            });
        for key in ["validation_path", "validation_split"] {
            if item.get(key).is_some_and(Value::truthy) && !(is_pair && validation_f1) {
                let problem = "was ignored: only pair datasets under threshold_policy.mode validation_f1 are calibrated";
                self.add(member(field, key), problem);
            }
        }
        if item
            .get("name")
            .is_some_and(|name| name.truthy() && name.as_str().is_none())
        {
            self.add(member(field, "name"), "is not a text and was read as one");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::read;

    fn told(manifest: &str) -> Vec<String> {
        let notices = notices(&read(manifest.as_bytes()).unwrap());
        notices.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_plain_manifest_gives_no_notice() {
        let manifest = r#"{"name": "n", "schema_version": 1, "seed": 3, "pair_metrics": ["f1"],
            "threshold_policy": {"mode": "validation_f1"}, "execution_policy": {"max_method_seconds": 60},
            "datasets": [{"task": "pair", "name": "a", "path": "d", "k": 5, "validation_path": "v",
            "validation_split": "dev"}]}"#;
        assert_eq!(told(manifest), Vec::<String>::new());
    }

    #[test]
    fn misspelt_keys_are_named_at_every_level() {
        let told = told(
            r#"{"pair_metircs": 1, "execution_policy": {"max_method_second": 5}, "datasets": [{"Path": "x"}]}"#,
        );
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(
            told[0].starts_with("pair_metircs: is not a key here and was ignored"),
            "{told:?}"
        );
        assert!(
            told[1].starts_with("execution_policy.max_method_second: "),
            "{told:?}"
        );
        assert!(told[2].starts_with("datasets[0].Path: "), "{told:?}");
    }

    #[test]
    fn values_that_are_read_as_others_are_told() {
        let cases = [
            (
                r#"{"datasets": [{"k": 0}]}"#,
                "datasets[0].k: is 0, which was read as 10",
            ),
            (
                r#"{"datasets": [{"k": 1.5}]}"#,
                "datasets[0].k: is 1.5, which was read as 1",
            ),
            (
                r#"{"datasets": [{"k": true}]}"#,
                "datasets[0].k: is true, which was read as 1",
            ),
            (
                r#"{"datasets": [{"k": "7"}]}"#,
                "datasets[0].k: is \"7\", which was read as 7",
            ),
            (
                r#"{"execution_policy": {"max_method_seconds": "60"}}"#,
                "execution_policy.max_method_seconds: is \"60\", which was read as 60.0",
            ),
            (
                r#"{"threshold_policy": {"mode": "fixed", "value": true}}"#,
                "threshold_policy.value: is true, which was read as 1.0",
            ),
            (
                r#"{"pair_metrics": []}"#,
                "pair_metrics: is empty, so the default stands: f1",
            ),
            (
                r#"{"pair_metrics": ["f1"], "pair_metric": "auroc"}"#,
                "pair_metric: was ignored, because there is pair_metrics too",
            ),
            (
                r#"{"split_policy": []}"#,
                "split_policy: is empty, so the default stands",
            ),
            (
                r#"{"datasets": [{"task": "ranking", "validation_path": "v"}]}"#,
                "datasets[0].validation_path: was ignored: only pair datasets under threshold_policy.mode \
                 validation_f1 are calibrated",
            ),
        ];
        for (manifest, notice) in cases {
            assert_eq!(told(manifest), [notice]);
        }
    }
}
