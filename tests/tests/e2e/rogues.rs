//! Every way of misbehaving, each with the outcome and the facts it deserves, at every rung of this machine, under a
//! supervisor that is root and under one that is nobody. Many rogues share a run; each rung has runs of its own.

mod attempts;
mod look_alikes;
mod place;
mod table;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::bundle::Bundle;
use crate::support::oracle::Oracle;
use crate::support::{proctor, repository};
use place::{Place, User, at_once, places};
use table::Case;

/// A frozen benchmark with this budget in seconds and these further keys of its policy.
fn bench(budget: f64, limits: &Value) -> Bench {
    Bench::of(&repository().join("fixtures/manifest.json"), |manifest| {
        manifest["execution_policy"] = limits.clone();
        manifest["execution_policy"]["max_method_seconds"] = json!(budget);
    })
}

/// A case as a method; `more` arguments follow its own.
fn method(bench: &Bench, case: &Case, more: &[String]) -> Value {
    let arguments: Vec<String> = case
        .arguments
        .iter()
        .map(ToString::to_string)
        .chain(more.iter().cloned())
        .collect();
    let mut method = bench.rogue(case.rogue, &arguments);
    method["name"] = json!(case.name());
    method
}

fn methods<'a>(bench: &Bench, cases: impl IntoIterator<Item = &'a Case>) -> Vec<Value> {
    cases
        .into_iter()
        .map(|case| method(bench, case, &[]))
        .collect()
}

/// Demands everything the table says of a case.
fn check(place: &Place, bundle: &Bundle, case: &Case) {
    let name = case.name();
    let execution = bundle.execution(&name);
    let about = format!(
        "{place}: {name}: {} {}",
        execution["outcome"], execution["facts"]
    );
    assert_eq!(bundle.outcome(&name), case.outcome, "{about}");
    let detail = execution["outcome"].to_string();
    let says = json!(case.says).to_string();
    assert!(detail.contains(says.trim_matches('"')), "{about}");
    let facts = &execution["facts"];
    let leaked = facts["leaked_processes"].as_u64();
    if case.ended_by_itself() {
        assert_eq!(leaked, Some(case.leaves), "{about}");
    } else {
        // Whether whoever was killed was just leaving is chance.
        assert!(leaked.is_none_or(|left| left <= 1), "{about}");
    }
    assert_eq!(facts["leaked_pipe"], case.holds_pipe, "{about}");
    // What still lay in the pipe when a rule was broken is counted too, and how much that is is chance.
    if let Some(late) = case.late_rows
        && (case.ended_by_itself() || case.outcome == "timeout")
    {
        assert_eq!(facts["late_rows"], late, "{about}");
    }
    assert_eq!(facts["worker_error"].as_str(), case.gives_up, "{about}");
    assert_eq!(facts["room_empty"], true, "{about}");
    assert!(facts["scratch_left"].is_null(), "{about}");
    assert_eq!(execution["isolation"]["containment"], place.rung, "{about}");
    check_scores(place, bundle, &name, case.scored);
}

/// Demands that a method has scores on so many datasets and on no other, in rows and in files, and that they are those
/// of the good worker, byte for byte. A finished dataset stays when the rest is lost, and it stands there how much that
/// is.
fn check_scores(place: &Place, bundle: &Bundle, name: &str, scored: usize) {
    let about = format!("{place}: {name}");
    assert_eq!(bundle.scored(name).len(), scored, "{about}");
    let execution = bundle.execution(name);
    assert_eq!(execution["datasets_scored"], scored, "{about}");
    assert_eq!(execution["datasets_asked"], 3, "{about}");
    let own = bundle.score_files(name);
    assert_eq!(own.len(), scored, "{about}: {:?}", own.keys());
    for row in bundle
        .rows_of(name)
        .iter()
        .filter(|row| row["score"].is_null())
    {
        assert_eq!(row["status"], "failed", "{about}");
        assert!(row["error"].is_string(), "{about}");
    }
    if scored == 0 {
        return;
    }
    let good = bundle.score_files("good");
    for (dataset, bytes) in &own {
        assert!(
            good[dataset] == *bytes,
            "{about}: other scores than the good worker's"
        );
    }
    let right = bundle.rows_of("good");
    for row in bundle
        .rows_of(name)
        .iter()
        .filter(|row| row["score"].is_number())
    {
        let same = |other: &&&Value| {
            ["dataset_name", "metric"]
                .iter()
                .all(|key| other[*key] == row[*key])
        };
        let expected = right
            .iter()
            .find(same)
            .unwrap_or_else(|| panic!("{about}: {row}"));
        assert_eq!(row["score"], expected["score"], "{about}: {row}");
    }
}

#[test]
fn each_gets_its_outcome_and_keeps_what_it_finished() {
    for place in places("rogues::each_gets_its_outcome_and_keeps_what_it_finished") {
        let bench = bench(60.0, &json!({}));
        place
            .run(&bench, &methods(&bench, table::QUICK), &["--jobs", jobs()])
            .exits(1);
        let bundle = bench.bundle();
        for case in table::QUICK {
            check(place, &bundle, case);
        }
        // A rogue that talks without end is cut in the middle; its first and last words are kept.
        let facts = &bundle.execution("chatterbox")["facts"];
        assert!(facts["output_cut"].as_u64().expect("a count") > 60 << 20);
        let log = std::fs::read_to_string(bench.stderr_log("chatterbox")).expect("the log is kept");
        assert!(log.len() < 1 << 20, "{} bytes were kept", log.len());
        assert!(log.starts_with("chatter chatter"));
        assert!(log.ends_with("the last words\n"));
        // The worker's own words stand in the rows of the dataset it refused.
        for row in bundle
            .rows_of("refuser")
            .iter()
            .filter(|row| row["score"].is_null())
        {
            assert_eq!(row["error"], "ValueError: these texts are not for me");
        }
    }
}

#[test]
fn whoever_hangs_is_ended_with_all_its_kin() {
    at_once("rogues::whoever_hangs_is_ended_with_all_its_kin", |place| {
        let bench = bench(2.0, &json!({ "grace_seconds": 1 }));
        place
            .run(
                &bench,
                &methods(&bench, table::HANGING),
                &["--jobs", jobs()],
            )
            .exits(1);
        let bundle = bench.bundle();
        for case in table::HANGING {
            check(place, &bundle, case);
        }
    });
}

#[test]
fn whoever_takes_too_much_is_told_from_who_crashes() {
    let limits = json!({ "max_memory_bytes": 256 << 20, "max_processes": 64, "max_scratch_bytes": 24 << 20 });
    for place in places("rogues::whoever_takes_too_much_is_told_from_who_crashes") {
        let bench = bench(60.0, &limits);
        place
            .run(
                &bench,
                &methods(&bench, table::GREEDY.iter().map(|(case, _)| case)),
                &[],
            )
            .exits(1);
        let bundle = bench.bundle();
        for (case, uncounted) in table::GREEDY {
            let execution = bundle.execution(case.rogue);
            let by = execution["isolation"]["guards"]["disk"]["by"].as_str();
            if case.rogue == "filler" && by.is_some_and(|by| by.starts_with("polling")) {
                // Whether it is seen before it is done is a matter of time.
                let outcome = bundle.outcome("filler");
                assert!(["completed", "resource_limit"].contains(&outcome.as_str()));
                assert_eq!(execution["facts"]["room_empty"], true, "{place}");
                assert!(execution["facts"]["scratch_left"].is_null(), "{place}");
                continue;
            }
            let expected = if place.as_root() {
                case.outcome
            } else {
                uncounted
            };
            let about = format!(
                "{place}: {}: {} {}",
                case.rogue, execution["outcome"], execution["facts"]
            );
            assert_eq!(bundle.outcome(case.rogue), expected, "{about}");
            if expected == case.outcome {
                assert!(
                    execution["outcome"].to_string().contains(case.says),
                    "{about}"
                );
            }
            assert_eq!(execution["facts"]["room_empty"], true, "{about}");
            assert!(execution["facts"]["scratch_left"].is_null(), "{about}");
            check_scores(place, &bundle, case.rogue, case.scored);
            let kills = &execution["facts"]["memory_kills"];
            let killed = u64::from(case.rogue == "hog");
            assert_eq!(kills.as_u64(), place.as_root().then_some(killed), "{about}");
        }
        if bundle.execution("filler")["isolation"]["guards"]["disk"]["by"] == "tmpfs of a size" {
            let log = std::fs::read_to_string(bench.stderr_log("filler")).expect("the log is kept");
            let written: u64 = log
                .split_whitespace()
                .nth(1)
                .and_then(|n| n.parse().ok())
                .expect("a count");
            assert!((16..=24).contains(&written), "{place}: {log}");
        }
    }
}

#[test]
fn from_a_process_group_alone_survivors_are_reported() {
    let bench = bench(60.0, &json!({}));
    let place = Place {
        user: User::Own,
        rung: "K0",
        refused: &[],
    };
    let oracle = Oracle::new(&bench.path(""));
    let cases: Vec<&Case> = table::QUICK
        .iter()
        .filter(|case| ["good", "daemon", "holder", "litter"].contains(&case.rogue))
        .collect();
    let run = place.command(&bench, &methods(&bench, cases.iter().copied()), &[]);
    proctor::finish(oracle.watch(&run)).exits(0);
    let bundle = bench.bundle();
    for case in &cases {
        let execution = bundle.execution(&case.name());
        assert_eq!(bundle.outcome(&case.name()), "completed");
        assert_eq!(execution["isolation"]["containment"], "K0");
        // Who stayed in the group is counted; that nobody left it is not known, and so not claimed.
        let counted = &execution["facts"]["leaked_processes"];
        assert_eq!(
            counted.as_u64(),
            (case.rogue == "holder").then_some(1),
            "{}",
            case.rogue
        );
    }
    // Who has a session of its own escapes: one daemon and twenty pieces of litter.
    // The next run on this machine may sweep them away, so they are counted at once.
    assert_eq!(oracle.survivors().len(), 21);
}

#[test]
fn the_good_worker_is_the_same_everywhere_and_beside_others() {
    let controls: Vec<&Case> = table::QUICK
        .iter()
        .filter(|case| ["good", "quitter", "crasher", "self-killer"].contains(&case.rogue))
        .collect();
    let mut first: Option<Vec<_>> = None;
    for place in places("rogues::the_good_worker_is_the_same_everywhere_and_beside_others") {
        for jobs in BTreeSet::from(["1", jobs()]) {
            let bench = bench(60.0, &json!({}));
            place
                .run(
                    &bench,
                    &methods(&bench, controls.iter().copied()),
                    &["--jobs", jobs],
                )
                .exits(1);
            let bundle = bench.bundle();
            for case in &controls {
                check(place, &bundle, case);
            }
            let scores: Vec<_> = controls
                .iter()
                .map(|case| bundle.score_files(&case.name()))
                .collect();
            assert!(
                *first.get_or_insert_with(|| scores.clone()) == scores,
                "{place}, {jobs} jobs"
            );
        }
    }
}

/// So many methods at a time as this machine has cores for, two at most.
fn jobs() -> &'static str {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        "1"
    } else {
        "2"
    }
}

#[test]
fn every_rogue_is_in_the_table_and_says_what_is_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("rogues");
    let mut there = BTreeSet::new();
    for entry in std::fs::read_dir(folder).expect("the rogues are there") {
        let path = entry.expect("it can be read").path();
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .replace('_', "-");
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let reports: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("//! Honest report: "))
            .collect();
        let [report] = reports[..] else {
            panic!(
                "{name}: one line says what an honest supervisor reports, not {}",
                reports.len()
            );
        };
        // The line and the table say the same.
        for case in table::all().filter(|case| case.rogue == name) {
            let kind = case
                .outcome
                .split_once('(')
                .map_or(case.outcome, |(kind, _)| kind);
            assert!(
                report.contains(&format!("`{kind}")),
                "{name}: {} but {report}",
                case.outcome
            );
        }
        there.insert(name);
    }
    let named: BTreeSet<String> = table::rogues().into_iter().map(str::to_owned).collect();
    assert_eq!(there, named);
    // Three of them do nothing wrong.
    assert!(there.len() >= 40 + 3, "{}", there.len());
    let different: BTreeSet<String> = table::QUICK.iter().map(Case::name).collect();
    assert_eq!(different.len(), table::QUICK.len(), "names are different");
}

#[test]
fn a_method_that_nothing_applies_to_is_done_without_a_worker() {
    let bench = Bench::fixtures(5.0);
    let reason = json!({ "status": "not_applicable", "reason": "scores nothing" });
    let methods = [
        json!("Jaro"),
        json!({ "name": "idle", "preset": "Jaro", "task_eligibility": { "pair": reason, "retrieval": reason } }),
        json!({ "name": "pairs only", "preset": "Jaro", "task_eligibility": { "retrieval": reason } }),
    ];
    bench.run(&methods).exits(0);
    let bundle = bench.bundle();
    assert_eq!(bundle.outcome("idle"), "not_applicable");
    assert_eq!(bundle.outcome("pairs only"), "completed");
    assert_eq!(bundle.scored("pairs only"), ["java_pairs", "python_pairs"]);
    for row in bundle.rows_of("idle") {
        assert_eq!(row["status"], "not_applicable");
        assert_eq!(row["not_applicable_reason"], "scores nothing");
        assert_eq!(row["sample_count"], 0);
        assert!(row["error"].is_null());
    }
}

#[test]
fn the_demos_two_programs_work_and_hang() {
    let bench = Bench::fixtures(3.0);
    let fixtures = crate::support::repository().join("fixtures");
    let mut run = proctor::command(crate::args![
        "run",
        bench.protocol(),
        fixtures.join("methods.json"),
        "-o",
        bench.run_dir()
    ]);
    run.args([
        "--only",
        "Shared words (a program)",
        "--only",
        "Stuck (a program that hangs)",
    ]);
    proctor::finish(run).exits(1);
    let bundle = bench.bundle();
    assert_eq!(bundle.outcome("Shared words (a program)"), "completed");
    assert_eq!(bundle.outcome("Stuck (a program that hangs)"), "timeout");
    assert_eq!(bundle.scored("Stuck (a program that hangs)").len(), 1);
}
