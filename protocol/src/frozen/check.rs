//! Re-validation of a protocol, in the order of specs/matheel.md section b.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use proctor_wire::Family;

use super::data::excludes_same_file;
use super::{DatasetEntry, ExecutionLimits, Protocol, ProtocolError, ThresholdPolicy, public_form};
use crate::canonical::{Object, Value, digest, is_sha256};
use crate::coerce;
use crate::input::{Refusal, index, member};
use crate::public_metadata::check_public;

/// Metrics of pair datasets.
pub(crate) const PAIR_METRICS: &[&str] = &[
    "f1",
    "accuracy",
    "precision",
    "recall",
    "auroc",
    "average_precision",
];

/// Metrics of retrieval datasets.
pub(crate) const RETRIEVAL_METRICS: &[&str] = &[
    "mean_average_precision",
    "mean_reciprocal_rank",
    "ndcg_at_k",
    "precision_at_k",
    "recall_at_k",
];

/// The only domain there is.
pub(crate) const DOMAIN: &str = "plagiarism";

/// Counts above this are not exact in every reader.
const MAX_COUNT: f64 = 9_007_199_254_740_992.0;

pub(super) fn check(value: &Value, base: Option<&Path>) -> Result<Protocol, ProtocolError> {
    let protocol = value.as_object().ok_or_else(|| {
        Refusal::new(
            "",
            format!("is {}; a protocol is an object", value.type_name()),
        )
    })?;
    if protocol.get("schema_version").and_then(Value::as_number) != Some(1.0) {
        return Err(Refusal::new("schema_version", "must be 1; no other version is known").into());
    }
    let entries = match protocol.get("datasets") {
        Some(Value::Array(entries)) if !entries.is_empty() => entries,
        _ => return Err(Refusal::new("datasets", "must be a list of at least one dataset").into()),
    };
    let benchmark_id = text(protocol, "benchmark_id", "")?;
    if protocol.get("domain").and_then(Value::as_str) != Some(DOMAIN) {
        return Err(Refusal::new("domain", format!("must be {DOMAIN}")).into());
    }
    for key in ["split_policy", "evaluation_rules"] {
        object(protocol, key, "")?;
    }
    for key in ["coverage_policy", "aggregation"] {
        text(protocol, key, "")?;
    }
    let execution_policy = object(protocol, "execution_policy", "")?;
    let max_method_seconds = execution_policy
        .get("max_method_seconds")
        .and_then(coerce::finite)
        .filter(|seconds| *seconds > 0.0)
        .ok_or_else(|| {
            let field = "execution_policy.max_method_seconds";
            Refusal::new(field, "must be a finite number of seconds above 0")
        })?;
    let limits = ExecutionLimits::read(execution_policy, "execution_policy")?;
    let pair_metrics = metrics(protocol, "pair_metrics", PAIR_METRICS)?;
    let retrieval_metrics = metrics(protocol, "retrieval_metrics", RETRIEVAL_METRICS)?;
    let threshold = threshold(object(protocol, "threshold_policy", "")?)?;

    let public = public_form(value);
    check_public(&public)?;
    let id = digest(&public);
    if protocol.get("protocol_id").and_then(Value::as_str) != Some(&id) {
        let problem = format!(
            "is not the digest of the protocol, which is {id}; the file was changed after it was frozen, so freeze it anew"
        );
        return Err(Refusal::new("protocol_id", problem).into());
    }

    let mut protocol = Protocol {
        value: value.clone(),
        id,
        benchmark_id,
        domain: DOMAIN.to_owned(),
        datasets: Vec::with_capacity(entries.len()),
        pair_metrics,
        retrieval_metrics,
        threshold,
        max_method_seconds,
        limits,
    };
    if let Some(base) = base {
        resolve_paths(&mut protocol.value, base)?;
    }
    let entries = protocol.value.get("datasets").and_then(Value::as_array);
    let mut names = HashSet::new();
    for (at, value) in entries.into_iter().flatten().enumerate() {
        let field = index("datasets", at);
        let entry = dataset(value, &field)?;
        if !names.insert(entry.name.clone()) {
            let problem = format!("{:?} is the name of another dataset too", entry.name);
            return Err(Refusal::new(member(&field, "name"), problem).into());
        }
        protocol.datasets.push(entry);
    }
    Ok(protocol)
}

fn get<'a>(object: &'a Object, key: &str, field: &str) -> Result<&'a Value, Refusal> {
    object
        .get(key)
        .ok_or_else(|| Refusal::new(member(field, key), "is missing"))
}

/// A text that is not empty.
fn text(object: &Object, key: &str, field: &str) -> Result<String, Refusal> {
    match get(object, key, field)? {
        Value::String(text) if !text.is_empty() => Ok(text.to_string()),
        other => {
            let problem = format!(
                "is {}; it must be a text that is not empty",
                other.type_name()
            );
            Err(Refusal::new(member(field, key), problem))
        }
    }
}

fn object<'a>(object: &'a Object, key: &str, field: &str) -> Result<&'a Object, Refusal> {
    let value = get(object, key, field)?;
    value.as_object().ok_or_else(|| {
        let problem = format!("is {}; it must be an object", value.type_name());
        Refusal::new(member(field, key), problem)
    })
}

fn metrics(protocol: &Object, key: &str, known: &[&str]) -> Result<Vec<String>, Refusal> {
    let problem = || {
        let problem = format!("must list metrics, each once, out of {}", known.join(", "));
        Refusal::new(key, problem)
    };
    let names = get(protocol, key, "")?.as_array().ok_or_else(problem)?;
    let mut found: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let name = name
            .as_str()
            .filter(|name| known.contains(name))
            .ok_or_else(problem)?;
        if found.iter().any(|other| other == name) {
            return Err(problem());
        }
        found.push(name.to_owned());
    }
    if found.is_empty() {
        Err(problem())
    } else {
        Ok(found)
    }
}

fn threshold(policy: &Object) -> Result<ThresholdPolicy, Refusal> {
    match policy.get("mode").and_then(Value::as_str) {
        Some("validation_f1") => Ok(ThresholdPolicy::ValidationF1),
        Some("fixed") => policy
            .get("value")
            .and_then(coerce::finite)
            .map(ThresholdPolicy::Fixed)
            .ok_or_else(|| Refusal::new("threshold_policy.value", "must be a finite number")),
        _ => Err(Refusal::new(
            "threshold_policy.mode",
            "must be fixed or validation_f1",
        )),
    }
}

/// Makes the local paths of every dataset absolute.
fn resolve_paths(protocol: &mut Value, base: &Path) -> Result<(), Refusal> {
    let entries = protocol
        .as_object_mut()
        .and_then(|protocol| protocol.get_mut("datasets"))
        .and_then(Value::as_array_mut);
    for (at, entry) in entries.into_iter().flatten().enumerate() {
        for key in ["path", "validation_path"] {
            let Some(value) = entry.as_object_mut().and_then(|entry| entry.get_mut(key)) else {
                continue;
            };
            let field = member(&index("datasets", at), key);
            let Some(given) = value.as_str() else {
                return Err(Refusal::new(field, "must be the path of a folder"));
            };
            *value = resolve(base, given, &field)?.into();
        }
    }
    Ok(())
}

/// `path`, which counts from `base` when it is relative, absolute and without links where it exists.
pub(crate) fn resolve(base: &Path, path: &str, field: &str) -> Result<String, Refusal> {
    let joined = base.join(path);
    let resolved = joined
        .canonicalize()
        .or_else(|_| std::path::absolute(&joined));
    let resolved =
        resolved.map_err(|error| Refusal::new(field, format!("{}: {error}", joined.display())))?;
    match resolved.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(Refusal::new(
            field,
            format!(
                "{} is not UTF-8, so JSON cannot hold it; rename it",
                resolved.display()
            ),
        )),
    }
}

fn dataset(value: &Value, field: &str) -> Result<DatasetEntry, Refusal> {
    let entry = value.as_object().ok_or_else(|| {
        Refusal::new(
            field,
            format!("is {}; a dataset is an object", value.type_name()),
        )
    })?;
    for key in ["source_url", "source_revision", "split"] {
        get(entry, key, field)?;
    }
    let name = text(entry, "name", field)?;
    let expected_result_count = count(get(entry, "expected_result_count", field)?)
        .filter(|count| *count > 0)
        .ok_or_else(|| {
            Refusal::new(
                member(field, "expected_result_count"),
                "must be a whole number above 0",
            )
        })?;
    let code_language = code_language(object(entry, "similarity_options", field)?, field)?;
    let family = match entry.get("task_family").and_then(Value::as_str) {
        Some("pair") => Family::Pair,
        Some("retrieval") => Family::Retrieval,
        _ => {
            let field = member(field, "task_family");
            return Err(Refusal::new(field, "must be pair or retrieval"));
        }
    };
    if entry.get("domain").and_then(Value::as_str) != Some(DOMAIN) {
        let problem = format!("must be {DOMAIN}, the domain of the benchmark");
        return Err(Refusal::new(member(field, "domain"), problem));
    }
    let k = coerce::int(get(entry, "k", field)?)
        .and_then(|k| u64::try_from(k).ok())
        .filter(|k| *k > 0)
        .ok_or_else(|| Refusal::new(member(field, "k"), "must be a whole number above 0"))?;
    let content = object(entry, "content", field)?;
    let counts = counts(content, family, &member(field, "content"))?;
    let content_sha256 = fingerprint(content, &member(field, "content"))?;
    let validation_sha256 = if entry.contains_key("validation_content") {
        let content = object(entry, "validation_content", field)?;
        Some(fingerprint(content, &member(field, "validation_content"))?)
    } else {
        None
    };
    let path = |key| match entry.get(key) {
        None => Ok(None),
        Some(Value::String(path)) => Ok(Some(PathBuf::from(path.as_ref()))),
        Some(_) => Err(Refusal::new(
            member(field, key),
            "must be the path of a folder",
        )),
    };
    let selection = get(entry, "selection", field)?;
    Ok(DatasetEntry {
        name,
        domain: DOMAIN.to_owned(),
        family,
        path: path("path")?,
        validation_path: path("validation_path")?,
        content_sha256,
        counts,
        expected_result_count,
        k,
        exclude_same_file: family == Family::Retrieval && excludes_same_file(selection),
        code_language,
        validation_sha256,
        value: value.clone(),
    })
}

/// A whole number of at most 53 bits, as a number or, like Matheel, as its text.
fn count(value: &Value) -> Option<u64> {
    coerce::finite(value)
        .filter(|count| count.fract() == 0.0 && (0.0..=MAX_COUNT).contains(count))
        .map(|count| count as u64)
}

/// The language, the only similarity option a dataset may set.
pub(crate) fn code_language(options: &Object, field: &str) -> Result<Option<String>, Refusal> {
    let field = member(field, "similarity_options");
    if let Some(other) = options.keys().find(|key| *key != "code_language") {
        return Err(Refusal::new(
            member(&field, other),
            "may not be set for a dataset, which declares its code_language only; everything else belongs to the method",
        ));
    }
    match options.get("code_language") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(language)) => Ok(Some(language.to_string())),
        Some(_) => Err(Refusal::new(
            member(&field, "code_language"),
            "must be a text",
        )),
    }
}

fn fingerprint(content: &Object, field: &str) -> Result<String, Refusal> {
    content
        .get("sha256")
        .and_then(Value::as_str)
        .filter(|text| is_sha256(text))
        .map(str::to_owned)
        .ok_or_else(|| {
            Refusal::new(
                member(field, "sha256"),
                "must be 64 lower-case hexadecimal digits",
            )
        })
}

/// Rows per table; the tables that results are counted against must be there.
fn counts(content: &Object, family: Family, field: &str) -> Result<Vec<(String, u64)>, Refusal> {
    let field = member(field, "counts");
    let given = content.get("counts").and_then(Value::as_object);
    let given =
        given.ok_or_else(|| Refusal::new(field.as_str(), "must be an object of rows per table"))?;
    let needed: &[&str] = match family {
        Family::Pair => &["files", "pairs"],
        Family::Retrieval => &["files", "queries", "corpus", "qrels"],
    };
    for table in needed {
        get(given, table, &field)?;
    }
    let read = |(table, rows): (&str, &Value)| {
        let rows = count(rows)
            .ok_or_else(|| Refusal::new(member(&field, table), "must be a whole number of rows"))?;
        Ok((table.to_owned(), rows))
    };
    given.iter().map(read).collect()
}
