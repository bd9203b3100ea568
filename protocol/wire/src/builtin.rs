//! Which Matheel configurations the built-in worker scores, and with what settings.
//!
//! The rule lives here, below both the supervisor and the worker: the supervisor refuses by it before a run starts,
//! the worker reads its settings by it, and the two cannot disagree. The meaning of every option is Matheel 0.7.1's
//! (specs/matheel.md sections c and k); an option that an inactive scorer would use is checked no further than
//! Matheel checks it.

mod python;
mod weights;

use serde_json::Value;

pub use weights::{Feature, Weights};

/// The largest `static_vector_dim` that is scored: a vector of this size takes 8 MiB a text.
pub const MAX_STATIC_DIMENSION: usize = 1 << 20;

/// The largest single Levenshtein weight that is scored; distances of any text then fit 64 bits.
pub const MAX_LEVENSHTEIN_WEIGHT: u64 = u32::MAX as u64;

/// Why a configuration is not scored by the built-in worker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Sound, but it needs a model, a parser or somebody's code.
    #[error("needs an external worker: {0}")]
    External(String),
    /// Matheel itself would refuse to score with it.
    #[error("invalid configuration: {0}")]
    Invalid(String),
}

fn external(what: impl Into<String>) -> Refusal {
    Refusal::External(what.into())
}

fn invalid(what: impl Into<String>) -> Refusal {
    Refusal::Invalid(what.into())
}

/// How a text is changed before anything looks at it (`preprocess_mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preprocess {
    /// Newlines unified, lines stripped on the right, the text on both sides.
    None,
    /// As `None`, then blank lines dropped.
    Normalize,
    /// Comments dropped, white space collapsed.
    Basic,
    /// As `Basic`, imports dropped, literals and identifiers replaced.
    Advanced,
}

/// How two vectors are compared (`similarity_function`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorSimilarity {
    /// Cosine, within -1 and 1.
    Cosine,
    /// Inner product.
    Dot,
    /// Minus the Euclidean distance.
    Euclidean,
    /// Minus the sum of absolute differences.
    Manhattan,
}

/// Settings of the `static_hash` vector backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaticHash {
    /// Length of a vector, at least 8.
    pub dimension: usize,
    /// Lower-case the tokens first.
    pub lowercase: bool,
    /// How vectors are compared.
    pub similarity: VectorSimilarity,
    /// Bring the score into 0..1 (`normalize_semantic_scores`).
    pub normalize: bool,
}

/// Everything the built-in worker needs to know of a configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Weights of the active features.
    pub weights: Weights,
    /// Present when the semantic feature is active.
    pub static_hash: Option<StaticHash>,
    /// How texts are prepared.
    pub preprocess: Preprocess,
    /// The method's own language; a dataset that declares one has precedence. `java` counts as none: an effective
    /// configuration cannot tell it from Matheel's default, which Matheel does not pass on when it prepares texts.
    pub code_language: Option<String>,
    /// Costs of an insertion, a deletion and a substitution.
    pub levenshtein_weights: [u64; 3],
    /// Weight of the common prefix in Jaro-Winkler, 0 to 0.25.
    pub prefix_weight: f64,
    /// Tokens in a Winnowing k-gram.
    pub winnowing_kgram: usize,
    /// Hashes in a Winnowing window.
    pub winnowing_window: usize,
    /// Tokens in the shortest tile of Greedy String Tiling.
    pub gst_min_match: usize,
}

/// Why the built-in worker cannot score a method with this effective configuration; `None` when it can.
///
/// `configuration` is the object whose digest is the method id (`similarity_options`, `algorithm_options`, ...).
pub fn unsupported(configuration: &Value) -> Option<String> {
    Settings::read(configuration)
        .err()
        .map(|refusal| refusal.to_string())
}

/// Options whose value the built-in scorers never look at; they only have to be known names.
const IGNORED: &[&str] = &[
    "model_name",
    "chunk_size",
    "chunk_overlap",
    "max_chunks",
    "chunk_language",
    "chunker_options",
    "code_metric_bidirectional",
    "crystalbleu_max_order",
    "crystalbleu_trivial_ngram_count",
    "ruby_max_order",
    "ruby_epsilon",
    "ruby_mode",
    "ruby_tokenizer",
    "ruby_denominator",
    "ruby_graph_timeout_seconds",
    "ruby_graph_use_edge_cost",
    "ruby_graph_include_leaf_edges",
    "ruby_tree_max_nodes",
    "ruby_tree_max_depth",
    "ruby_tree_max_children",
    "tsed_delete_cost",
    "tsed_insert_cost",
    "tsed_rename_cost",
    "tsed_max_nodes",
    "tsed_max_depth",
    "tsed_max_children",
    "codebertscore_model",
    "codebertscore_num_layers",
    "codebertscore_batch_size",
    "codebertscore_max_length",
    "codebertscore_device",
    "codebertscore_lang",
    "codebertscore_idf",
    "codebertscore_rescale_with_baseline",
    "codebertscore_use_fast_tokenizer",
    "codebertscore_nthreads",
    "codebertscore_verbose",
    "multivector_bidirectional",
    "device",
    "max_token_length",
    "progress",
    "progress_callback",
];

/// Options that are read here.
const READ: &[&str] = &[
    "preprocess_mode",
    "chunking_method",
    "chunk_aggregation",
    "code_metric",
    "code_metric_weight",
    "code_language",
    "codebleu_component_weights",
    "vector_backend",
    "similarity_function",
    "static_vector_dim",
    "static_vector_lowercase",
    "pooling_method",
    "feature_weights",
    "levenshtein_weights",
    "jaro_winkler_prefix_weight",
    "winnowing_kgram",
    "winnowing_window",
    "gst_min_match_length",
    "lexical_tokenizer",
    "normalize_semantic_scores",
];

/// The `similarity_options` of a configuration; an absent one has Matheel's default.
struct Options<'a>(Option<&'a serde_json::Map<String, Value>>);

impl Options<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.and_then(|options| options.get(name))
    }

    /// Text as Matheel reads it: null, "" and absence are the default; trimmed and lower-cased.
    fn word(&self, name: &str, default: &str) -> Result<String, Refusal> {
        match self.get(name) {
            None | Some(Value::Null) => Ok(default.to_owned()),
            Some(Value::String(text)) if text.is_empty() => Ok(default.to_owned()),
            Some(Value::String(text)) => Ok(python::strip(text).to_lowercase()),
            Some(_) => Err(invalid(format!("{name} must be text"))),
        }
    }

    fn positive(&self, name: &str, default: usize) -> Result<usize, Refusal> {
        self.get(name)
            .map_or(Ok(default), |value| python::positive_integer(name, value))
    }

    fn flag(&self, name: &str, default: bool) -> bool {
        self.get(name).map_or(default, python::truthy)
    }
}

impl Settings {
    /// Reads an effective configuration.
    ///
    /// # Errors
    /// [`Refusal`] with the option at fault.
    pub fn read(configuration: &Value) -> Result<Self, Refusal> {
        let whole = configuration
            .as_object()
            .ok_or_else(|| invalid("it must be an object"))?;
        if ["algorithm_sha256", "algorithm_module"]
            .iter()
            .any(|key| whole.contains_key(*key))
        {
            return Err(external("the method is custom Python code"));
        }
        let options = match whole.get("similarity_options") {
            None => Options(None),
            Some(Value::Object(map)) => Options(Some(map)),
            Some(_) => return Err(invalid("similarity_options must be an object")),
        };
        if let Some(unknown) = options
            .0
            .into_iter()
            .flat_map(serde_json::Map::keys)
            .find(|key| !READ.contains(&key.as_str()) && !IGNORED.contains(&key.as_str()))
        {
            return Err(invalid(format!("unknown similarity option `{unknown}`")));
        }
        Self::from_options(&options)
    }

    fn from_options(options: &Options<'_>) -> Result<Self, Refusal> {
        let chunking = chunking_method(options)?;
        one_of(
            options,
            "chunk_aggregation",
            "mean",
            &["mean", "max", "first"],
        )?;
        weights::check_component_weights(options.get("codebleu_component_weights"))?;
        let code_metric_weight = match options.get("code_metric_weight") {
            None => 0.0,
            Some(value) => weights::weight_value("code_metric_weight", value)?,
        };
        let levenshtein_weights = levenshtein_weights(options.get("levenshtein_weights"))?;
        let prefix_weight = prefix_weight(options.get("jaro_winkler_prefix_weight"))?;
        let winnowing_kgram = options.positive("winnowing_kgram", 5)?;
        let winnowing_window = options.positive("winnowing_window", 4)?;
        let gst_min_match = options.positive("gst_min_match_length", 5)?;
        let parser_tokens = parser_tokenizer(options)?;
        let weights = Weights::read(options.get("feature_weights"), code_metric_weight)?;
        if weights.code_metric {
            let metric = options.word("code_metric", "none")?;
            return Err(if metric.is_empty() || metric == "none" {
                invalid("code_metric_weight requires an active code_metric")
            } else {
                external(format!("code metric `{metric}`"))
            });
        }
        let semantic = static_hash(options, weights.semantic > 0.0, &chunking)?;
        if weights.semantic > 0.0
            && weights.lexical_total > 0.0
            && semantic.is_some_and(|s| !s.normalize && s.similarity != VectorSimilarity::Cosine)
        {
            return Err(invalid(
                "an unbounded similarity_function needs normalize_semantic_scores before it is combined with others",
            ));
        }
        if parser_tokens && (weights.has(Feature::Winnowing) || weights.has(Feature::Gst)) {
            return Err(external("lexical_tokenizer `parser`"));
        }
        Ok(Self {
            weights,
            static_hash: semantic,
            preprocess: preprocess(options)?,
            code_language: code_language(options.get("code_language"))?,
            levenshtein_weights,
            prefix_weight,
            winnowing_kgram,
            winnowing_window,
            gst_min_match,
        })
    }
}

fn one_of(
    options: &Options<'_>,
    name: &str,
    default: &str,
    known: &[&str],
) -> Result<String, Refusal> {
    let word = options.word(name, default)?;
    if known.contains(&word.as_str()) {
        return Ok(word);
    }
    Err(invalid(format!(
        "unknown {name} `{word}`; known are {}",
        known.join(", ")
    )))
}

fn chunking_method(options: &Options<'_>) -> Result<String, Refusal> {
    let method = one_of(
        options,
        "chunking_method",
        "none",
        &[
            "none",
            "document",
            "code",
            "chonkie_token",
            "chonkie_sentence",
            "chonkie_recursive",
            "chonkie_fast",
        ],
    )?;
    Ok(if method == "document" {
        "none".to_owned()
    } else {
        method
    })
}

fn preprocess(options: &Options<'_>) -> Result<Preprocess, Refusal> {
    let mode = one_of(
        options,
        "preprocess_mode",
        "none",
        &["none", "normalize", "basic", "advanced"],
    )?;
    Ok(match mode.as_str() {
        "normalize" => Preprocess::Normalize,
        "basic" => Preprocess::Basic,
        "advanced" => Preprocess::Advanced,
        _ => Preprocess::None,
    })
}

fn parser_tokenizer(options: &Options<'_>) -> Result<bool, Refusal> {
    let name = options.word("lexical_tokenizer", "raw")?.replace('_', "-");
    match name.as_str() {
        "raw" | "code" | "regex" | "code-metrics" => Ok(false),
        "parser" | "tree-sitter" | "parser-derived" => Ok(true),
        other => Err(invalid(format!(
            "lexical_tokenizer must be raw or parser, not `{other}`"
        ))),
    }
}

fn code_language(value: Option<&Value>) -> Result<Option<String>, Refusal> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text == "java" => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(invalid("code_language must be text")),
    }
}

fn levenshtein_weights(value: Option<&Value>) -> Result<[u64; 3], Refusal> {
    const NAME: &str = "levenshtein_weights";
    let three = || {
        invalid(format!(
            "{NAME} must hold exactly 3 values: insert, delete, substitute"
        ))
    };
    let values: Vec<Value> = match value {
        None | Some(Value::Null) => return Ok([1, 1, 1]),
        Some(Value::String(text)) if text.is_empty() => return Ok([1, 1, 1]),
        Some(Value::String(text)) => python::comma_list(text).map(Value::from).collect(),
        Some(Value::Array(values)) => values.clone(),
        Some(_) => return Err(three()),
    };
    let [insert, delete, substitute] = values.as_slice() else {
        return Err(three());
    };
    let weight = |value: &Value| {
        let weight = python::positive_integer(NAME, value)? as u64;
        if weight > MAX_LEVENSHTEIN_WEIGHT {
            return Err(invalid(format!(
                "{NAME} above {MAX_LEVENSHTEIN_WEIGHT} are not supported"
            )));
        }
        Ok(weight)
    };
    Ok([weight(insert)?, weight(delete)?, weight(substitute)?])
}

fn prefix_weight(value: Option<&Value>) -> Result<f64, Refusal> {
    let Some(value) = value else { return Ok(0.1) };
    match python::float(value) {
        Some(weight) if (0.0..=0.25).contains(&weight) => Ok(weight),
        _ => Err(invalid(
            "jaro_winkler_prefix_weight must be between 0.0 and 0.25",
        )),
    }
}

fn static_hash(
    options: &Options<'_>,
    active: bool,
    chunking: &str,
) -> Result<Option<StaticHash>, Refusal> {
    let backend = vector_backend(options)?;
    let dimension = options.positive("static_vector_dim", 256)?;
    if dimension < 8 {
        return Err(invalid("static_vector_dim must be at least 8"));
    }
    let similarity = match options.word("similarity_function", "cosine")?.as_str() {
        "cosine" | "cos" | "cos_sim" => VectorSimilarity::Cosine,
        "dot" | "dot_product" | "dot_score" => VectorSimilarity::Dot,
        "euclidean" | "euclidean_sim" | "l2" => VectorSimilarity::Euclidean,
        "manhattan" | "manhattan_sim" | "l1" => VectorSimilarity::Manhattan,
        other => return Err(invalid(format!("unknown similarity_function `{other}`"))),
    };
    one_of(
        options,
        "pooling_method",
        "mean",
        &[
            "mean",
            "avg",
            "average",
            "max",
            "cls",
            "cls_token",
            "lasttoken",
            "last_token",
            "mean_sqrt_len_tokens",
            "mean_sqrt_len",
            "weightedmean",
            "weighted_mean",
        ],
    )?;
    if !active {
        return Ok(None);
    }
    match backend {
        "static_hash" => {}
        "auto" => return Err(external("semantic similarity without a vector_backend")),
        other => return Err(external(format!("vector_backend `{other}`"))),
    }
    if chunking != "none" {
        return Err(external(format!("chunking_method `{chunking}`")));
    }
    if dimension > MAX_STATIC_DIMENSION {
        return Err(invalid(format!(
            "static_vector_dim above {MAX_STATIC_DIMENSION} is not supported"
        )));
    }
    Ok(Some(StaticHash {
        dimension,
        lowercase: options.flag("static_vector_lowercase", true),
        similarity,
        normalize: options.flag("normalize_semantic_scores", false),
    }))
}

fn vector_backend(options: &Options<'_>) -> Result<&'static str, Refusal> {
    Ok(match options.word("vector_backend", "auto")?.as_str() {
        "auto" => "auto",
        "static_hash" => "static_hash",
        "transformer"
        | "sentence-transformers"
        | "sentence_transformer"
        | "sentence_transformers"
        | "sbert" => "sentence_transformers",
        "model2vec" | "static" | "static_vector" => "model2vec",
        "pylate" | "multivector" | "multi-vector" | "multi_vector" | "late-interaction"
        | "late_interaction" | "colbert" => "multivector",
        other => return Err(invalid(format!("unknown vector_backend `{other}`"))),
    })
}

#[cfg(test)]
mod tests;
