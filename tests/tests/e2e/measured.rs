//! What is recorded of the machine around an attempt, where it is published, and what of it people are told.

use serde_json::{Value, json};

use crate::args;
use crate::support::bench::Bench;
use crate::support::burner::{Burner, NEIGHBOUR, SECRET};
use crate::support::proctor::proctor;
use crate::support::{json, tree};

/// The terminal record of the only attempt of a method.
fn terminal(bench: &Bench, name: &str) -> Value {
    let log = bench.stderr_log(name);
    json(&log.with_file_name("terminal.json"))
}

#[test]
fn heavy_load_beside_a_method_is_recorded_published_and_told() {
    let bench = Bench::fixtures(1.0);
    let sleeper = bench.rogue("sleeper", &["0"]);
    let two = [Burner::start(&bench), Burner::start(&bench)];
    bench.run(&[sleeper, json!("Jaro")]).exits(1);
    drop(two);

    let measured = terminal(&bench, "sleeper")["measured"].clone();
    let load = &measured["other_load"];
    assert_eq!(load["heavy"], true, "{load}");
    let number = |field: &str| {
        load[field]
            .as_f64()
            .unwrap_or_else(|| panic!("{field}: {load}"))
    };
    let of = number("of_cores");
    assert!((0.1 * of..=of + 0.1).contains(&number("cores")), "{load}");
    assert!(
        number("seconds") >= 1.0 && number("heavy_processes") >= 1.0,
        "{load}"
    );
    let heaviest = load["heaviest"].as_array().expect("a list");
    let seen = heaviest.iter().any(|heavy| heavy["name"] == NEIGHBOUR);
    // Tests run beside each other: five others may have been heavier.
    assert!(seen || heaviest.len() == 5, "{load}");

    // Whatever is null has a reason, and whatever has a reason is null.
    for part in ["machine", "before", "after", "page_cache", "other_load"] {
        let object = measured[part].as_object().expect("an object");
        let unknown = object["unknown"].as_object().expect("an object");
        for field in unknown.keys() {
            assert!(object[field].is_null(), "{part}.{field}: {}", object[field]);
        }
        for (field, value) in object {
            let excused = matches!(field.as_str(), "heavy" | "heavy_processes");
            assert!(
                !value.is_null() || excused || unknown.contains_key(field),
                "{part}.{field}"
            );
        }
    }
    assert_eq!(
        measured["before"]["load_average"].as_array().map(Vec::len),
        Some(3)
    );
    // They were read right before, but a machine that is short of memory may have dropped them again.
    for files in ["worker", "datasets"] {
        let cached = &measured["page_cache"][files];
        let resident = cached["resident"].as_f64().expect("a number");
        assert!((0.0..=1.0).contains(&resident), "{cached}");
        assert!(cached["bytes"].as_u64() > Some(0), "{cached}");
        assert_eq!(cached["all"], true, "{cached}");
    }
    let cores = json(&bench.run_dir().join("run.json"))["policy"]["core_sets"][0].clone();
    assert_eq!(measured["cores"], cores);
    let kind = measured["cpu_time"]["kind"].as_str().expect("a word");
    assert!(["exact", "lower bound", "unknown"].contains(&kind));

    // The bundle repeats the record in its three places.
    let bundle = bench.run_dir().join("bundle");
    let payload = json(&bundle.join("leaderboard.json"));
    let reproducibility = json(&bundle.join("leaderboard_reproducibility.json"));
    let entries = payload["metadata"]["supervised_executions"]
        .as_array()
        .expect("entries");
    let measurements = reproducibility["proctor"]["measurements"]
        .as_array()
        .expect("entries");
    assert_eq!((entries.len(), measurements.len()), (2, 2));
    for (name, cpu) in [("sleeper", Value::Null), ("Jaro", json!("some"))] {
        let record = terminal(&bench, name);
        let same = |entry: &&Value| entry["measured"] == record["measured"];
        assert!(entries.iter().any(|entry| same(&entry)), "{name}");
        let found = measurements.iter().find(same).expect(name);
        for field in [
            "wall_seconds",
            "boottime_seconds",
            "cpu_seconds",
            "peak_memory_bytes",
        ] {
            assert_eq!(found[field], record[field], "{name}: {field}");
        }
        assert_eq!(found["suspended_seconds"], 0.0, "{name}");
        assert!(
            cpu.is_null() || record["cpu_seconds"].as_f64() > Some(0.0),
            "{name}"
        );
    }
    let noun = if of == 1.0 { "core" } else { "cores" };
    let sentence = format!(" of {of} {noun}; its times are not comparable.");
    let page = std::fs::read_to_string(bundle.join("leaderboard.html")).expect("a page");
    assert!(page.contains(&sentence), "{sentence}");
    let status = proctor(args!["status", bench.run_dir()]).exits(0).stdout;
    assert!(status.contains("; beside it, "), "{status}");

    // Command lines hold secrets, and none is read.
    for (name, bytes) in tree(&bench.run_dir()) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(SECRET), "{name}");
    }
    proctor(args!["validate", &bundle]).exits(0);
}
