//! Rungs by name, and runs that demand what results for others need.

use serde_json::{Value, json};

use crate::args;
use crate::support::bench::Bench;
use crate::support::proctor::{self, Done, proctor};
use crate::support::{json, skip};

const MEMORY: &[&str] = &["--official", "--max-memory", "512M"];

fn run(bench: &Bench, options: &[&str]) -> Done {
    proctor::finish(bench.run_command(&[json!("GST")], options))
}

/// What the bundle of the run says of its mode.
fn stamp(bench: &Bench) -> Value {
    let bundle = bench.bundle();
    let ours = &bundle.payload["metadata"]["reproducibility"]["proctor"];
    let policy = json(&bundle.dir.join("evidence/plan.json"))["policy"].clone();
    assert_eq!(policy["mode"], ours["mode"]);
    assert_eq!(policy["degraded"], ours["degraded"]);
    proctor(args!["validate", &bundle.dir]).exits(0);
    json!([ours["mode"], ours["degraded"]])
}

/// What `doctor` says of this machine.
fn rooms() -> Value {
    let told = proctor(args!["doctor", "--json"]).stdout;
    let document: Value = serde_json::from_str(&told).expect("one document");
    for missing in document["remedies"].as_array().expect("remedies") {
        for key in ["name", "reason", "remedy"] {
            assert!(missing[key].as_str().is_some_and(|text| !text.is_empty()));
        }
    }
    document["rooms"].clone()
}

#[test]
fn a_rung_can_be_chosen_and_is_recorded() {
    let rooms = rooms();
    for rung in ["K4", "K3a", "K3b", "K1", "K0"] {
        let bench = Bench::fixtures(20.0);
        let done = run(&bench, &["--containment", rung]);
        if rooms["rungs"][rung]["state"] == "enforced" {
            done.exits(0);
            let bundle = bench.bundle();
            let isolation = &bundle.execution("GST")["isolation"];
            assert_eq!(isolation["containment"], rung);
        } else {
            done.exits(2).says(rung).says("does not give it");
            assert!(!bench.run_dir().exists());
        }
    }
    run(&Bench::fixtures(20.0), &["--containment", "K2"])
        .exits(2)
        .says("use one of K4, K3a, K3b, K1, K0");
}

#[test]
fn an_official_run_demands_what_it_needs() {
    let bench = Bench::fixtures(20.0);
    run(&bench, &["--official"])
        .exits(2)
        .says("nothing was started")
        .says("execution_policy.max_memory_bytes");
    run(&bench, &["--official", "--containment", "K0"])
        .exits(2)
        .says("containment: K0 is used, K3a or better is demanded; ");
    run(&bench, &["--allow-degraded"]).exits(2);
    assert!(!bench.run_dir().exists());

    let degraded = [MEMORY, &["--allow-degraded", "--containment", "K1"]].concat();
    run(&bench, &degraded)
        .exits(0)
        .says("warning: not as an official run must be: containment");
    let said = stamp(&bench);
    assert_eq!(said[0], "degraded");
    assert_eq!(
        said[1][0],
        "containment: K1 is used, K3a or better is demanded"
    );

    let local = Bench::fixtures(20.0);
    run(&local, &[]).exits(0);
    assert_eq!(stamp(&local), json!(["local", []]));
}

#[test]
fn an_official_run_is_one_where_the_machine_is_fit() {
    let rooms = rooms();
    let guards = &rooms["isolation"]["guards"];
    let holds = |name: &str| guards[name]["state"] == "enforced";
    let group = guards["memory"]["by"]
        .as_str()
        .is_some_and(|by| by.starts_with("cgroup"));
    let fit = ["K4", "K3a", "K3b"].contains(&rooms["best"].as_str().expect("a rung"))
        && ["network", "file_system", "system_calls"]
            .into_iter()
            .all(holds)
        && group;
    let bench = Bench::fixtures(20.0);
    let done = run(&bench, MEMORY);
    if fit {
        done.exits(0);
        assert_eq!(stamp(&bench), json!(["official", []]));
    } else {
        done.exits(2).says("--allow-degraded");
        let test = "official::an_official_run_is_one_where_the_machine_is_fit";
        skip(
            test,
            "this machine gives no official runs; the refusal was tested",
        );
    }
}
