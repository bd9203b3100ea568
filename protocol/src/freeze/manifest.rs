//! The rules of a manifest as a whole.

use crate::canonical::{Object, Value, py_lower, py_strip};
use crate::coerce;
use crate::frozen::ExecutionLimits;
use crate::frozen::check::{DOMAIN, PAIR_METRICS, RETRIEVAL_METRICS};
use crate::frozen::data::group_fields;
use crate::input::{Refusal, index, member};

/// The budget of a manifest that sets none, in seconds.
const DEFAULT_SECONDS: f64 = 1800.0;

/// The threshold of a manifest that sets none.
const DEFAULT_THRESHOLD: f64 = 0.5;

/// The domain, of which there is one.
pub(super) fn domain(manifest: &Object) -> Result<&'static str, Refusal> {
    let domain = match manifest.get("domain").filter(|domain| domain.truthy()) {
        None => Some(DOMAIN.to_owned()),
        Some(domain) => coerce::text(domain).map(|domain| py_lower(py_strip(&domain))),
    };
    match domain {
        Some(domain) if domain == DOMAIN => Ok(DOMAIN),
        _ => Err(Refusal::new(
            "domain",
            format!("must be {DOMAIN} or be left out"),
        )),
    }
}

/// What a manifest says of the whole benchmark, normalized.
pub(super) struct Policies {
    pub(super) pair_metrics: Vec<String>,
    pub(super) retrieval_metrics: Vec<String>,
    pub(super) split: Object,
    pub(super) threshold: Object,
    pub(super) execution: Object,
    /// Validation data is needed for pair datasets.
    pub(super) validation_f1: bool,
    pub(super) group_fields: Vec<String>,
}

impl Policies {
    pub(super) fn read(manifest: &Object) -> Result<Self, Refusal> {
        let (split, group_fields) = split(policy(manifest, "split_policy")?)?;
        let threshold = threshold(policy(manifest, "threshold_policy")?)?;
        Ok(Self {
            pair_metrics: metrics(
                manifest,
                ["pair_metrics", "pair_metric"],
                PAIR_METRICS,
                "f1",
            )?,
            retrieval_metrics: metrics(
                manifest,
                ["retrieval_metrics", "retrieval_metric"],
                RETRIEVAL_METRICS,
                "mean_average_precision",
            )?,
            split,
            validation_f1: threshold.get("mode").and_then(Value::as_str) == Some("validation_f1"),
            threshold,
            execution: execution(policy(manifest, "execution_policy")?)?,
            group_fields,
        })
    }
}

/// A policy object to be completed; `None` for a value that Python takes for absent.
fn policy(manifest: &Object, key: &str) -> Result<Option<Object>, Refusal> {
    match manifest.get(key).filter(|policy| policy.truthy()) {
        None => Ok(None),
        Some(Value::Object(policy)) => Ok(Some(policy.clone())),
        Some(other) => {
            let problem = format!("is {}; it must be an object", other.type_name());
            Err(Refusal::new(key, problem))
        }
    }
}

/// The first of the keys that says anything, and what it says.
pub(super) fn first_metrics<'a>(
    manifest: &'a Object,
    keys: [&'static str; 2],
) -> Option<(&'static str, &'a Value)> {
    keys.into_iter()
        .find_map(|key| Some((key, manifest.get(key).filter(|value| value.truthy())?)))
}

/// Metric names from the first key that says anything, lower-cased, each once in the order given.
fn metrics(
    manifest: &Object,
    keys: [&'static str; 2],
    known: &[&str],
    default: &str,
) -> Result<Vec<String>, Refusal> {
    let Some((field, given)) = first_metrics(manifest, keys) else {
        return Ok(vec![default.to_owned()]);
    };
    let names = match given {
        Value::String(_) => std::slice::from_ref(given),
        Value::Array(names) => names,
        other => {
            let problem = format!(
                "is {}; it must be a metric or a list of them",
                other.type_name()
            );
            return Err(Refusal::new(field, problem));
        }
    };
    let mut found: Vec<String> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let metric = name.as_str().map(|name| py_lower(py_strip(name)));
        let Some(metric) = metric.filter(|metric| known.contains(&metric.as_str())) else {
            let name = coerce::text(name).unwrap_or_else(|| name.type_name().to_owned());
            let problem = format!("{name:?} is not one of {}", known.join(", "));
            return Err(Refusal::new(index(field, at), problem));
        };
        if !found.contains(&metric) {
            found.push(metric);
        }
    }
    Ok(found)
}

fn split(policy: Option<Object>) -> Result<(Object, Vec<String>), Refusal> {
    let mut split = policy.unwrap_or_default();
    for (key, default) in [
        ("type", Value::from("provided_test")),
        (
            "description",
            "Evaluate the frozen supplied split; never select thresholds on its labels.".into(),
        ),
        ("group_fields", Value::Array(Vec::new())),
    ] {
        if !split.contains_key(key) {
            split.insert(key, default);
        }
    }
    let disjoint = match split.get("type").and_then(Value::as_str) {
        Some("provided_test") => false,
        Some("group_disjoint") => true,
        _ => {
            let problem = "must be provided_test or group_disjoint";
            return Err(Refusal::new("split_policy.type", problem));
        }
    };
    let fields = group_fields(Some(&Value::Object(split.clone())))?;
    if disjoint && fields.is_empty() {
        let problem =
            "is empty; group_disjoint needs the columns of files.csv that hold the groups";
        return Err(Refusal::new("split_policy.group_fields", problem));
    }
    Ok((split, fields))
}

fn threshold(policy: Option<Object>) -> Result<Object, Refusal> {
    let mut threshold = policy.unwrap_or_else(|| [("mode", "fixed")].into_iter().collect());
    match threshold.get("mode").and_then(Value::as_str) {
        Some("validation_f1") => Ok(threshold),
        Some("fixed") => {
            let value = match threshold.get("value") {
                None => Some(DEFAULT_THRESHOLD),
                Some(value) => coerce::finite(value),
            };
            let value = value.ok_or_else(|| {
                Refusal::new(
                    "threshold_policy.value",
                    "must be a finite number, such as 0.5",
                )
            })?;
            threshold.insert("value", Value::Float(value));
            Ok(threshold)
        }
        _ => Err(Refusal::new(
            "threshold_policy.mode",
            "must be fixed or validation_f1",
        )),
    }
}

fn execution(policy: Option<Object>) -> Result<Object, Refusal> {
    let mut execution = policy.unwrap_or_default();
    let key = "max_method_seconds";
    let seconds = match execution.get(key) {
        None => Some(DEFAULT_SECONDS),
        Some(seconds) => coerce::finite(seconds),
    };
    let seconds = seconds.filter(|seconds| *seconds > 0.0).ok_or_else(|| {
        let problem = "must be a finite number of seconds above 0, such as 1800";
        Refusal::new(member("execution_policy", key), problem)
    })?;
    execution.insert(key, Value::Float(seconds));
    ExecutionLimits::read(&execution, "execution_policy")?;
    Ok(execution)
}
