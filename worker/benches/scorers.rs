//! Nanoseconds of processor time a pair, one thread, for every feature and instruction set, on source texts.
//!
//! Texts: the Java files of IR-Plag when `PROCTOR_SHARED` (else `../shared`) has them, else generated ones. Two shapes:
//! a query x document matrix, and pairs drawn at random. `cargo bench -p proctor-worker -- NAME` runs the features whose
//! name contains NAME.
#![allow(clippy::print_stdout, reason = "this is what a benchmark is for")]

use proctor_wire::builtin::Feature;
use proctor_worker::Scorer;
use proctor_worker::corpus::Corpus;
use proctor_worker::plan::{self, Task};
use proctor_worker::simd::Level;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A small generator of numbers, so that every run sees the same texts and pairs.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % bound
    }
}

fn files(folder: &Path, out: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            files(&path, out);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "java")
            && let Ok(text) = std::fs::read_to_string(&path)
        {
            out.push(text);
        }
    }
}

fn generated(random: &mut Random) -> Vec<String> {
    let words = [
        "int", "for", "(", ")", "{", "}", ";", "=", "+", "count", "index", "value", "return", "if",
        "\n    ",
    ];
    (0..467)
        .map(|_| {
            let mut text = String::new();
            while text.len() < 760 {
                text.push_str(words[random.below(words.len())]);
                text.push(' ');
            }
            text
        })
        .collect()
}

/// Seconds of processor time of this thread, so that a busy machine disturbs less; wall time where the system does not
/// say.
fn seconds(start: Instant) -> f64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok())
        .map_or_else(
            || start.elapsed().as_secs_f64(),
            |nanoseconds| nanoseconds / 1e9,
        )
}

fn time(scorer: &Scorer, corpus: &Corpus, tasks: &[Task]) -> (f64, f64) {
    let pairs: usize = tasks.iter().map(|task| task.tile.len()).sum();
    let mut memory = scorer.memory(corpus);
    let mut best = f64::MAX;
    let mut sum = 0.0;
    let mut rounds = 1_u32;
    let epoch = Instant::now();
    // The system counts in ticks, so a measurement takes at least 50 ms; the best of three.
    let mut measured = 0;
    while measured < 3 {
        let start = seconds(epoch);
        for _ in 0..rounds {
            sum = 0.0;
            for task in tasks {
                sum += scorer
                    .score(corpus, &mut memory, &task.tile)
                    .iter()
                    .sum::<f64>();
            }
        }
        let taken = seconds(epoch) - start;
        if taken < 0.05 {
            rounds *= 2;
            continue;
        }
        best = best.min(taken / f64::from(rounds));
        measured += 1;
    }
    (best * 1e9 / pairs as f64, sum / pairs as f64)
}

fn main() {
    let wanted = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let mut random = Random(7);
    let shared = std::env::var_os("PROCTOR_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        PathBuf::from,
    );
    let mut texts = Vec::new();
    files(&shared.join("data/irplag/pairs"), &mut texts);
    if texts.is_empty() {
        println!("IR-Plag is absent; generated texts");
        texts = generated(&mut random);
    }
    let average = texts.iter().map(String::len).sum::<usize>() / texts.len();
    println!("{} texts of {average} bytes on average", texts.len());
    let count = texts.len() as u32;
    let number = |random: &mut Random| random.below(count as usize) as u32;
    println!(
        "{:<36} {:>8} {:>12} {:>12} {:>10}",
        "feature", "level", "matrix ns", "pairs ns", "mean"
    );
    for feature in Feature::ALL {
        let name = feature.name();
        if feature == Feature::CodeMetric
            || wanted.as_ref().is_some_and(|part| !name.contains(part))
        {
            continue;
        }
        let configuration = json!({"similarity_options": {
            "feature_weights": {name: 1.0},
            "vector_backend": "static_hash",
        }});
        let Ok(scorer) = Scorer::from_configuration(&configuration) else {
            continue;
        };
        let epoch = Instant::now();
        let started = seconds(epoch);
        let corpus = Corpus::prepare(&texts, scorer.settings(), None, 1);
        let preparing = (seconds(epoch) - started) * 1e9 / f64::from(count);
        let slow = [
            Feature::DamerauLevenshtein,
            Feature::PartialRatio,
            Feature::WRatio,
        ]
        .contains(&feature)
            || name.contains("partial");
        let (queries, pairs) = if slow {
            (2, 500)
        } else {
            (60, 8 * texts.len())
        };
        let documents = plan::by_length(&corpus, queries, count);
        let rows: Vec<u32> = (0..queries).collect();
        let matrix = plan::rows(&rows, queries, &documents);
        let left: Vec<u32> = (0..pairs).map(|_| number(&mut random)).collect();
        let right: Vec<u32> = (0..pairs).map(|_| number(&mut random)).collect();
        let planned = plan::pairs(&corpus, &left, &right);
        for level in Level::available() {
            let scorer = scorer.clone().with_level(level);
            let (matrix, mean) = time(&scorer, &corpus, &matrix);
            let (pairs, _) = time(&scorer, &corpus, &planned);
            println!("{name:<36} {level:>8?} {matrix:>12.0} {pairs:>12.0} {mean:>10.6}");
        }
        println!("{name:<36} {:>8} {preparing:>12.0} ns a text", "prepare");
    }
}
