//! Blindness: a worker that writes down everything it can see has learned nothing it should not know.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::args;
use crate::support::bench::Bench;
use crate::support::proctor;
use crate::support::record::{Record, run_recorders};
use crate::support::{json, repository, tree};

/// Everything that names a thing of the fixtures: ids, paths, groups, dataset names, columns.
fn needles() -> BTreeSet<String> {
    let fixtures = repository().join("fixtures");
    let mut needles = BTreeSet::new();
    for (name, bytes) in tree(&fixtures) {
        if Path::new(&name)
            .extension()
            .is_some_and(|extension| extension == "csv")
        {
            let text = String::from_utf8(bytes).expect("text");
            needles.extend(
                text.lines()
                    .flat_map(|line| line.split(','))
                    .map(str::to_owned),
            );
        } else {
            needles.insert(name.rsplit('/').next().expect("a name").to_owned());
        }
    }
    for manifest in ["manifest.json", "manifest.validation.json"] {
        for dataset in json(&fixtures.join(manifest))["datasets"]
            .as_array()
            .expect("datasets")
        {
            for key in [
                "name",
                "path",
                "source_url",
                "source_revision",
                "split",
                "validation_split",
            ] {
                needles.extend(dataset[key].as_str().map(str::to_owned));
            }
        }
    }
    needles.insert(fixtures.to_string_lossy().into_owned());
    // A worker may know the task family and the language.
    for allowed in ["retrieval", "language", "python", "java"] {
        needles.remove(allowed);
    }
    // Words that the programs themselves use say nothing.
    let sources: String = tree(&fixtures)
        .into_iter()
        .filter(|(name, _)| name.contains("/files/"))
        .map(|(_, bytes)| String::from_utf8(bytes).expect("text"))
        .collect();
    needles.retain(|needle| needle.len() > 2 && !sources.contains(needle.as_str()));
    needles
}

#[test]
fn a_worker_learns_texts_and_numbers_and_nothing_else() {
    let bench = Bench::of(
        &repository().join("fixtures/manifest.validation.json"),
        |m| {
            let retrieval =
                json(&repository().join("fixtures/manifest.json"))["datasets"][2].clone();
            let mut retrieval = retrieval;
            retrieval["path"] = json!(repository().join("fixtures/retrieval"));
            m["datasets"]
                .as_array_mut()
                .expect("datasets")
                .push(retrieval);
            m["execution_policy"]["max_method_seconds"] = json!(20);
        },
    );
    let mut run = run_recorders(&bench, &["one", "two"], &[]);
    run.env("PROCTOR_TEST_SECRET", "the answer key");
    proctor::finish(run).exits(0);

    let (one, two) = (Record::of(&bench, "one"), Record::of(&bench, "two"));
    let needles = needles();
    assert!(
        needles.contains("py-primes-original") && needles.contains("label"),
        "{needles:?}"
    );
    for record in [&one, &two] {
        for line in &record.lines {
            for needle in &needles {
                assert!(!line.contains(needle.as_str()), "{needle:?} is in {line}");
            }
            for secret in ["Secret Method", "the answer key", "PROCTOR_TEST_SECRET"] {
                assert!(!line.contains(secret), "{secret:?} is in {line}");
            }
        }
        // Two test sets, a validation set for each of them, and the retrieval set: five datasets with no name.
        let messages = record.messages();
        assert_eq!(messages[0]["datasets"], 5);
        assert_eq!(
            messages.iter().filter(|m| m["type"] == "dataset").count(),
            5
        );
        // Nothing is open but the three pipes and the directory that was being listed.
        assert_eq!(
            record.about("descriptor").count(),
            4,
            "{:#?}",
            record.lines.last()
        );
        // Its own empty directory.
        assert_eq!(record.about("file").count(), 0);
    }

    // Every text arrives, in an order that is neither that of the files nor the same for two methods.
    let sources = |folder: &str| -> Vec<String> {
        let files = tree(&repository().join("fixtures").join(folder).join("files"));
        files
            .into_values()
            .map(|b| String::from_utf8(b).expect("text").trim_end().to_owned())
            .collect()
    };
    let folders = [
        "python_pairs",
        "java_pairs",
        "retrieval",
        "validation_pairs",
        "validation_pairs",
    ];
    let mut frozen: Vec<String> = folders.into_iter().flat_map(sources).collect();
    // The retrieval set puts each of its queries once more, as a query.
    for (name, bytes) in tree(&repository().join("fixtures/retrieval/files")) {
        if name.contains("disguised") {
            frozen.push(
                String::from_utf8(bytes)
                    .expect("text")
                    .trim_end()
                    .to_owned(),
            );
        }
    }
    let trimmed = |record: &Record| -> Vec<String> {
        record
            .texts()
            .iter()
            .map(|text| text.trim_end().to_owned())
            .collect()
    };
    let (first, second) = (trimmed(&one), trimmed(&two));
    assert_ne!(first, frozen);
    assert_ne!(first, second);
    let sorted = |mut texts: Vec<String>| {
        texts.sort();
        texts
    };
    frozen.sort();
    assert_eq!(sorted(first), frozen);
    assert_eq!(sorted(second), frozen);
}

#[test]
fn the_order_hides_who_is_who_but_not_the_scores() {
    // Two methods that score alike are asked in different orders and end with the same rows.
    let bench = Bench::fixtures(20.0);
    let mut other = bench.rogue("good", &["unused"]);
    other["name"] = json!("other");
    bench
        .run(&[bench.rogue::<&str>("good", &[]), other])
        .exits(0);
    let bundle = bench.bundle();
    let scores = |name: &str| -> Vec<Value> {
        let rows = bundle.rows_of(name);
        let mut rows: Vec<_> = rows
            .iter()
            .map(|r| json!([r["dataset_name"], r["metric"], r["score"], r["rank"]]))
            .collect();
        rows.sort_by_key(ToString::to_string);
        rows
    };
    assert_eq!(scores("good"), scores("other"));
}

#[test]
fn an_answer_key_that_is_a_link_is_hidden_where_it_leads() {
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let key = outside.path().join("answers.csv");
    let open = outside.path().join("open.txt");
    std::fs::write(&open, "an open file\n").expect("written");
    let bench = Bench::of(&repository().join("fixtures/manifest.json"), |manifest| {
        let first = manifest["datasets"][0].clone();
        let data = outside.path().join("data");
        let source = Path::new(first["path"].as_str().expect("a path"));
        for (name, bytes) in tree(source) {
            let file = data.join(name);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
            std::fs::write(file, bytes).expect("written");
        }
        std::fs::rename(data.join("pairs.csv"), &key).expect("moved");
        std::os::unix::fs::symlink(&key, data.join("pairs.csv")).expect("linked");
        manifest["datasets"] = json!([first]);
        manifest["datasets"][0]["path"] = json!(data);
        manifest["execution_policy"]["max_method_seconds"] = json!(20);
    });
    let script = bench.path("spy.sh");
    let names = [&open, &key].map(|path| path.display().to_string());
    std::fs::write(&script, format!("cat {} >&2\n", names.join(" "))).expect("written");
    let spy = json!({ "name": "spy", "command": ["sh", &script], "files": [&script] });
    bench.run(&[spy]).exits(1);
    let seen = std::fs::read_to_string(bench.stderr_log("spy")).expect("a log");
    assert!(!seen.contains("label"), "{seen}");

    let thief = json!({ "name": "thief", "command": ["sh", &script], "files": [&script, &key] });
    let methods = bench.methods(&[thief]);
    for command in [
        args!["methods", &methods, "--protocol", bench.protocol()],
        args!["run", bench.protocol(), &methods, "-o", bench.path("two")],
    ] {
        proctor::proctor(command)
            .exits(2)
            .says("answers.csv")
            .says("take it out");
    }
}
