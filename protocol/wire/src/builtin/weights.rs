//! Feature weights: their names, reading and normalisation, in Matheel's order of additions.

use super::{Refusal, invalid, python};
use serde_json::Value;

/// A feature of the blend. The order of the variants is the order in which Matheel adds the products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are Matheel's; `name` has them")]
pub enum Feature {
    Semantic,
    Levenshtein,
    JaroWinkler,
    Winnowing,
    Gst,
    CodeMetric,
    DamerauLevenshtein,
    Osa,
    Hamming,
    Indel,
    Lcs,
    Jaro,
    Prefix,
    Postfix,
    Ratio,
    PartialRatio,
    TokenSortRatio,
    TokenSetRatio,
    TokenRatio,
    PartialTokenSortRatio,
    PartialTokenSetRatio,
    PartialTokenRatio,
    WRatio,
    QRatio,
}

impl Feature {
    /// All features in order.
    pub const ALL: [Self; 24] = [
        Self::Semantic,
        Self::Levenshtein,
        Self::JaroWinkler,
        Self::Winnowing,
        Self::Gst,
        Self::CodeMetric,
        Self::DamerauLevenshtein,
        Self::Osa,
        Self::Hamming,
        Self::Indel,
        Self::Lcs,
        Self::Jaro,
        Self::Prefix,
        Self::Postfix,
        Self::Ratio,
        Self::PartialRatio,
        Self::TokenSortRatio,
        Self::TokenSetRatio,
        Self::TokenRatio,
        Self::PartialTokenSortRatio,
        Self::PartialTokenSetRatio,
        Self::PartialTokenRatio,
        Self::WRatio,
        Self::QRatio,
    ];

    /// The name in `feature_weights`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Semantic => "semantic",
            Self::Levenshtein => "levenshtein",
            Self::JaroWinkler => "jaro_winkler",
            Self::Winnowing => "winnowing",
            Self::Gst => "gst",
            Self::CodeMetric => "code_metric",
            Self::DamerauLevenshtein => "damerau_levenshtein",
            Self::Osa => "osa",
            Self::Hamming => "hamming",
            Self::Indel => "indel",
            Self::Lcs => "lcs",
            Self::Jaro => "jaro",
            Self::Prefix => "prefix",
            Self::Postfix => "postfix",
            Self::Ratio => "rapidfuzz_ratio",
            Self::PartialRatio => "rapidfuzz_partial_ratio",
            Self::TokenSortRatio => "rapidfuzz_token_sort_ratio",
            Self::TokenSetRatio => "rapidfuzz_token_set_ratio",
            Self::TokenRatio => "rapidfuzz_token_ratio",
            Self::PartialTokenSortRatio => "rapidfuzz_partial_token_sort_ratio",
            Self::PartialTokenSetRatio => "rapidfuzz_partial_token_set_ratio",
            Self::PartialTokenRatio => "rapidfuzz_partial_token_ratio",
            Self::WRatio => "rapidfuzz_wratio",
            Self::QRatio => "rapidfuzz_qratio",
        }
    }

    fn from_name(name: &str) -> Result<Self, Refusal> {
        let name = python::strip(name);
        Self::ALL
            .into_iter()
            .find(|feature| feature.name() == name)
            .ok_or_else(|| invalid(format!("unsupported feature weight `{name}`")))
    }
}

/// Normalised weights. A score is `semantic * s + lexical_total * (w1 * f1 + w2 * f2 + ...)`, added from the left.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// Weight of the semantic feature, 0 when inactive.
    pub semantic: f64,
    /// Sum of the weights of all other active features.
    pub lexical_total: f64,
    /// The active lexical features, their weights normalised once more to sum 1, in order of addition.
    pub lexical: Vec<(Feature, f64)>,
    /// True when a code metric is active; such weights are never scored here.
    pub(super) code_metric: bool,
}

impl Weights {
    /// True when a lexical feature is active.
    pub fn has(&self, feature: Feature) -> bool {
        self.lexical.iter().any(|(other, _)| *other == feature)
    }

    /// Reads `feature_weights`: an object, a list of `name=value` texts or pairs, or one text of comma-separated
    /// entries. Sums run over the entries in the order of the value; an object comes in code point order.
    pub(super) fn read(value: Option<&Value>, code_metric_weight: f64) -> Result<Self, Refusal> {
        let mut entries = parse(value)?;
        if entries.is_empty() {
            entries = vec![(Feature::Semantic, 0.7), (Feature::Levenshtein, 0.3)];
        }
        if code_metric_weight > 0.0 && !entries.iter().any(|(f, _)| *f == Feature::CodeMetric) {
            entries.push((Feature::CodeMetric, code_metric_weight));
        }
        normalize(&mut entries);
        let semantic = entries
            .iter()
            .find(|(feature, _)| *feature == Feature::Semantic)
            .map_or(0.0, |(_, weight)| *weight);
        let mut lexical: Vec<_> = entries
            .into_iter()
            .filter(|(feature, weight)| *feature != Feature::Semantic && *weight > 0.0)
            .collect();
        let lexical_total = lexical.iter().fold(0.0, |sum, (_, weight)| sum + weight);
        normalize(&mut lexical);
        lexical.sort_by_key(|(feature, _)| *feature);
        let code_metric = lexical.iter().any(|(f, _)| *f == Feature::CodeMetric);
        Ok(Self {
            semantic,
            lexical_total,
            lexical,
            code_metric,
        })
    }
}

/// A weight: a finite number that is not negative.
pub(super) fn weight_value(name: &str, value: &Value) -> Result<f64, Refusal> {
    match python::float(value) {
        Some(weight) if weight.is_finite() && weight >= 0.0 => Ok(weight),
        _ => Err(invalid(format!(
            "{name} must be a finite number that is not negative"
        ))),
    }
}

fn parse(value: Option<&Value>) -> Result<Vec<(Feature, f64)>, Refusal> {
    let mut entries: Vec<(Feature, f64)> = Vec::new();
    let mut add = |name: &str, value: &Value| {
        let feature = Feature::from_name(name)?;
        let weight = weight_value(feature.name(), value)?;
        match entries.iter_mut().find(|(other, _)| *other == feature) {
            Some(entry) => entry.1 = weight,
            None => entries.push((feature, weight)),
        }
        Ok(())
    };
    let add_text = |text: &str, add: &mut dyn FnMut(&str, &Value) -> Result<(), Refusal>| {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            invalid(format!(
                "feature weight entries must look like name=value, not `{text}`"
            ))
        })?;
        add(name, &Value::from(python::strip(value)))
    };
    match value {
        None | Some(Value::Null) => {}
        Some(Value::Object(map)) => {
            for (name, value) in map {
                add(name, value)?;
            }
        }
        Some(Value::String(text)) => {
            for part in python::comma_list(text) {
                add_text(part, &mut add)?;
            }
        }
        Some(Value::Array(items)) => {
            for item in items {
                match item {
                    Value::String(text) => add_text(text, &mut add)?,
                    Value::Array(pair) => match pair.as_slice() {
                        [Value::String(name), value] => add(name, value)?,
                        _ => return Err(invalid("feature_weights entries must be name and value")),
                    },
                    _ => return Err(invalid("feature_weights entries must be name and value")),
                }
            }
        }
        Some(_) => return Err(invalid("feature_weights must be an object")),
    }
    Ok(entries)
}

/// Divides by the sum. Finite weights can overflow when added; dividing by the largest first keeps their ratios.
fn normalize(entries: &mut [(Feature, f64)]) {
    let sum =
        |entries: &[(Feature, f64)]| entries.iter().fold(0.0, |sum, (_, weight)| sum + weight);
    let mut total: f64 = sum(entries);
    if total <= 0.0 {
        for entry in entries {
            entry.1 = 0.0;
        }
        return;
    }
    if !total.is_finite() {
        let largest = entries
            .iter()
            .fold(0.0_f64, |most, entry| most.max(entry.1));
        for entry in &mut *entries {
            entry.1 /= largest;
        }
        total = sum(entries);
    }
    for entry in entries {
        entry.1 /= total;
    }
}

/// Matheel checks these even when no CodeBLEU is active.
pub(super) fn check_component_weights(value: Option<&Value>) -> Result<(), Refusal> {
    let wrong = || {
        invalid("codebleu_component_weights must be 4 numbers, not negative, with a positive sum")
    };
    let values: Vec<Value> = match value {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::String(text)) if text.is_empty() => return Ok(()),
        Some(Value::String(text)) => python::comma_list(text).map(Value::from).collect(),
        Some(Value::Array(values)) => values.clone(),
        Some(_) => return Err(wrong()),
    };
    let numbers: Vec<f64> = values
        .iter()
        .map(|value| python::float(value).ok_or_else(wrong))
        .collect::<Result<_, _>>()?;
    let total: f64 = numbers.iter().sum();
    let sound = numbers.len() == 4
        && numbers.iter().all(|n| n.is_finite() && *n >= 0.0)
        && total.is_finite()
        && total > 0.0;
    if sound { Ok(()) } else { Err(wrong()) }
}
