//! Limits of the protocol and of the command line: who sets them, what becomes of them, and what the bundle says.

use serde_json::{Value, json};

use crate::args;
use crate::support::bench::Bench;
use crate::support::proctor::{self, proctor};
use crate::support::{json, repository};

const NONE: &[u32] = &[];

/// The fixtures with these keys in `execution_policy`.
fn limited(keys: &Value) -> Bench {
    Bench::of(&repository().join("fixtures/manifest.json"), |manifest| {
        manifest["execution_policy"] = keys.clone();
        manifest["execution_policy"]["max_method_seconds"] = json!(20.0);
    })
}

#[test]
fn the_protocol_sets_limits_and_the_command_line_only_stricter_ones() {
    let keys = json!({ "max_memory_bytes": 1 << 29, "max_output_bytes": 100_000_000, "cpus": 1 });
    let bench = limited(&keys);
    let protocol = json(&bench.protocol());
    assert_eq!(protocol["execution_policy"]["max_memory_bytes"], 1 << 29);
    let plain = json(&Bench::fixtures(20.0).protocol());
    assert_ne!(
        protocol["protocol_id"], plain["protocol_id"],
        "limits are part of the identity"
    );
    for (option, value) in [
        ("--max-memory", "1G"),
        ("--max-output", "100000001"),
        ("--max-processes", "4097"),
        ("--grace", "1"),
        ("--cpus", "2"),
    ] {
        let command = bench.run_command(&[json!("GST")], &[option, value]);
        proctor::finish(command)
            .exits(2)
            .says(option)
            .says("options can only be stricter");
        assert!(!bench.run_dir().exists());
    }

    let methods = [json!("GST"), bench.rogue("chatterbox", NONE)];
    let run = bench.run_command(&methods, &["--max-output", "90K", "--max-memory", "256M"]);
    proctor::finish(run)
        .exits(1)
        .says("stricter than the protocol: max_memory_bytes, max_output_bytes");
    let bundle = bench.bundle();
    assert_eq!(bundle.outcome("GST"), "completed");
    assert_eq!(bundle.outcome("chatterbox"), "resource_limit");
    let execution = bundle.execution("GST");
    for guard in ["memory", "output"] {
        let guard = &execution["isolation"]["guards"][guard];
        assert_eq!(guard["state"], "enforced", "{guard}");
    }
    assert_eq!(execution["cores"], 1);
    let limits = json!({ "cpus": 1, "max_memory_bytes": 1 << 28, "max_output_bytes": 90 << 10 });
    let stricter = json!(["max_memory_bytes", "max_output_bytes"]);
    let policy = json(&bundle.dir.join("evidence/plan.json"))["policy"].clone();
    assert_eq!(policy["limits"], limits);
    assert_eq!(policy["stricter_than_protocol"], stricter);
    let ours = &bundle.payload["metadata"]["reproducibility"]["proctor"];
    assert_eq!(ours["limits"], limits);
    assert_eq!(ours["stricter_than_protocol"], stricter);
    proctor(args!["validate", &bundle.dir]).exits(0);
}

#[test]
fn limits_that_cannot_be_meant_are_refused_when_the_benchmark_is_frozen() {
    let bench = Bench::empty();
    let mut manifest = json(&repository().join("fixtures/manifest.json"));
    for (key, value) in [
        ("max_memory_bytes", json!("64M")),
        ("max_processes", json!(0)),
        ("grace_seconds", json!(0.5)),
    ] {
        manifest["execution_policy"] = json!({ "max_method_seconds": 2.0 });
        manifest["execution_policy"][key] = value;
        let file = bench.path("manifest.json");
        crate::support::write_json(&file, &manifest);
        proctor(args!["freeze", file, "-o", bench.protocol()])
            .exits(2)
            .says(&format!("execution_policy.{key}: is "));
    }
}
