//! Every per-pair score that Matheel wrote for a method we build in, to the last bit.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test panics when something is amiss and says what it skipped"
)]

use proctor_wire::builtin::unsupported;
use proctor_worker::corpus::Corpus;
use proctor_worker::plan;
use proctor_worker::scorer::Scorer;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

fn shared() -> PathBuf {
    std::env::var_os("PROCTOR_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        PathBuf::from,
    )
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn table(path: &Path) -> Vec<HashMap<String, String>> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

/// The texts of a dataset by file id, decoded as Matheel decodes them.
fn texts(root: &Path) -> HashMap<String, String> {
    table(&root.join("files.csv"))
        .into_iter()
        .map(|row| {
            let bytes = std::fs::read(root.join(&row["file_path"])).unwrap();
            let text: String = bytes.utf8_chunks().map(|chunk| chunk.valid()).collect();
            let text = text.replace("\r\n", "\n").replace('\r', "\n");
            (row["file_id"].trim().to_owned(), text)
        })
        .collect()
}

/// The scores of pairs of texts, as the worker computes them.
fn scores(scorer: &Scorer, pairs: &[(String, String)], language: Option<&str>) -> Vec<f64> {
    let texts: Vec<String> = pairs
        .iter()
        .flat_map(|(a, b)| [a.clone(), b.clone()])
        .collect();
    let unique: Vec<String> = texts
        .iter()
        .cloned()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let number = |text: &String| unique.binary_search(text).unwrap() as u32;
    let left: Vec<u32> = pairs.iter().map(|(a, _)| number(a)).collect();
    let right: Vec<u32> = pairs.iter().map(|(_, b)| number(b)).collect();
    let corpus = Corpus::prepare(&unique, scorer.settings(), language, 2);
    let mut memory = scorer.memory(&corpus);
    let mut out = vec![f64::NAN; pairs.len()];
    for task in plan::pairs(&corpus, &left, &right) {
        let values = scorer.score(&corpus, &mut memory, &task.tile);
        assert_eq!(values.len(), task.places.len());
        for (place, value) in task.places.into_iter().zip(values) {
            out[place as usize] = value;
        }
    }
    out
}

#[test]
fn scores_equal_the_vectors() {
    let root = shared().join("interop/matheel");
    if !root.is_dir() {
        println!("skipped: no vectors at {}", root.display());
        return;
    }
    let index = json(&root.join("index.json"));
    let (mut files, mut count, mut external) = (0, 0, BTreeSet::new());
    let mut scored_methods = BTreeSet::new();
    let mut wrong = Vec::new();
    for (run, facts) in index["runs"].as_object().unwrap() {
        let Some(folder) = facts["scores"].as_str() else {
            continue;
        };
        let folder = root.join(folder);
        let protocol_path = root
            .join("protocols")
            .join(format!("{}.json", facts["protocol"].as_str().unwrap()));
        let protocol = json(&protocol_path);
        let mut names: Vec<PathBuf> = match std::fs::read_dir(&folder) {
            Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
            Err(_) => continue,
        };
        names.sort();
        for path in names {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let parts: Vec<&str> = name.trim_end_matches(".csv").split('_').collect();
            let [dataset, method, family] = parts.as_slice() else {
                panic!("{name}")
            };
            let dataset = protocol["datasets"]
                .as_array()
                .unwrap()
                .iter()
                .find(|entry| {
                    let digest = Sha256::digest(entry["name"].as_str().unwrap());
                    // The first 12 digits, as in the file name.
                    digest[..6]
                        == (0..12)
                            .step_by(2)
                            .map(|at| u8::from_str_radix(&dataset[at..at + 2], 16).unwrap())
                            .collect::<Vec<u8>>()
                })
                .unwrap();
            let method_path = std::fs::read_dir(root.join("canonical/methods"))
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .find(|path| {
                    path.file_name()
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .starts_with(method)
                })
                .unwrap();
            let configuration = json(&method_path);
            if let Some(reason) = unsupported(&configuration) {
                external.insert(format!("{method}: {reason}"));
                continue;
            }
            let scorer = Scorer::from_configuration(&configuration).unwrap();
            let texts = texts(
                &protocol_path
                    .parent()
                    .unwrap()
                    .join(dataset["path"].as_str().unwrap()),
            );
            let (left, right) = if *family == "pair" {
                ("left_id", "right_id")
            } else {
                ("query_file_id", "document_file_id")
            };
            let rows = table(&path);
            let pairs: Vec<(String, String)> = rows
                .iter()
                .map(|row| (texts[&row[left]].clone(), texts[&row[right]].clone()))
                .collect();
            let language = dataset["similarity_options"]["code_language"].as_str();
            let ours = scores(&scorer, &pairs, language);
            files += 1;
            scored_methods.insert((*method).to_owned());
            for (row, score) in rows.iter().zip(ours) {
                count += 1;
                let expected: f64 = row["similarity_score"].parse().unwrap();
                if expected.to_bits() != score.to_bits() {
                    wrong.push(format!(
                        "{run}/{name} {} {}: {score} instead of {expected}",
                        row[left], row[right]
                    ));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count}: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(20)]
    );
    println!(
        "{count} scores of {} methods in {files} files; external: {external:?}",
        scored_methods.len()
    );
    assert!(
        count >= 4000 && scored_methods.len() >= 25,
        "{count} {scored_methods:?}"
    );
    // Only Matheel's own Python algorithms are left to an external worker.
    assert!(
        external
            .iter()
            .all(|reason| reason.ends_with("custom Python code")),
        "{external:?}"
    );
}
