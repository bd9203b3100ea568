//! The 60 scoring options of Matheel 0.7.1 with their defaults (specs/matheel.md section c).

use crate::canonical::{Object, Value};

/// The version that is part of every method id.
pub const MATHEEL_VERSION: &str = "0.7.1";

const INTEGERS: &[(&str, i64)] = &[
    ("chunk_overlap", 0),
    ("chunk_size", 200),
    ("codebertscore_batch_size", 16),
    ("codebertscore_max_length", 0),
    ("codebertscore_nthreads", 4),
    ("crystalbleu_max_order", 4),
    ("crystalbleu_trivial_ngram_count", 50),
    ("gst_min_match_length", 5),
    ("max_chunks", 0),
    ("ruby_max_order", 4),
    ("ruby_tree_max_children", 8),
    ("ruby_tree_max_depth", 10),
    ("ruby_tree_max_nodes", 180),
    ("static_vector_dim", 256),
    ("tsed_max_children", 8),
    ("tsed_max_depth", 10),
    ("tsed_max_nodes", 180),
    ("winnowing_kgram", 5),
    ("winnowing_window", 4),
];

const FLOATS: &[(&str, f64)] = &[
    ("code_metric_weight", 0.0),
    ("jaro_winkler_prefix_weight", 0.1),
    ("ruby_epsilon", 1e-12),
    ("ruby_graph_timeout_seconds", 1.0),
    ("tsed_delete_cost", 1.0),
    ("tsed_insert_cost", 1.0),
    ("tsed_rename_cost", 1.0),
];

const FLAGS: &[(&str, bool)] = &[
    ("code_metric_bidirectional", false),
    ("codebertscore_idf", false),
    ("codebertscore_rescale_with_baseline", false),
    ("codebertscore_use_fast_tokenizer", false),
    ("codebertscore_verbose", false),
    ("multivector_bidirectional", false),
    ("normalize_semantic_scores", false),
    ("ruby_graph_include_leaf_edges", true),
    ("ruby_graph_use_edge_cost", true),
    ("static_vector_lowercase", true),
];

const TEXTS: &[(&str, &str)] = &[
    ("chunk_aggregation", "mean"),
    ("chunk_language", "text"),
    ("chunking_method", "none"),
    ("code_language", "java"),
    ("code_metric", "none"),
    ("codebertscore_device", "auto"),
    ("codebertscore_model", "microsoft/codebert-base"),
    ("device", "auto"),
    ("lexical_tokenizer", "raw"),
    ("model_name", "huggingface/CodeBERTa-small-v1"),
    ("pooling_method", "mean"),
    ("preprocess_mode", "none"),
    ("ruby_denominator", "max"),
    ("ruby_mode", "auto"),
    ("ruby_tokenizer", "tranx"),
    ("similarity_function", "cosine"),
    ("vector_backend", "auto"),
];

const NULLS: &[&str] = &[
    "chunker_options",
    "codebertscore_lang",
    "codebertscore_num_layers",
    "codebleu_component_weights",
    "feature_weights",
    "levenshtein_weights",
    "max_token_length",
];

/// Every option with its default.
pub(super) fn similarity_options() -> Object {
    fn entries<T: Into<Value> + Copy>(
        table: &'static [(&'static str, T)],
    ) -> impl Iterator<Item = (&'static str, Value)> {
        table.iter().map(|(name, value)| (*name, (*value).into()))
    }
    entries(INTEGERS)
        .chain(entries(FLOATS))
        .chain(entries(FLAGS))
        .chain(entries(TEXTS))
        .chain(NULLS.iter().map(|name| (*name, Value::Null)))
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_are_sixty() {
        assert_eq!(super::similarity_options().len(), 60);
    }
}
