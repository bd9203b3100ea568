//! The 27 presets of Matheel 0.7.1.

use crate::canonical::{Object, Value, py_lower, py_strip};

/// A preset: its name, its feature weights, and `code_metric_weight`.
type Preset = (&'static str, &'static [(&'static str, f64)], f64);

/// In Matheel's order.
const PRESETS: &[Preset] = &[
    ("Balanced", &[("semantic", 0.7), ("levenshtein", 0.3)], 0.0),
    (
        "Lexical Only",
        &[("levenshtein", 0.5), ("winnowing", 0.25), ("gst", 0.25)],
        0.0,
    ),
    ("Embedding Only", &[("semantic", 1.0)], 0.0),
    (
        "Code-Aware",
        &[
            ("semantic", 0.5),
            ("levenshtein", 0.25),
            ("code_metric", 0.25),
        ],
        0.25,
    ),
    ("Jaro-Winkler", &[("jaro_winkler", 1.0)], 0.0),
    ("Winnowing", &[("winnowing", 1.0)], 0.0),
    ("GST", &[("gst", 1.0)], 0.0),
    ("CodeBLEU", &[("code_metric", 1.0)], 1.0),
    ("Levenshtein", &[("levenshtein", 1.0)], 0.0),
    ("Damerau-Levenshtein", &[("damerau_levenshtein", 1.0)], 0.0),
    ("Optimal String Alignment (OSA)", &[("osa", 1.0)], 0.0),
    ("Hamming", &[("hamming", 1.0)], 0.0),
    ("Indel", &[("indel", 1.0)], 0.0),
    ("Longest Common Subsequence (LCS)", &[("lcs", 1.0)], 0.0),
    ("Jaro", &[("jaro", 1.0)], 0.0),
    ("Common Prefix", &[("prefix", 1.0)], 0.0),
    ("Common Postfix", &[("postfix", 1.0)], 0.0),
    ("RapidFuzz Ratio", &[("rapidfuzz_ratio", 1.0)], 0.0),
    (
        "RapidFuzz Partial Ratio",
        &[("rapidfuzz_partial_ratio", 1.0)],
        0.0,
    ),
    (
        "RapidFuzz Token Sort Ratio",
        &[("rapidfuzz_token_sort_ratio", 1.0)],
        0.0,
    ),
    (
        "RapidFuzz Token Set Ratio",
        &[("rapidfuzz_token_set_ratio", 1.0)],
        0.0,
    ),
    (
        "RapidFuzz Token Ratio",
        &[("rapidfuzz_token_ratio", 1.0)],
        0.0,
    ),
    (
        "RapidFuzz Partial Token Sort Ratio",
        &[("rapidfuzz_partial_token_sort_ratio", 1.0)],
        0.0,
    ),
    (
        "RapidFuzz Partial Token Set Ratio",
        &[("rapidfuzz_partial_token_set_ratio", 1.0)],
        0.0,
    ),
    (
        "RapidFuzz Partial Token Ratio",
        &[("rapidfuzz_partial_token_ratio", 1.0)],
        0.0,
    ),
    ("RapidFuzz WRatio", &[("rapidfuzz_wratio", 1.0)], 0.0),
    ("RapidFuzz QRatio", &[("rapidfuzz_qratio", 1.0)], 0.0),
];

/// The names of all presets.
pub fn preset_names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(name, _, _)| *name)
}

/// The name and the options of a preset; case does not matter.
pub(super) fn find(name: &str) -> Option<(&'static str, Object)> {
    let wanted = py_lower(py_strip(name));
    let (name, weights, code_metric_weight) = PRESETS
        .iter()
        .find(|(name, _, _)| py_lower(name) == wanted)?;
    let weights: Object = weights
        .iter()
        .map(|(feature, weight)| (*feature, *weight))
        .collect();
    let mut options = Object::new();
    options.insert("code_metric", "codebleu");
    options.insert("code_metric_weight", Value::Float(*code_metric_weight));
    options.insert("feature_weights", weights);
    Some((name, options))
}
