use super::*;
use serde_json::json;

fn reason(options: &Value) -> Option<String> {
    unsupported(&json!({ "similarity_options": options }))
}

fn settings(options: &Value) -> Settings {
    Settings::read(&json!({ "similarity_options": options })).unwrap()
}

#[test]
fn what_needs_a_model_a_parser_or_code_is_named() {
    for (options, what) in [
        (json!({}), "semantic similarity without a vector_backend"),
        (
            json!({"feature_weights": {"semantic": 1.0}, "vector_backend": "SBERT"}),
            "vector_backend `sentence_transformers`",
        ),
        (
            json!({"feature_weights": {"code_metric": 1.0}, "code_metric": "CodeBLEU"}),
            "code metric `codebleu`",
        ),
        (
            json!({"feature_weights": {"levenshtein": 1}, "code_metric": "tsed", "code_metric_weight": 0.25}),
            "code metric `tsed`",
        ),
        (
            json!({"feature_weights": {"gst": 1.0}, "lexical_tokenizer": "tree_sitter"}),
            "lexical_tokenizer `parser`",
        ),
        (
            json!({"feature_weights": {"semantic": 1}, "vector_backend": "static_hash", "chunking_method": "code"}),
            "chunking_method `code`",
        ),
    ] {
        assert_eq!(
            reason(&options),
            Some(format!("needs an external worker: {what}")),
            "{options}"
        );
    }
    assert_eq!(
        unsupported(&json!({"algorithm_sha256": "00", "similarity_options": {}})),
        Some("needs an external worker: the method is custom Python code".to_owned())
    );
}

#[test]
fn what_no_active_scorer_uses_does_not_matter() {
    for options in [
        json!({"feature_weights": {"levenshtein": 1}, "code_metric": "codebleu", "code_metric_weight": 0.0}),
        json!({"feature_weights": {"jaro": 1}, "lexical_tokenizer": "parser", "chunking_method": "code"}),
        json!({"feature_weights": {"lcs": 1}, "vector_backend": "colbert"}),
        json!({"feature_weights": {"semantic": 1}, "vector_backend": " static_hash ", "chunking_method": "document"}),
    ] {
        assert_eq!(reason(&options), None, "{options}");
    }
}

#[test]
fn what_matheel_refuses_is_refused() {
    for options in [
        json!({"feature_weights": {"levenstein": 1}}),
        json!({"feature_weights": {"lcs": -1}}),
        json!({"feature_weights": {"lcs": "nan"}}),
        json!({"feature_weights": {"lcs": null}}),
        json!({"feature_weights": "lcs"}),
        json!({"feature_weights": 3}),
        json!({"feature_weights": {"lcs": 1}, "levenshtein_weights": [1, 2]}),
        json!({"feature_weights": {"lcs": 1}, "levenshtein_weights": [1, 2, 0.5]}),
        json!({"feature_weights": {"lcs": 1}, "winnowing_kgram": 0}),
        json!({"feature_weights": {"lcs": 1}, "jaro_winkler_prefix_weight": 0.3}),
        json!({"feature_weights": {"lcs": 1}, "static_vector_dim": 7}),
        json!({"feature_weights": {"lcs": 1}, "preprocess_mode": "light"}),
        json!({"feature_weights": {"lcs": 1}, "lexical_tokenizer": "words"}),
        json!({"feature_weights": {"lcs": 1}, "chunking_method": "lines"}),
        json!({"feature_weights": {"lcs": 1}, "codebleu_component_weights": [1, 0, 0]}),
        json!({"feature_weights": {"lcs": 1}, "surprise": 1}),
        json!({"feature_weights": {"code_metric": 1}}),
        json!({"feature_weights": {"semantic": 1, "lcs": 1}, "vector_backend": "static_hash", "similarity_function": "l2"}),
    ] {
        let text = reason(&options).unwrap_or_default();
        assert!(
            text.starts_with("invalid configuration: "),
            "{options}: {text}"
        );
    }
}

#[test]
fn weights_are_normalised_twice_and_sorted_by_addition() {
    let read = settings(&json!({"feature_weights": {"lcs": 1.5, "levenshtein": 0.5}}));
    assert_eq!(
        read.weights.lexical,
        [(Feature::Levenshtein, 0.25), (Feature::Lcs, 0.75)]
    );
    assert_eq!(read.weights.lexical_total, 1.0);
    let read = settings(&json!({"vector_backend": "static_hash"}));
    assert_eq!(read.weights.semantic, 0.7);
    assert_eq!(read.weights.lexical_total, 0.3);
    assert_eq!(read.weights.lexical, [(Feature::Levenshtein, 1.0)]);
    let read = settings(&json!({"feature_weights": {"lcs": 1e308, "gst": 1e308}}));
    assert_eq!(
        read.weights.lexical,
        [(Feature::Gst, 0.5), (Feature::Lcs, 0.5)]
    );
    let read = settings(&json!({"feature_weights": {"lcs": 0}}));
    assert_eq!(read.weights.lexical, []);
    assert_eq!(read.weights.lexical_total, 0.0);
}

#[test]
fn forms_of_weights_and_numbers_read_like_python() {
    for weights in [
        json!("levenshtein=2, gst = 1"),
        json!(["levenshtein=2", ["gst", true]]),
        json!({"levenshtein": "2.0", " gst ": "1"}),
    ] {
        let read = settings(&json!({"feature_weights": weights}));
        assert_eq!(
            read.weights.lexical,
            [(Feature::Levenshtein, 2.0 / 3.0), (Feature::Gst, 1.0 / 3.0)]
        );
    }
    let read = settings(&json!({
        "feature_weights": {"gst": 1},
        "levenshtein_weights": "1, 2,3_0",
        "gst_min_match_length": "4.0",
        "winnowing_window": 1e300,
    }));
    assert_eq!(read.levenshtein_weights, [1, 2, 30]);
    assert_eq!(read.gst_min_match, 4);
    assert_eq!(read.winnowing_window, usize::MAX);
}
