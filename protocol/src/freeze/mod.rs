//! Freezing: a manifest and normalized datasets become a protocol (specs/matheel.md section b).

mod entry;
mod manifest;
mod notice;
#[cfg(test)]
mod tests;

pub use notice::notices;

use std::path::Path;

use crate::canonical::{Value, digest};
use crate::coerce;
use crate::frozen::{Protocol, public_form};
use crate::input::{InputError, Refusal, index};
use crate::object;
use crate::public_metadata::{check_credentials, check_public};

/// Why a manifest cannot be frozen.
pub type FreezeError = InputError;

/// The benchmark id when none is given.
pub const DEFAULT_BENCHMARK_ID: &str = "Matheel-Plagiarism-v1";

/// Freezes a manifest; relative dataset paths count from `base`.
///
/// # Errors
/// The first rule that the manifest or its data breaks, by field.
pub fn freeze(
    manifest: &Value,
    base: &Path,
    benchmark_id: Option<&str>,
) -> Result<Protocol, FreezeError> {
    let Some(fields) = manifest.as_object() else {
        let problem = format!("is {}; a manifest is an object", manifest.type_name());
        return Err(Refusal::new("", problem).into());
    };
    check_credentials(manifest)?;
    let benchmark_id = benchmark_id.unwrap_or(DEFAULT_BENCHMARK_ID);
    if benchmark_id.is_empty() {
        return Err(Refusal::new("benchmark_id", "must not be empty").into());
    }
    let domain = manifest::domain(fields)?;
    if let Some(version) = fields
        .get("schema_version")
        .filter(|version| version.truthy())
        && coerce::int(version).is_none()
    {
        return Err(Refusal::new("schema_version", "must be a whole number").into());
    }
    let policies = manifest::Policies::read(fields)?;
    let drafts = entry::read_all(fields, base, &policies)?;
    let public: Vec<Value> = drafts.iter().map(entry::Draft::public_fields).collect();
    let mut protocol = object! {
        "schema_version" => 1i64,
        "benchmark_id" => benchmark_id,
        "domain" => domain,
        "seed" => fields.get("seed").cloned(),
        "datasets" => public,
        "pair_metrics" => policies.pair_metrics,
        "retrieval_metrics" => policies.retrieval_metrics,
        "split_policy" => policies.split,
        "threshold_policy" => policies.threshold,
        "execution_policy" => policies.execution,
        "aggregation" => "macro_mean_over_all_declared_datasets_per_domain_task_metric",
        "coverage_policy" => "all_required_metrics_finite_on_every_declared_dataset",
        "evaluation_rules" => object! {
            "pair_positive_label" => 1i64,
            "pair_decision" => "score >= threshold",
            "retrieval_unjudged_relevance" => 0i64,
            "retrieval_ties" => "document_id_ascending",
            "average_precision_depth" => "full_ranking",
            "aggregation_weighting" => "equal_dataset_weight",
        },
    };
    // Before the data is read: a refusal should not take minutes.
    check_public(&protocol)?;
    let entries = drafts
        .into_iter()
        .enumerate()
        .map(|(at, draft)| draft.freeze(&index("datasets", at), &policies.group_fields))
        .collect::<Result<Vec<Value>, Refusal>>()?;
    if let Some(object) = protocol.as_object_mut() {
        object.insert("datasets", entries);
    }
    let id = digest(&public_form(&protocol));
    if let Some(object) = protocol.as_object_mut() {
        object.insert("protocol_id", id);
    }
    Protocol::from_value(&protocol, None)
}
