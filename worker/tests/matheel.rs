//! Random texts scored here and by the real Matheel, to the last bit.
//!
//! `PROCTOR_MATHEEL_PYTHON` names a Python that has `matheel==0.7.1`; without it the tests say that they were skipped.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test panics when something is amiss and says what it skipped"
)]

use proctor_wire::builtin::Preprocess;
use proctor_worker::Scorer;
use proctor_worker::corpus::Corpus;
use proctor_worker::plan;
use proctor_worker::simd::Level;
use proctor_worker::text::preprocess;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

struct Oracle {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    fn start() -> Option<Self> {
        let Some(python) = std::env::var_os("PROCTOR_MATHEEL_PYTHON") else {
            println!("skipped: PROCTOR_MATHEEL_PYTHON names no Python with matheel");
            return None;
        };
        let mut command = Command::new(python);
        if adds_like_numpy() {
            command.env("OPENBLAS_CORETYPE", "SkylakeX");
        }
        let mut child = command
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Some(Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        })
    }

    fn ask(&mut self, request: &Value) -> Vec<String> {
        writeln!(self.input, "{request}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line} for {request}"))
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // It is only a test's helper; it may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// NumPy's order of additions depends on the processor; the one for AVX-512 is reproduced.
fn adds_like_numpy() -> bool {
    Level::best() == Level::Avx512
}

/// A double from Python's `float.hex`.
fn from_hex(text: &str) -> f64 {
    let (sign, text) = text
        .strip_prefix('-')
        .map_or((1.0, text), |rest| (-1.0, rest));
    let (mantissa, exponent) = text.strip_prefix("0x").unwrap().split_once('p').unwrap();
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = u64::from_str_radix(&format!("{whole}{fraction}"), 16).unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    sign * digits as f64 * 2.0_f64.powi(exponent - 4 * i32::try_from(fraction.len()).unwrap())
}

/// Options that between them use every feature.
fn all_options() -> Vec<Value> {
    let mut options: Vec<Value> = proctor_wire::builtin::Feature::ALL
        .iter()
        .map(|feature| feature.name())
        .filter(|name| !["semantic", "code_metric"].contains(name))
        .map(|name| json!({"feature_weights": {name: 1.0}}))
        .collect();
    for weights in [
        [1, 2, 3],
        [3, 1, 2],
        [2, 2, 2],
        [1, 1, 2],
        [2, 3, 4],
        [1, 5, 1],
    ] {
        options
            .push(json!({"feature_weights": {"levenshtein": 1}, "levenshtein_weights": weights}));
    }
    for kgram in [1, 2, 7] {
        options.push(json!({"feature_weights": {"winnowing": 1}, "winnowing_kgram": kgram, "winnowing_window": 3}));
        options.push(json!({"feature_weights": {"gst": 1}, "gst_min_match_length": kgram}));
    }
    options.push(json!({"feature_weights": {"gst": 1}, "gst_min_match_length": 12}));
    for function in ["cosine", "dot", "euclidean", "manhattan"] {
        for (dimension, normalize, lowercase) in [
            (256, false, true),
            (64, true, false),
            (8, false, true),
            (301, true, true),
        ] {
            options.push(json!({
                "feature_weights": {"semantic": 1},
                "vector_backend": "static_hash",
                "static_vector_dim": dimension,
                "static_vector_lowercase": lowercase,
                "normalize_semantic_scores": normalize,
                "similarity_function": function,
            }));
        }
    }
    for extra in [
        json!({"jaro_winkler_prefix_weight": 0.25, "feature_weights": {"jaro_winkler": 3}}),
        json!({"vector_backend": "static_hash"}),
        json!({"feature_weights": {"gst": 0.1, "jaro": 0.2, "lcs": 0.3, "levenshtein": 0.7, "semantic": 0.5}, "vector_backend": "static_hash"}),
        json!({"feature_weights": {"levenshtein": 0.5, "winnowing": 0.25, "gst": 0.25}, "preprocess_mode": "basic"}),
        json!({"feature_weights": {"osa": 1, "rapidfuzz_wratio": 2}, "preprocess_mode": "advanced"}),
        json!({"feature_weights": {"lcs": 1, "indel": 0}, "preprocess_mode": "normalize"}),
        json!({"feature_weights": {"lcs": 0}}),
    ] {
        options.push(extra);
    }
    options
}

/// Texts of words from a small and from a large alphabet, some near copies of others.
fn texts() -> impl Strategy<Value = Vec<String>> {
    let piece = prop_oneof![
        4 => "[a-c ]{0,12}",
        3 => "(int|if|for|x|y|\\(|\\)|;|=|\\+| |\n|[0-9]{1,3}){0,40}",
        2 => "(ab|a|b| ){0,90}",
        1 => "[\\u{80}-\\u{ff} \\u{85}\\u{a0}ab]{0,20}",
        1 => "[\\u{3b1}-\\u{3c9}\\u{4e00}-\\u{4e10}\\u{1f600}-\\u{1f604} \\u{2003}\\u{301}\\u{660}]{0,90}",
        1 => "\\PC{0,30}",
        1 => "[a-z]{60,70}",
        1 => "([a-f]{1,5}[ \n]){20,60}",
    ];
    (
        prop::collection::vec(piece, 3..9),
        prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
            2..5,
        ),
    )
        .prop_map(|(mut texts, copies)| {
            for (from, cut) in copies {
                let text = from.get(&texts).clone();
                let chars: Vec<char> = text.chars().collect();
                let at = if chars.is_empty() {
                    0
                } else {
                    cut.index(chars.len())
                };
                let (head, tail) = chars.split_at(at);
                let mut copy: String = tail.iter().collect();
                copy.extend(head.iter().rev().take(3));
                copy.extend(head);
                texts.push(copy);
                texts.push(head.iter().collect());
            }
            texts
        })
}

fn ours(options: &Value, texts: &[String], level: Level) -> Vec<f64> {
    let scorer = Scorer::from_configuration(&json!({"similarity_options": options}))
        .unwrap_or_else(|error| panic!("{error}: {options}"))
        .with_level(level);
    let corpus = Corpus::prepare(texts, scorer.settings(), None, 1);
    let count = texts.len() as u32;
    let left: Vec<u32> = (0..count)
        .flat_map(|a| (0..count).map(move |_| a))
        .collect();
    let right: Vec<u32> = (0..count).flat_map(|_| 0..count).collect();
    let mut memory = scorer.memory(&corpus);
    let mut out = vec![f64::NAN; left.len()];
    for task in plan::pairs(&corpus, &left, &right) {
        let values = scorer.score(&corpus, &mut memory, &task.tile);
        for (place, value) in task.places.into_iter().zip(values) {
            out[place as usize] = value;
        }
    }
    out
}

fn rounds(default: u32) -> u32 {
    std::env::var("PROCTOR_PROPERTY_ROUNDS").map_or(default, |text| text.parse().unwrap())
}

#[test]
fn scores_equal_matheels() {
    let Some(mut oracle) = Oracle::start() else {
        return;
    };
    let mut options = all_options();
    if !adds_like_numpy() {
        println!("skipped: vectors, since NumPy adds in another order without AVX-512");
        options.retain(|options| options.get("vector_backend").is_none());
    }
    let mut runner = TestRunner::default();
    for round in 0..rounds(12) {
        let texts = texts().new_tree(&mut runner).unwrap().current();
        let count = texts.len();
        let pairs: Vec<[usize; 2]> = (0..count)
            .flat_map(|a| (0..count).map(move |b| [a, b]))
            .collect();
        for options in &options {
            let request = json!({"texts": texts, "options": options, "pairs": pairs});
            let theirs = oracle.ask(&request);
            for level in Level::available() {
                let ours = ours(options, &texts, level);
                for ((pair, theirs), ours) in pairs.iter().zip(&theirs).zip(&ours) {
                    let theirs = from_hex(theirs);
                    assert!(
                        theirs.to_bits() == ours.to_bits(),
                        "round {round} {options} {level:?}: {ours} instead of {theirs} for {:?} and {:?}",
                        texts[pair[0]],
                        texts[pair[1]],
                    );
                }
            }
        }
    }
}

#[test]
fn preprocessing_equals_matheels() {
    let Some(mut oracle) = Oracle::start() else {
        return;
    };
    let piece = prop_oneof![
        "(\"|'|`|\\\\|\"\"\"|'''|//|#|/\\*|\\*/|--|--\\[\\[|\\]\\]|a|B| |\n|#define|1|\\.|e|\\+){0,40}",
        "(import|from|use|using|require|include|const|let|=|\\(|\\)|;|a\\.b|::|\\{|\\*|x|package|extern|crate|static|namespace|library|local|_once| |  |\n|\n|\\u{1c}|\\u{2003}){0,30}",
        "(int|Class|x|y_1|Zahl|é|<STR>|<NUM>|[0-9.eE+\\-]{1,8}|\\u{660}|\\u{661}x|²|\\u{301}|=|;| |\n){0,40}",
        "[\\PC\r\n\\u{85}\\u{1d}]{0,40}",
    ];
    let languages = [
        None,
        Some(""),
        Some("Java"),
        Some("python"),
        Some("PY "),
        Some("lua"),
        Some("php"),
        Some("objective_c"),
        Some("r"),
        Some("cobol"),
        Some("c++"),
    ];
    let mut runner = TestRunner::default();
    let texts = prop::collection::vec(piece, 40);
    for _ in 0..rounds(4) {
        let texts = texts.new_tree(&mut runner).unwrap().current();
        for (mode, name) in [
            (Preprocess::None, "none"),
            (Preprocess::Normalize, "normalize"),
            (Preprocess::Basic, "basic"),
            (Preprocess::Advanced, "advanced"),
        ] {
            for language in languages {
                let request = json!({"texts": texts, "preprocess": name, "language": language});
                let theirs = oracle.ask(&request);
                for (text, theirs) in texts.iter().zip(theirs) {
                    let ours = preprocess(text, mode, language);
                    assert_eq!(ours, theirs, "{name} {language:?} {text:?}");
                }
            }
        }
    }
}

#[test]
fn source_files_score_like_matheel() {
    let Some(mut oracle) = Oracle::start() else {
        return;
    };
    let shared = std::env::var_os("PROCTOR_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        PathBuf::from,
    );
    let mut texts = Vec::new();
    source_files(&shared.join("data/irplag/pairs"), &mut texts);
    if texts.is_empty() {
        println!("skipped: no source files in {}", shared.display());
        return;
    }
    // Spread over the cases, so that close and distant pairs occur.
    let texts: Vec<String> = texts
        .iter()
        .step_by(texts.len() / 10)
        .take(10)
        .cloned()
        .collect();
    let count = texts.len();
    let pairs: Vec<[usize; 2]> = (0..count)
        .flat_map(|a| (0..count).map(move |b| [a, b]))
        .collect();
    for options in all_options() {
        if !adds_like_numpy() && options.get("vector_backend").is_some() {
            continue;
        }
        let theirs = oracle.ask(&json!({"texts": texts, "options": options, "pairs": pairs}));
        let ours = ours(&options, &texts, Level::best());
        for ((pair, theirs), ours) in pairs.iter().zip(&theirs).zip(&ours) {
            assert_eq!(
                ours.to_bits(),
                from_hex(theirs).to_bits(),
                "{options} {pair:?}"
            );
        }
    }
}

fn source_files(folder: &Path, out: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            source_files(&path, out);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "java")
        {
            out.extend(std::fs::read_to_string(&path));
        }
    }
}
