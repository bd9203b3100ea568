//! Bundles edited by somebody who made the inventory honest again.

use super::merge_bundles;
use super::tests::{Run, collect, run};
use crate::rundir::plan::parts;
use proctor_protocol::bundle::{InventoryRow, inventory_value};
use proctor_protocol::canonical::{Value, pretty, read, sha256_hex};
use proctor_protocol::object;
use proctor_protocol::outcome::Outcome;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A bundle of a completed and a timed-out method.
struct Bundle {
    run: Run,
    path: PathBuf,
}

fn bundle() -> Bundle {
    let run = run(r#"["Levenshtein", "GST"]"#, "manifest.validation.json");
    run.attempt(&run.plan.methods[0], 1, 4, Some(Outcome::Completed));
    run.attempt(&run.plan.methods[1], 1, 3, Some(Outcome::Timeout));
    let path = run.folder.path().join("published");
    run.merge().bundle.publish(&path).unwrap();
    Bundle { run, path }
}

impl Bundle {
    fn edit_text(&self, file: &str, edit: impl FnOnce(String) -> String) {
        let path = self.path.join(file);
        let before = fs::read_to_string(&path).unwrap();
        let after = edit(before.clone());
        assert_ne!(before, after, "the edit of {file} changes nothing");
        fs::write(path, after).unwrap();
    }

    fn edit_json(&self, file: &str, edit: impl FnOnce(&mut Value)) {
        self.edit_text(file, |text| {
            let mut value = read(text.as_bytes()).unwrap();
            edit(&mut value);
            pretty(&value)
        });
    }

    /// Edits the payload's metadata.
    fn edit(&self, edit: impl FnOnce(&mut Value)) {
        self.edit_json("board.json", |payload| edit(member(payload, "metadata")));
    }

    /// The path of the only record of a method, below the bundle.
    fn record(&self, method: usize) -> String {
        let id = &self.run.plan.methods[method].id;
        format!("evidence/attempts/{id}/0001.local.r0.json")
    }

    /// Makes the inventory honest, and judges.
    fn judged(&self) -> Result<Vec<String>, String> {
        reseal(&self.path);
        let parent = self.run.folder.path().join("judged");
        merge_bundles(std::slice::from_ref(&self.path), None, None, &parent)
            .map(|merged| merged.notes)
            .map_err(|error| error.to_string())
    }

    #[track_caller]
    fn refused(&self, words: &[&str]) {
        let text = self.judged().expect_err("must be refused");
        for word in words {
            assert!(text.contains(word), "{word:?} is not in {text}");
        }
    }
}

fn reseal(folder: &Path) {
    fs::remove_file(folder.join("inventory.json")).unwrap();
    let mut files = BTreeMap::new();
    collect(folder, "", &mut files);
    let rows: Vec<InventoryRow> = files
        .into_iter()
        .map(|(path, bytes)| InventoryRow {
            path,
            sha256: sha256_hex(&bytes),
            size_bytes: bytes.len() as u64,
        })
        .collect();
    fs::write(
        folder.join("inventory.json"),
        pretty(&inventory_value(&rows)),
    )
    .unwrap();
}

fn member<'a>(value: &'a mut Value, key: &str) -> &'a mut Value {
    value.as_object_mut().unwrap().get_mut(key).unwrap()
}

fn item(value: &mut Value, at: usize) -> &mut Value {
    &mut value.as_array_mut().unwrap()[at]
}

fn set(value: &mut Value, key: &str, to: impl Into<Value>) {
    value.as_object_mut().unwrap().insert(key, to);
}

fn supervised(metadata: &mut Value, at: usize) -> &mut Value {
    item(member(metadata, "supervised_executions"), at)
}

#[test]
fn an_untouched_bundle_is_accepted_with_all_its_evidence() {
    assert_eq!(bundle().judged().unwrap(), Vec::<String>::new());
}

#[test]
fn what_a_bundle_says_of_an_attempt_is_held_to_its_record() {
    let cases: [(&str, Value, &str); 8] = [
        ("wall_seconds", 1.5.into(), "1.5"),
        ("boottime_seconds", 1.5.into(), "1.5"),
        ("peak_memory_bytes", 5000i64.into(), "5000"),
        ("measured", object! { "cores" => vec![7i64] }, "cores"),
        ("budget_seconds", 30.0.into(), "30.0"),
        ("facts", object! { "late_rows" => 1i64 }, "late_rows"),
        ("isolation", object! { "rung" => "K4" }, "K4"),
        ("host", "elsewhere".into(), "elsewhere"),
    ];
    for (field, value, word) in cases {
        let bundle = bundle();
        bundle.edit(|metadata| set(supervised(metadata, 0), field, value));
        bundle.refused(&[field, word]);
    }
}

#[test]
fn what_was_measured_is_the_same_in_the_reproducibility_section() {
    let changed = |field: &'static str, value: Value, words: &[&str]| {
        let bundle = bundle();
        bundle.edit(|metadata| {
            let ours = member(member(metadata, "reproducibility"), "proctor");
            set(item(member(ours, "measurements"), 0), field, value);
        });
        bundle.refused(words);
    };
    let wall = ["measurements[0].wall_seconds", "supervised_executions says"];
    changed("wall_seconds", 1.5.into(), &wall);
    let measured = object! { "cores" => vec![7i64] };
    changed("measured", measured, &["measurements[0].measured", "cores"]);
    changed(
        "suspended_seconds",
        9.0.into(),
        &["suspended_seconds", "9.0"],
    );
    changed(
        "algorithm_id",
        "x".into(),
        &["measurements[0].algorithm_id"],
    );
}

#[test]
fn a_changed_outcome_is_seen_with_and_without_its_failure() {
    let bundle = bundle();
    bundle.edit(|metadata| {
        set(
            supervised(metadata, 1),
            "outcome",
            Outcome::Completed.to_value(),
        );
    });
    bundle.refused(&["supervised_executions[1].outcome", "completed", "failed"]);

    // The other failure is told everywhere in the payload, but not in the record.
    let bundle = self::bundle();
    bundle.edit(|metadata| {
        let outcome = Outcome::Signal(11);
        set(supervised(metadata, 1), "outcome", outcome.to_value());
        let failure = item(member(metadata, "execution_failures"), 0);
        set(failure, "error", outcome.error_text(1.0).unwrap());
    });
    bundle.refused(&[
        "supervised_executions[1].outcome",
        "0001.local.r0",
        "timeout",
    ]);
}

#[test]
fn emptied_lists_are_seen() {
    for (list, words) in [
        ("supervised_executions", "has no entry of method"),
        ("execution_failures", "has no entry of method"),
        ("thresholds", "thresholds"),
    ] {
        let bundle = bundle();
        bundle.edit(|metadata| set(metadata, list, Vec::<Value>::new()));
        bundle.refused(&[list, words]);
    }
}

#[test]
fn pages_and_tables_are_made_again_and_compared() {
    for (file, from, to) in [
        ("board.html", "Levenshtein", "Best"),
        ("board_details.html", "Levenshtein", "Best"),
        ("board_per_dataset.csv", "completed", "failed"),
        ("board_aggregate.csv", "True", "False"),
        ("board_reproducibility.json", "Linux", "Plan9"),
    ] {
        let bundle = bundle();
        bundle.edit_text(file, |text| text.replacen(from, to, 1));
        bundle.refused(&[file, "line "]);
    }
    let bundle = bundle();
    bundle.edit_text("board_aggregate.csv", |text| text + "more\n");
    bundle.refused(&["board_aggregate.csv", "the end of the file", "more"]);
    let bundle = self::bundle();
    fs::remove_file(bundle.path.join("board.html")).unwrap();
    bundle.refused(&["board.html"]);
}

#[test]
fn evidence_is_derived_from_the_records() {
    let bundle = bundle();
    fs::remove_file(bundle.path.join(bundle.record(0))).unwrap();
    bundle.refused(&["evidence", "full", "partial"]);
    bundle.edit_json("bundle.json", |about| set(about, "evidence", "partial"));
    let notes = bundle.judged().unwrap();
    assert!(notes[0].contains("evidence: partial"), "{notes:?}");

    let bundle = self::bundle();
    bundle.edit_json(&bundle.record(1), |record| {
        set(record, "terminal", Value::Null);
    });
    bundle.refused(&["charged", "no terminal record"]);

    let bundle = self::bundle();
    bundle.edit_json(&bundle.record(0), |record| {
        set(record, "checkpoints", Vec::<Value>::new());
    });
    bundle.refused(&["score for", "no checkpoint"]);

    let bundle = self::bundle();
    bundle.edit_json(&bundle.record(0), |record| {
        set(
            item(member(record, "checkpoints"), 1),
            "elapsed_seconds",
            0.25,
        );
    });
    bundle.refused(&["elapsed_seconds for", "0.25"]);
}

#[test]
fn what_bundle_json_says_is_held_to_the_payload() {
    for (field, value) in [
        ("complete", Value::Bool(false)),
        ("benchmark_id", "other".into()),
        ("evidence", "everything".into()),
    ] {
        let bundle = bundle();
        bundle.edit_json("bundle.json", |about| set(about, field, value));
        bundle.refused(&["bundle.json", field]);
    }
}

#[test]
fn plans_and_protocols_are_those_of_the_payload() {
    let bundle = bundle();
    bundle.edit_json("evidence/plan.json", |plan| {
        set(member(plan, "policy"), "budget_seconds", 60.0);
    });
    bundle.refused(&["evidence/plan.json", "policy.budget_seconds", "60.0"]);
    let bundle = self::bundle();
    bundle.edit_json("evidence/protocol.json", |protocol| {
        set(protocol, "seed", 99i64);
    });
    bundle.refused(&["evidence/protocol.json", "not the protocol"]);
    let bundle = self::bundle();
    fs::remove_file(bundle.path.join("evidence/plan.json")).unwrap();
    bundle.refused(&["started.run_id", "not the run of the plan"]);
}

#[test]
fn pages_of_another_version_are_not_compared_and_that_is_said() {
    let bundle = bundle();
    bundle.edit_json("bundle.json", |about| {
        set(about, "proctor_version", "999.0.0");
    });
    bundle.edit_text("board.html", |text| text + "<!-- later -->");
    let notes = bundle.judged().unwrap();
    assert!(notes[0].contains("not compared"), "{notes:?}");
    bundle.edit_text("board_aggregate.csv", |text| text + "x\n");
    bundle.refused(&["board_aggregate.csv"]);
}

#[test]
fn records_of_another_run_are_refused() {
    let bundle = bundle();
    bundle.edit_json(&bundle.record(0), |record| {
        set(member(record, "started"), "run_id", "another");
    });
    bundle.refused(&["started.run_id", "not the run of the plan"]);
}

#[test]
fn evidence_is_found_however_often_bundles_were_merged() {
    let bundle = bundle();
    let mut path = bundle.path.clone();
    for round in 0..10 {
        let next = bundle.run.folder.path().join(format!("round-{round}"));
        let parent = bundle.run.folder.path().join("rounds");
        let merged = merge_bundles(std::slice::from_ref(&path), None, None, &parent).unwrap();
        assert_eq!(merged.notes, Vec::<String>::new(), "{round}");
        merged.bundle.publish(&next).unwrap();
        path = next;
    }
}

#[test]
fn the_newest_attempt_counts_and_not_the_best() {
    let bundle = bundle();
    let method = &bundle.run.plan.methods[0];
    bundle.run.attempt(method, 2, 1, Some(Outcome::Timeout));
    fs::remove_dir_all(&bundle.path).unwrap();
    bundle.run.merge().bundle.publish(&bundle.path).unwrap();
    assert_eq!(bundle.judged().unwrap(), Vec::<String>::new());
    let newer = bundle.record(0).replace("0001.", "0002.");
    bundle.edit_json(&newer, |record| set(record, "counts", false));
    bundle.edit_json(&bundle.record(0), |record| set(record, "counts", true));
    bundle.edit(|metadata| {
        set(supervised(metadata, 0), "attempt", "0001.local.r0");
        let ours = member(member(metadata, "reproducibility"), "proctor");
        set(
            item(member(ours, "measurements"), 0),
            "attempt",
            "0001.local.r0",
        );
    });
    bundle.refused(&["0002.local.r0", "counts"]);
}

#[test]
fn scores_that_are_left_out_are_missed() {
    let bundle = bundle();
    bundle.edit(|metadata| set(metadata, "score_artifacts", Vec::<Value>::new()));
    bundle.refused(&["scores/", "not in metadata.score_artifacts"]);
    fs::remove_dir_all(bundle.path.join("scores")).unwrap();
    bundle.refused(&["bundle.json: evidence", "full", "partial"]);
}

#[test]
fn validation_scores_that_are_left_out_are_missed() {
    let bundle = bundle();
    fs::remove_dir_all(bundle.path.join("evidence/validation")).unwrap();
    bundle.refused(&["bundle.json: evidence", "full", "partial"]);
    bundle.edit_json("bundle.json", |about| set(about, "evidence", "partial"));
    let notes = bundle.judged().unwrap();
    assert!(notes[0].contains("evidence: partial"), "{notes:?}");

    // One file is enough, and so is a checkpoint that is left out beside it.
    let bundle = self::bundle();
    let folder = bundle.path.join("evidence/validation");
    let file = fs::read_dir(folder).unwrap().next().unwrap().unwrap();
    fs::remove_file(file.path()).unwrap();
    bundle.refused(&["bundle.json: evidence", "full", "partial"]);

    let bundle = self::bundle();
    fs::remove_dir_all(bundle.path.join("evidence/validation")).unwrap();
    for method in 0..2 {
        bundle.edit_json(&bundle.record(method), |record| {
            let checkpoints = member(record, "checkpoints");
            let kept = checkpoints.as_array().unwrap().iter();
            let kept = kept.filter(|one| one.get("role") == Some(&"test".into()));
            let kept = kept.cloned().collect::<Vec<Value>>();
            set(record, "checkpoints", kept);
        });
    }
    bundle.refused(&["bundle.json: evidence", "full", "partial"]);
}

#[test]
fn score_files_are_those_of_the_checkpoints() {
    let bundle = bundle();
    bundle.edit_json(&bundle.record(1), |record| {
        let checkpoints = member(record, "checkpoints");
        for at in 0..checkpoints.as_array().unwrap().len() {
            set(item(checkpoints, at), "scores_sha256", "ab".repeat(32));
        }
    });
    bundle.refused(&[".csv", "0001.local.r0", "abab"]);
}

#[test]
fn thresholds_are_calibrated_again_from_validation_scores() {
    let bundle = bundle();
    let folder = bundle.path.join("evidence/validation");
    let files = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut count = 0;
    for file in files {
        // Every score moves, so every threshold does.
        let text = fs::read_to_string(&file).unwrap();
        let moved = text
            .lines()
            .enumerate()
            .map(|(n, line)| match line.rsplit_once(',') {
                Some((head, score)) if n > 0 => {
                    format!("{head},{:?}\n", score.parse::<f64>().unwrap() + 1.0)
                }
                _ => format!("{line}\n"),
            });
        fs::write(&file, moved.collect::<String>()).unwrap();
        count += 1;
    }
    assert!(count > 0);
    bundle.refused(&["metadata.thresholds of", "evidence/validation/"]);
}

/// A bundle of a method that was cut off after its first dataset and went on.
fn gone_on_with() -> Bundle {
    let run = run(r#"["Levenshtein"]"#, "manifest.validation.json");
    let method = &run.plan.methods[0];
    let asked = parts(&run.plan.protocol, method);
    run.attempt(method, 1, 2, None);
    run.attempt_after(method, 2, 1, &asked[2..], Some(Outcome::Completed));
    let path = run.folder.path().join("published");
    run.merge().bundle.publish(&path).unwrap();
    Bundle { run, path }
}

#[test]
fn a_method_with_several_attempts_has_all_its_evidence() {
    assert_eq!(gone_on_with().judged().unwrap(), Vec::<String>::new());
}

#[test]
fn what_an_attempt_inherited_is_held_to_the_attempt_it_names() {
    fn inherited(record: &mut Value) -> &mut Value {
        let started = member(record, "started");
        item(member(member(started, "ancestry"), "inherited"), 1)
    }
    let second = |bundle: &Bundle| {
        let id = &bundle.run.plan.methods[0].id;
        format!("evidence/attempts/{id}/0002.local.r0.json")
    };
    let cases: [(&str, Value); 4] = [
        ("elapsed_seconds", 0.25.into()),
        ("scores_sha256", "ab".repeat(32).into()),
        ("attempt", "0002.local.r0".into()),
        ("dataset", 1i64.into()),
    ];
    for (field, value) in cases {
        let bundle = gone_on_with();
        bundle.edit_json(&second(&bundle), |record| {
            set(inherited(record), field, value);
        });
        bundle.refused(&["started.ancestry.inherited", "does not have"]);
    }
    // Nor can the attempt be left out that it all came from.
    let bundle = gone_on_with();
    fs::remove_file(bundle.path.join(bundle.record(0))).unwrap();
    bundle.refused(&["attempts"]);
}

#[test]
fn the_history_of_a_method_is_held_to_its_records() {
    let cases: [(&str, Value); 3] = [
        ("counts", true.into()),
        ("wall_seconds", 0.5.into()),
        ("attempt", "0007.local.r0".into()),
    ];
    for (field, value) in cases {
        let bundle = gone_on_with();
        bundle.edit(|metadata| {
            let history = member(supervised(metadata, 0), "history");
            set(item(history, 0), field, value);
        });
        bundle.refused(&["history"]);
    }
    let bundle = gone_on_with();
    bundle.edit(|metadata| {
        let history = member(supervised(metadata, 0), "history");
        set(item(history, 1), "outcome", Outcome::Timeout.to_value());
    });
    bundle.refused(&["history[1].outcome"]);
}
