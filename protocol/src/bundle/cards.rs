//! Cards: what the datasets and methods of a bundle are. They describe; nothing is judged by them.

use super::sanitize::sanitized;
use crate::canonical::{Object, Value};
use crate::frozen::{DatasetEntry, Protocol};
use crate::object;
use crate::report::MethodIdentity;

/// What a dataset says of itself beyond its frozen entry.
#[derive(Debug, Clone, Default)]
pub struct DatasetCard {
    /// Its `metadata.json`.
    pub metadata: Object,
}

/// The cards of a bundle; `datasets` are in protocol order and may be fewer when nothing is known of the rest.
pub fn cards(protocol: &Protocol, datasets: &[DatasetCard], methods: &[&MethodIdentity]) -> Value {
    let blank = DatasetCard::default();
    let dataset_cards = protocol.datasets().iter().enumerate();
    object! {
        "datasets" => dataset_cards
            .map(|(at, entry)| dataset_card(entry, datasets.get(at).unwrap_or(&blank)))
            .collect::<Vec<Value>>(),
        "algorithms" => methods.iter().map(|method| method_card(method)).collect::<Vec<Value>>(),
    }
}

fn dataset_card(entry: &DatasetEntry, card: &DatasetCard) -> Value {
    let metadata = &card.metadata;
    let kind = match entry.family {
        proctor_wire::Family::Pair => "pair_classification",
        proctor_wire::Family::Retrieval => "retrieval",
    };
    let text = |value: Option<&Value>, default: &str| -> Value {
        value.and_then(Value::as_str).unwrap_or(default).into()
    };
    let counts: Object = entry
        .counts
        .iter()
        .map(|(table, count)| (table.as_str(), super::columns::count_value(*count)))
        .collect();
    let mut value = object! {
        "schema_version" => 1i64,
        "card_type" => "dataset",
        "name" => entry.name.as_str(),
        "task_family" => entry.family.name(),
        "dataset_kind" => kind,
        "task_type" => entry.domain.as_str(),
        "license" => text(metadata.get("license"), "unknown"),
        "source_url" => text(entry.value.get("source_url"), ""),
        "source_revision" => text(entry.value.get("source_revision"), ""),
        "split" => text(entry.value.get("split"), ""),
        "counts" => counts,
        "fingerprint" => object! { "source_type" => "content", "sha256" => entry.content_sha256.as_str() },
        "metadata" => sanitized(&Value::Object(metadata.clone())),
    };
    if let Some(object) = value.as_object_mut() {
        for key in ["languages", "granularity", "ground_truth"] {
            if let Some(known) = metadata.get(key) {
                object.insert(key, known.clone());
            }
        }
    }
    value
}

fn method_card(method: &MethodIdentity) -> Value {
    let part = |key: &str| {
        let value = method.manifest_entry.get(key);
        sanitized(value.unwrap_or(&Value::Object(Object::new())))
    };
    object! {
        "schema_version" => 1i64,
        "card_type" => "algorithm",
        "name" => method.name.clone(),
        "algorithm_id" => method.id.clone(),
        "algorithm_kind" => method.kind.clone(),
        "algorithm_path_name" => "",
        "algorithm_options" => part("algorithm_options"),
        "similarity_options" => part("similarity_options"),
        "fingerprint" => object! {},
        "package" => "",
        "package_version" => "",
    }
}
