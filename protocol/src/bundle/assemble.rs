//! From the rows of supervised methods to a document.

use super::Document;
use super::owed::is_incomplete;
use super::sanitize::sanitized;
use crate::canonical::{Object, Value};
use crate::frozen::{DatasetEntry, Protocol, ThresholdPolicy};
use crate::object;
use crate::report::{MethodIdentity, Row, aggregate, expected_datasets, rank};

/// One method with everything its attempt produced.
#[derive(Debug, Clone)]
pub struct Execution {
    /// Who it is.
    pub method: MethodIdentity,
    /// Its rows for every dataset and metric of the protocol; ranks are set by [`assemble`].
    pub rows: Vec<Row>,
    /// Calibrated thresholds by dataset name.
    pub thresholds: Vec<(String, f64)>,
    /// Its entry in `metadata.execution_failures`, when something failed; see [`execution_failure`].
    pub failure: Option<Value>,
    /// Its entry in `metadata.supervised_executions`: outcome, clocks, budget, isolation. The method id is added.
    pub supervised: Object,
}

/// What a document is made of.
#[derive(Debug)]
pub struct Assembly<'a> {
    /// The protocol.
    pub protocol: &'a Protocol,
    /// The methods, in the order of the methods file.
    pub executions: Vec<Execution>,
    /// The index of score files.
    pub score_artifacts: Vec<Value>,
    /// The snapshot of machine and versions, from the records of the run.
    pub reproducibility: Value,
    /// See [`super::cards`]; `null` for none.
    pub cards: Value,
    /// More entries of `metadata`; none of them can replace one of ours.
    pub extra: Object,
}

/// An entry of `metadata.execution_failures`: the error text of [`crate::outcome::Outcome::error_text`] and the
/// supervised wall time in seconds.
pub fn execution_failure(method_id: &str, error: &str, elapsed_seconds: f64) -> Value {
    object! {
        "algorithm_id" => method_id,
        "error" => error,
        "elapsed_seconds" => elapsed_seconds,
    }
}

/// Makes a document: ranks, aggregate, metadata and manifest. It says `incomplete` when a method is owed another
/// attempt.
pub fn assemble(assembly: Assembly<'_>) -> Document {
    let protocol = assembly.protocol;
    let manifest = manifest(protocol, &assembly.executions);
    let mut configurations = Object::new();
    let (mut thresholds, mut failures, mut supervised) = (Vec::new(), Vec::new(), Vec::new());
    let mut rows = Vec::new();
    for execution in assembly.executions {
        let method = execution.method;
        for (dataset, threshold) in execution.thresholds {
            thresholds.push(object! {
                "dataset_name" => dataset,
                "algorithm_name" => method.name.clone(),
                "threshold" => threshold,
            });
        }
        failures.extend(execution.failure);
        let mut entry = execution.supervised;
        entry.insert("algorithm_id", method.id.clone());
        supervised.push(Value::Object(entry));
        configurations.insert(method.id, method.configuration);
        rows.extend(execution.rows);
    }
    rank(&mut rows);
    let aggregate = aggregate(&rows, &expected_datasets(protocol));
    let mut metadata = assembly.extra;
    let fixed = object! {
        "schema_version" => 1i64,
        "name" => protocol.benchmark_id(),
        "seed" => protocol.seed().clone(),
        "pair_metrics" => metric_names(protocol, proctor_wire::Family::Pair),
        "retrieval_metrics" => metric_names(protocol, proctor_wire::Family::Retrieval),
        "strict_coverage" => true,
        "score_artifacts" => assembly.score_artifacts,
        "benchmark_id" => protocol.benchmark_id(),
        "protocol_id" => protocol.id(),
        "domain" => protocol.domain(),
        "benchmark_protocol" => protocol.public_value(),
        "reproducibility" => assembly.reproducibility,
        "method_configurations" => configurations,
        "thresholds" => thresholds,
        "execution_failures" => failures,
        "supervised_executions" => supervised,
    };
    if let Value::Object(fixed) = fixed {
        for (key, value) in fixed.iter() {
            metadata.insert(key, value.clone());
        }
    }
    let incomplete = is_incomplete(&metadata, &rows);
    metadata.insert("result_status", result_status(incomplete));
    Document {
        metadata,
        manifest,
        cards: assembly.cards,
        rows,
        aggregate,
    }
}

/// The `result_status` of a document.
pub(super) fn result_status(incomplete: bool) -> &'static str {
    if incomplete {
        "incomplete"
    } else {
        "protocol_evaluation"
    }
}

fn metric_names(protocol: &Protocol, family: proctor_wire::Family) -> Value {
    let names = protocol.metrics(family).iter();
    Value::Array(names.map(|name| name.as_str().into()).collect())
}

/// The manifest in the form of specs/matheel.md section f, without a path of this machine.
fn manifest(protocol: &Protocol, executions: &[Execution]) -> Value {
    let datasets = protocol
        .datasets()
        .iter()
        .map(|entry| dataset(protocol, entry));
    let algorithms = executions
        .iter()
        .map(|execution| sanitized(&execution.method.manifest_entry));
    object! {
        "schema_version" => 1i64,
        "name" => protocol.benchmark_id(),
        "seed" => protocol.seed().clone(),
        "pair_metrics" => metric_names(protocol, proctor_wire::Family::Pair),
        "retrieval_metrics" => metric_names(protocol, proctor_wire::Family::Retrieval),
        "strict_coverage" => true,
        "continue_on_error" => true,
        "datasets" => datasets.collect::<Vec<Value>>(),
        "algorithms" => algorithms.collect::<Vec<Value>>(),
    }
}

fn dataset(protocol: &Protocol, entry: &DatasetEntry) -> Value {
    let threshold = match protocol.threshold() {
        ThresholdPolicy::Fixed(value) => *value,
        ThresholdPolicy::ValidationF1 => 0.5,
    };
    let k = super::columns::count_value(entry.k);
    let options = entry.value.get("similarity_options").cloned();
    object! {
        "name" => entry.name.as_str(),
        "domain" => entry.domain.as_str(),
        "task_family" => entry.family.name(),
        "threshold" => threshold,
        "k" => k.clone(),
        "exclude_self_matches" => entry.exclude_same_file,
        "similarity_options" => options.unwrap_or_else(|| object! {}),
        "spec" => object! {
            "name" => entry.name.as_str(),
            "identifier" => entry.name.as_str(),
            "domain" => entry.domain.as_str(),
            "task_type" => entry.domain.as_str(),
            "task_families" => vec![entry.family.name()],
            "threshold" => threshold,
            "k" => k,
            "exclude_self_matches" => entry.exclude_same_file,
        },
    }
}
