//! Bad input: refused before anything starts, with exit code 2 and one message that names the place.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proctor_protocol::canonical;
use serde_json::{Value, json};

use crate::args;
use crate::support::bench::Bench;
use crate::support::proctor::{self, Done, proctor};
use crate::support::{json, repository, shared, skip, write_json};

/// Refused, in one line that names this.
fn refuses(done: Done, names: &str) {
    let done = done.exits(2).says(names);
    assert!(done.stdout.is_empty(), "{}", done.stdout);
    assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
}

fn freeze(bench: &Bench, manifest: &Path) -> Done {
    proctor(args!["freeze", manifest, "-o", bench.path("out.json")])
}

#[test]
fn manifests_and_datasets_are_judged_as_by_matheel() {
    let test = "refusals::manifests_and_datasets_are_judged_as_by_matheel";
    let Some(vectors) = shared(test, "interop/matheel") else {
        return;
    };
    let index = json(&vectors.join("index.json"));
    let bench = Bench::empty();
    let base = bench.path("manifests");
    std::fs::create_dir(&base).expect("a folder");
    std::os::unix::fs::symlink(vectors.join("datasets"), bench.path("datasets")).expect("a link");
    // One seed has thirty digits, which only our own reader keeps.
    let exact = std::fs::read(vectors.join("index.json")).expect("the index can be read");
    let exact = canonical::read(&exact).expect("the index is JSON");
    let manifests = exact
        .get("manifest_errors")
        .and_then(canonical::Value::as_array);
    let cases = index["manifest_errors"].as_array().expect("cases");
    for (case, exact) in cases.iter().zip(manifests.expect("cases")) {
        let name = case["case"].as_str().expect("a name");
        let file = base.join("manifest.json");
        let manifest = canonical::canonical(exact.get("manifest").expect("a manifest"));
        std::fs::write(&file, manifest).expect("a file");
        let done = freeze(&bench, &file);
        match case["outcome"]["accepted"].as_str() {
            Some(id) => {
                done.exits(0);
                assert_eq!(json(&bench.path("out.json"))["protocol_id"], id, "{name}");
            }
            None => refuses(done, "manifest.json"),
        }
    }
    // Matheel takes a row that is wider than the header for one with a hidden index; we refuse it.
    let differs = ["odd_implicit_index"];
    for (name, case) in index["dataset_errors"].as_object().expect("cases") {
        let root = vectors.join(case["root"].as_str().expect("a folder"));
        let family = case["task_family"].as_str().expect("a family");
        let done = proctor(args!["dataset", "check", &root, "--family", family]);
        if case["outcome"] == "accepted" && !differs.contains(&name.as_str()) {
            done.exits(0);
        } else {
            refuses(done, name);
        }
    }
}

#[test]
fn edited_bundles_are_judged_as_by_matheel() {
    let test = "refusals::edited_bundles_are_judged_as_by_matheel";
    let Some(vectors) = shared(test, "interop/matheel") else {
        return;
    };
    let index = json(&vectors.join("index.json"));
    let bench = Bench::empty();
    for case in index["validate_cases"].as_array().expect("cases") {
        let mut payload = json(&vectors.join(case["base"].as_str().expect("a file")));
        for edit in case["edits"].as_array().expect("edits") {
            apply(&mut payload, edit);
        }
        let file = bench.path("edited.json");
        write_json(&file, &payload);
        let done = proctor(args!["validate", &file]);
        let wanted = i32::from(case["outcome"]["valid"] != true);
        let name = &case["case"];
        assert_eq!(
            done.code,
            Some(wanted),
            "{name}\n{}\n{}",
            done.stdout,
            done.stderr
        );
    }
}

/// Carries out one edit of the vectors: `set`, `del` or `dup` at a path.
fn apply(value: &mut Value, edit: &Value) {
    fn step<'a>(value: &'a mut Value, key: &Value) -> &'a mut Value {
        match key.as_u64() {
            Some(at) => &mut value[at as usize],
            None => &mut value[key.as_str().expect("a key")],
        }
    }
    let path = edit["path"].as_array().expect("a path");
    let (last, parents) = path.split_last().expect("a path is not empty");
    let parent = parents.iter().fold(value, step);
    match edit["op"].as_str().expect("an operation") {
        "set" => *step(parent, last) = edit["value"].clone(),
        "dup" => {
            let rows = step(parent, last).as_array_mut().expect("rows");
            let row = rows[edit["value"].as_u64().expect("a number") as usize].clone();
            rows.push(row);
        }
        "del" => match last.as_u64() {
            Some(at) => drop(parent.as_array_mut().expect("rows").remove(at as usize)),
            None => {
                parent
                    .as_object_mut()
                    .expect("an object")
                    .remove(last.as_str().expect("a key"));
            }
        },
        other => panic!("unknown operation {other}"),
    }
}

#[test]
fn what_matheel_lets_pass_is_refused() {
    let bench = Bench::empty();
    let file = bench.path("manifest.json");
    let manifest = json(&repository().join("fixtures/manifest.json"));
    let with = |edit: &dyn Fn(&mut Value)| {
        let mut manifest = manifest.clone();
        for dataset in manifest["datasets"].as_array_mut().expect("datasets") {
            let path = repository()
                .join("fixtures")
                .join(dataset["path"].as_str().expect("a path"));
            dataset["path"] = json!(path);
        }
        edit(&mut manifest);
        write_json(&file, &manifest);
        freeze(&bench, &file)
    };
    with(&|_| ()).exits(0);
    refuses(with(&|m| m["datasets"] = json!([])), "datasets");
    for budget in [
        json!(0),
        json!(-1),
        json!("inf"),
        json!("nan"),
        json!("soon"),
        json!([1]),
    ] {
        refuses(
            with(&|m| m["execution_policy"]["max_method_seconds"] = budget.clone()),
            "max_method_seconds",
        );
    }

    // Duplicate keys, numbers JSON does not have, and nesting without end.
    for (text, names) in [
        (
            "{\"domain\": \"plagiarism\", \"domain\": \"plagiarism\"}",
            "domain",
        ),
        ("{\"seed\": NaN}", "manifest.json"),
        ("{\"seed\": 1e400}", "manifest.json"),
        ("{\"seed\": \"\\ud800\"}", "manifest.json"),
        ("{", "manifest.json"),
        ("", "manifest.json"),
    ] {
        std::fs::write(&file, text).expect("a file");
        refuses(freeze(&bench, &file), names);
    }
    std::fs::write(&file, "[".repeat(100_000)).expect("a file");
    refuses(freeze(&bench, &file), "manifest.json");
    refuses(
        freeze(&bench, &bench.path("no such file.json")),
        "no such file.json",
    );
}

#[test]
fn a_wide_row_is_refused_with_its_line() {
    let bench = Bench::empty();
    let folder = bench.path("wide");
    std::fs::create_dir_all(folder.join("files")).expect("a folder");
    std::fs::write(folder.join("files/a.txt"), "a").expect("a file");
    std::fs::write(
        folder.join("files.csv"),
        "file_id,file_path\na,files/a.txt\n",
    )
    .expect("a file");
    std::fs::write(
        folder.join("pairs.csv"),
        "left_id,right_id,label\na,a,1\na,a,1,2\n",
    )
    .expect("a file");
    refuses(
        proctor(args!["dataset", "check", &folder]).says("pairs.csv"),
        "3",
    );
}

#[test]
fn methods_that_cannot_run_stop_the_run_before_it_starts() {
    let bench = Bench::fixtures(2.0);
    let run = |methods: &[Value]| {
        let done = bench.run(methods);
        assert!(
            !bench.run_dir().join("run.json").exists(),
            "nothing may be started"
        );
        done
    };
    refuses(run(&[]), "methods.json");
    refuses(
        run(&[
            json!("Levenshtein"),
            json!({ "name": "again", "preset": "levenshtein" }),
        ]),
        "again",
    );
    refuses(
        run(&[
            json!("Levenshtein"),
            json!({ "name": " LEVENSHTEIN ", "preset": "Jaro" }),
        ]),
        "LEVENSHTEIN",
    );
    refuses(run(&[json!("No Such Preset")]), "No Such Preset");
    refuses(
        run(&[json!({ "preset": "Jaro", "threshold": 0.5 })]),
        "threshold",
    );
    refuses(
        run(&[json!({ "name": "gone", "command": ["/no/such/program"] })]),
        "/no/such/program",
    );
    refuses(run(&[json!({ "name": "gone", "command": [] })]), "command");
    refuses(
        run(&[json!({ "preset": "Jaro", "dataset_exclusions": { "nowhere": "why" } })]),
        "nowhere",
    );
    // Presets that need a model or a parser are refused by name, with the way out.
    for preset in ["CodeBLEU", "Code-Aware", "Balanced"] {
        refuses(
            run(&[json!("Levenshtein"), json!(preset)]).says("needs an external worker"),
            preset,
        );
    }
    refuses(
        proctor(args![
            "run",
            bench.protocol(),
            bench.methods(&[json!("Jaro")]),
            "-o",
            bench.run_dir(),
            "--only",
            "Jara"
        ]),
        "Jara",
    );
    let full = bench.path("full");
    std::fs::create_dir(&full).expect("a folder");
    std::fs::write(full.join("mine.txt"), "mine").expect("a file");
    refuses(
        proctor(args![
            "run",
            bench.protocol(),
            bench.methods(&[json!("Jaro")]),
            "-o",
            &full
        ]),
        "full",
    );
    assert_eq!(
        std::fs::read_to_string(full.join("mine.txt")).expect("still there"),
        "mine"
    );
    refuses(
        proctor(args![
            "run",
            bench.protocol(),
            bench.methods(&[json!("Jaro")]),
            "-o",
            bench.run_dir(),
            "--worker",
            "/no/worker"
        ]),
        "/no/worker",
    );
}

#[test]
fn what_the_workers_user_cannot_read_stops_the_run() {
    if !nix::unistd::geteuid().is_root() {
        let test = "refusals::what_the_workers_user_cannot_read_stops_the_run";
        skip(
            test,
            "without root the worker has the user of its supervisor",
        );
        return;
    }
    let bench = Bench::fixtures(20.0);
    let shut = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("ours");
    };
    let model = bench.path("model.bin");
    std::fs::write(&model, "weights").expect("a file");
    shut(&model, 0o600);
    let mut good = bench.rogue("good", &[] as &[u32]);
    good["files"] = json!([model]);
    let done = bench.run(&[good.clone(), json!("GST")]).says("chmod o+rX");
    refuses(
        done.says("model.bin: the worker runs as a user of its own"),
        "good: ",
    );
    assert!(!bench.run_dir().exists(), "nothing may be started");
    shut(&model, 0o644);
    shut(&bench.path("rogue-good"), 0o700);
    refuses(bench.run(&[good.clone()]), "rogue-good: the worker runs");
    shut(&bench.path("rogue-good"), 0o755);
    bench.run(&[good]).exits(0);
}

#[test]
fn a_temporary_directory_that_is_not_there_stops_the_run() {
    let bench = Bench::fixtures(2.0);
    let methods = bench.methods(&[json!("Jaro")]);
    let file = bench.path("file");
    std::fs::write(&file, "x").expect("a file");
    for temporary in [bench.path("gone"), file] {
        let run = args!["run", bench.protocol(), &methods, "-o", bench.run_dir()];
        for args in [run, args!["doctor"]] {
            let mut command = proctor::command(args);
            command.env("TMPDIR", &temporary);
            let named = format!("TMPDIR {}: ", temporary.display());
            refuses(proctor::finish(command), &named);
        }
        assert!(!bench.run_dir().exists(), "nothing may be started");
    }
}

#[test]
fn data_that_changed_since_it_was_frozen_stops_the_run() {
    let bench = Bench::empty();
    let copy = bench.path("data");
    for (name, bytes) in crate::support::tree(&repository().join("fixtures/python_pairs")) {
        let file = copy.join(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(file, bytes).expect("a file");
    }
    let mut manifest = json(&repository().join("fixtures/manifest.json"));
    manifest["datasets"] = json!([manifest["datasets"][0]]);
    manifest["datasets"][0]["path"] = json!("data");
    write_json(&bench.path("manifest.json"), &manifest);
    proctor(args![
        "freeze",
        bench.path("manifest.json"),
        "-o",
        bench.protocol()
    ])
    .exits(0);
    let text = copy.join("files/py-primes-original.py");
    let source = std::fs::read_to_string(&text).expect("a file");
    std::fs::write(&text, source + "\n# changed\n").expect("a file");
    refuses(bench.run(&[json!("Jaro")]), "datasets[0]");
    assert!(!bench.run_dir().join("run.json").exists());
}

#[test]
fn a_dry_run_checks_everything_and_starts_nothing() {
    let bench = Bench::fixtures(2.0);
    let methods = bench.methods(&[json!("Jaro"), json!("GST")]);
    proctor(args![
        "run",
        bench.protocol(),
        methods,
        "-o",
        bench.run_dir(),
        "--dry-run"
    ])
    .exits(0)
    .says("GST");
    assert!(!bench.run_dir().exists());
    let methods = bench.methods(&[json!("Jaro"), json!("CodeBLEU")]);
    refuses(
        proctor(args![
            "run",
            bench.protocol(),
            methods,
            "-o",
            bench.run_dir(),
            "--dry-run"
        ]),
        "CodeBLEU",
    );
}
