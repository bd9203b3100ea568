//! Merging documents of one protocol (specs/matheel.md section g).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Document;
use super::assemble::result_status;
use crate::canonical::{Object, Value, caseless, py_strip};
use crate::frozen::Protocol;
use crate::object;
use crate::report::{Row, aggregate, expected_datasets, rank};

/// Why documents cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// There are none.
    #[error("at least one bundle is needed")]
    Nothing,
    /// One was made under another protocol.
    #[error(
        "bundle {part} was made under protocol {found}, not {expected}; only results of one protocol can be merged"
    )]
    Protocol {
        /// Which part, from 1.
        part: usize,
        /// Its protocol id.
        found: String,
        /// The protocol id of the merge.
        expected: String,
    },
    /// A method comes twice.
    #[error(
        "method {name:?} ({id}) is in bundle {first} and again in bundle {second}; leave one of them out"
    )]
    DuplicateMethod {
        /// The method id.
        id: String,
        /// Its display name in the second.
        name: String,
        /// Part it is in, from 1.
        first: usize,
        /// Part it is in again, from 1.
        second: usize,
    },
    /// Two methods have one display name.
    #[error(
        "two methods are named {name:?} ({first_id} and {second_id}); display names must differ, letter case aside, and how accents are composed"
    )]
    DuplicateName {
        /// The name.
        name: String,
        /// A method of that name.
        first_id: String,
        /// Another one.
        second_id: String,
    },
}

/// Merges documents that were accepted under the same protocol: ranks and aggregate are computed anew.
///
/// # Errors
/// No part, a part of another protocol, a method that comes twice, or two methods of one display name.
pub fn merge(protocol: &Protocol, parts: Vec<Document>) -> Result<Document, MergeError> {
    if parts.is_empty() {
        return Err(MergeError::Nothing);
    }
    for (at, part) in parts.iter().enumerate() {
        if part.protocol_id() != protocol.id() {
            return Err(MergeError::Protocol {
                part: at + 1,
                found: part.protocol_id().to_owned(),
                expected: protocol.id().to_owned(),
            });
        }
    }
    check_methods(&parts)?;
    let metadata = merged_metadata(protocol, &parts);
    let manifest = merged_manifest(&parts);
    let cards = merged_cards(&parts);
    let mut rows: Vec<Row> = parts.into_iter().flat_map(|part| part.rows).collect();
    rank(&mut rows);
    let aggregate = aggregate(&rows, &expected_datasets(protocol));
    Ok(Document {
        metadata,
        manifest,
        cards,
        rows,
        aggregate,
    })
}

fn check_methods(parts: &[Document]) -> Result<(), MergeError> {
    let mut part_of: HashMap<Arc<str>, usize> = HashMap::new();
    let mut id_of: HashMap<String, Arc<str>> = HashMap::new();
    for (at, part) in parts.iter().enumerate() {
        let mut seen = HashSet::new();
        for row in &part.rows {
            if !seen.insert((&row.algorithm_id, &row.algorithm_name)) {
                continue;
            }
            let first = *part_of.entry(row.algorithm_id.clone()).or_insert(at);
            if first != at {
                return Err(MergeError::DuplicateMethod {
                    id: row.algorithm_id.to_string(),
                    name: row.algorithm_name.to_string(),
                    first: first + 1,
                    second: at + 1,
                });
            }
            let name = caseless(py_strip(&row.algorithm_name));
            let owner = id_of
                .entry(name)
                .or_insert_with(|| row.algorithm_id.clone());
            if *owner != row.algorithm_id {
                return Err(MergeError::DuplicateName {
                    name: row.algorithm_name.to_string(),
                    first_id: owner.to_string(),
                    second_id: row.algorithm_id.to_string(),
                });
            }
        }
    }
    Ok(())
}

/// The items of a list in the metadata.
fn list<'a>(part: &'a Document, key: &str) -> &'a [Value] {
    part.metadata
        .get(key)
        .and_then(Value::as_array)
        .unwrap_or_default()
}

fn merged_metadata(protocol: &Protocol, parts: &[Document]) -> Object {
    let mut metadata = parts
        .first()
        .map(|part| part.metadata.clone())
        .unwrap_or_default();
    let incomplete = parts.iter().any(Document::is_incomplete);
    metadata.insert("result_status", result_status(incomplete));
    metadata.insert("benchmark_protocol", protocol.public_value());
    let configurations = |part: &Document| {
        let configurations = part.metadata.get("method_configurations");
        configurations.and_then(Value::as_object).cloned()
    };
    let mut merged = Object::new();
    for part in parts.iter().filter_map(configurations) {
        for (id, configuration) in part.iter() {
            merged.insert(id, configuration.clone());
        }
    }
    metadata.insert("method_configurations", merged);
    for key in ["thresholds", "execution_failures", "score_artifacts"] {
        let items = parts.iter().flat_map(|part| list(part, key)).cloned();
        metadata.insert(key, Value::Array(items.collect()));
    }
    let environments = parts.iter().map(|part| {
        let environment = part.metadata.get("reproducibility");
        environment.cloned().unwrap_or_else(|| object! {})
    });
    metadata.insert(
        "execution_environments",
        Value::Array(environments.collect()),
    );
    let supervised = parts.iter().flat_map(supervised_executions);
    metadata.insert("supervised_executions", Value::Array(supervised.collect()));
    metadata.remove("supervised_execution");
    metadata
}

/// The supervised executions of a part, from its list or from its one object.
fn supervised_executions(part: &Document) -> Vec<Value> {
    if part
        .metadata
        .get("supervised_executions")
        .is_some_and(|list| !list.is_null())
    {
        return list(part, "supervised_executions").to_vec();
    }
    let one = part.metadata.get("supervised_execution");
    let Some(one) = one.and_then(Value::as_object).filter(|one| !one.is_empty()) else {
        return Vec::new();
    };
    let configurations = part.metadata.get("method_configurations");
    let ids = configurations.and_then(Value::as_object).into_iter();
    ids.flat_map(Object::keys)
        .map(|id| {
            let mut entry = one.clone();
            if !entry.contains_key("algorithm_id") {
                entry.insert("algorithm_id", id);
            }
            Value::Object(entry)
        })
        .collect()
}

fn items(value: &Value, key: &str) -> Vec<Value> {
    let items = value.get(key).and_then(Value::as_array);
    items.unwrap_or_default().to_vec()
}

fn merged_manifest(parts: &[Document]) -> Value {
    let first = parts.first().and_then(|part| part.manifest.as_object());
    let mut manifest = first.cloned().unwrap_or_default();
    let algorithms = parts
        .iter()
        .flat_map(|part| items(&part.manifest, "algorithms"));
    manifest.insert("algorithms", Value::Array(algorithms.collect()));
    manifest.insert("strict_coverage", true);
    Value::Object(manifest)
}

fn merged_cards(parts: &[Document]) -> Value {
    let datasets = parts.first().map(|part| items(&part.cards, "datasets"));
    let algorithms = parts
        .iter()
        .flat_map(|part| items(&part.cards, "algorithms"));
    object! {
        "datasets" => datasets.unwrap_or_default(),
        "algorithms" => algorithms.collect::<Vec<Value>>(),
    }
}
