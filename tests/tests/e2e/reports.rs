//! Commands that report: text for people, one JSON document for programs, nothing else on stdout.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::args;
use crate::support::bench::Bench;
use crate::support::proctor::{command, finish, proctor};
use crate::support::{repository, skip};

const NONE: &[u32] = &[];

fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn every_report_is_one_json_document_on_request() {
    let bench = Bench::fixtures(2.0);
    let methods = bench.methods(&[json!("Jaro"), bench.rogue("quitter", &["1"])]);
    let manifest = repository().join("fixtures/manifest.json");
    let frozen = proctor(args![
        "freeze",
        manifest,
        "-o",
        bench.path("again.json"),
        "--json"
    ]);
    let frozen = document(&frozen.exits(0).stdout);
    assert_eq!(frozen["benchmark_id"], "Matheel-Plagiarism-v1");
    assert_eq!(frozen["protocol_id"].as_str().map(str::len), Some(64));

    let dataset = repository().join("fixtures/retrieval");
    let checked = document(
        &proctor(args!["dataset", "check", dataset, "--json"])
            .exits(0)
            .stdout,
    );
    let counts = json!({ "corpus": 36, "files": 36, "qrels": 24, "queries": 12 });
    assert_eq!(checked["content"]["counts"], counts, "{checked}");

    let listed = proctor(args![
        "methods",
        &methods,
        "--protocol",
        bench.protocol(),
        "--json"
    ])
    .exits(0);
    document(&listed.stdout);
    let ran = proctor(args![
        "run",
        bench.protocol(),
        &methods,
        "-o",
        bench.run_dir(),
        "--json"
    ]);
    document(&ran.exits(1).stdout);
    let status = document(
        &proctor(args!["status", bench.run_dir(), "--json"])
            .exits(0)
            .stdout,
    );
    let text = status.to_string();
    assert!(
        text.contains("completed") && text.contains("incomplete"),
        "{text}"
    );
    let merged = proctor(args![
        "merge",
        bench.run_dir(),
        "-o",
        bench.path("merged"),
        "--json"
    ])
    .exits(0);
    document(&merged.stdout);
    let judged = proctor(args!["validate", bench.path("merged"), "--json"]).exits(0);
    assert_eq!(document(&judged.stdout)["valid"], true);
    document(&proctor(args!["doctor", "--json"]).stdout);
}

#[test]
fn the_doctor_tells_every_protection_with_its_means_or_the_reason() {
    let told = document(&proctor(args!["doctor", "--json"]).stdout);
    let text = proctor(args!["doctor"]).stdout;
    let guards = told["rooms"]["isolation"]["guards"]
        .as_object()
        .expect("an object");
    let rung = told["rooms"]["isolation"]["containment"].as_str();
    let rung = rung.expect("a name");
    if rung == "none" {
        skip(
            "reports::the_doctor_tells_every_protection_with_its_means_or_the_reason",
            "no room can be made here",
        );
        return;
    }
    assert_eq!(guards["umask"]["state"], "enforced");
    assert_ne!(
        guards["cpu_set"]["state"], "off",
        "a run gives every room its cores"
    );
    let table = text
        .split(&format!("protections of a room on {rung}:"))
        .nth(1)
        .expect("a table of protections");
    for (name, guard) in guards {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let part = |field: &str| guard[field].as_str().unwrap_or_default();
        let row = words(&format!(
            "{name} {} {}{}",
            part("state"),
            part("by"),
            part("reason")
        ));
        assert!(
            table.lines().any(|line| words(line) == row),
            "{row}\n{text}"
        );
    }
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = proctor(args!["completions", shell]).exits(0).stdout;
        assert!(
            script.contains("freeze") && script.contains("validate"),
            "{shell}"
        );
    }
}

#[test]
fn wrong_usage_is_exit_code_2() {
    for line in [
        args!["freeze"],
        args!["no-such-command"],
        args!["run", "--jobs", "many"],
    ] {
        let done = proctor(line).exits(2);
        assert!(done.stdout.is_empty());
    }
    let bench = Bench::empty();
    for line in [
        args!["status", bench.path("nothing")],
        args!["merge", bench.path("nothing"), "-o", bench.path("out")],
        args!["validate", bench.path("nothing")],
        args!["methods", bench.path("nothing")],
        args!["protocol", "export", bench.path("nothing")],
    ] {
        proctor(line).exits(2).says("nothing");
    }
}

#[test]
fn a_reader_who_leaves_ends_a_command_quietly() {
    let methods = repository().join("fixtures/methods.json");
    let mut child = command(args!["methods", methods])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("proctor starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("proctor ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn a_failed_method_is_shown_with_its_outcome_and_its_last_words() {
    let bench = Bench::fixtures(5.0);
    let script = bench.path("last_words.sh");
    std::fs::write(&script, "echo 'the disk is on fire' >&2\nexit 7\n").expect("a file");
    let run = bench.run_command(
        &[
            json!({ "name": "dramatic", "command": ["/bin/sh", script], "files": [script] }),
            bench.rogue("good", NONE),
        ],
        &[],
    );
    let done = finish(run).exits(1);
    assert!(
        done.stderr.contains("the disk is on fire"),
        "{}",
        done.stderr
    );
    assert_eq!(bench.bundle().outcome("dramatic"), "exit(7)");
    // What a method wrote to stderr may be licensed text: it never enters a bundle.
    for (name, bytes) in crate::support::tree(&bench.bundle().dir) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("the disk is on fire"), "{name}");
    }
}

#[test]
fn freezing_tells_what_it_did_not_take_as_written() {
    let bench = Bench::fixtures(2.0);
    let folder = repository().join("fixtures");
    let text = std::fs::read_to_string(folder.join("manifest.json")).expect("a manifest");
    let mut manifest = document(&text);
    for dataset in manifest["datasets"].as_array_mut().expect("datasets") {
        let path = folder.join(dataset["path"].as_str().expect("a path"));
        dataset["path"] = json!(path);
    }
    manifest["pair_metircs"] = json!(["auroc"]);
    manifest["datasets"][0]["k"] = json!("7");
    let file = bench.path("odd.json");
    std::fs::write(&file, manifest.to_string()).expect("written");
    let frozen = proctor(args![
        "freeze",
        &file,
        "-o",
        bench.path("odd.protocol.json"),
        "--json"
    ])
    .exits(0)
    .says("pair_metircs: is not a key here and was ignored")
    .says("datasets[0].k: is \"7\", which was read as 7");
    let notices = document(&frozen.stdout)["notices"].clone();
    assert_eq!(notices.as_array().map(Vec::len), Some(2), "{notices}");
}

#[test]
fn a_dataset_of_nothing_is_sound_but_cannot_be_frozen() {
    let bench = Bench::fixtures(2.0);
    let folder = bench.path("empty");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join("files.csv"), "file_id,file_path\n").expect("written");
    std::fs::write(folder.join("pairs.csv"), "left_id,right_id,label\n").expect("written");
    proctor(args!["dataset", "check", &folder])
        .exits(1)
        .says("cannot be frozen");
}
