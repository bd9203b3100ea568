//! Exit codes, and what is said with them.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::args;
use crate::support::bench::Bench;
use crate::support::proctor::{self, proctor};

#[test]
fn wrong_input_is_2_and_says_what_it_is() {
    let bench = Bench::fixtures(20.0);
    let methods = bench.methods(&[json!("GST")]);
    let run = |more: &[&str]| {
        let mut command = proctor::command(args![
            "run",
            bench.protocol(),
            &methods,
            "-o",
            bench.run_dir()
        ]);
        command.args(more);
        let done = proctor::finish(command).exits(2);
        assert!(!bench.run_dir().exists(), "{more:?}");
        done
    };
    run(&["--jobs", "0"]).says("1 or more");
    run(&["--worker", "/bin/true"]).says("is not a proctor worker");
    let long = "x".repeat(5000);
    for name in ["", ".", "..", "inventory", "bundle", &long] {
        let done = run(&["--basename", name]);
        assert!(done.stderr.len() < 1000, "{name}");
    }
    assert!(run(&["--only", &long]).stderr.len() < 2000);
    bench.run(&[json!("GST")]).exits(0);

    std::fs::write(bench.path("other.json"), "{\"a\": 1}").expect("a file can be written");
    proctor(args!["validate", bench.path("other.json")])
        .exits(2)
        .says("is not a bundle");
    proctor(args![
        "validate",
        bench.run_dir().join("bundle"),
        "--scores",
        bench.path("none")
    ])
    .exits(2)
    .says("no such folder");
    proctor(args!["merge", bench.protocol(), "-o", bench.path("m")])
        .exits(2)
        .says("is not a bundle");
    proctor(args!["status", bench.path(&"y".repeat(3000))])
        .exits(2)
        .says("is not a run directory");
    std::fs::create_dir(bench.path("empty")).expect("a folder can be made");
    proctor(args!["merge", bench.path("empty"), "-o", bench.path("m")])
        .exits(2)
        .says("neither a run directory");
    let empty = bench.path("empty/protocol.json");
    proctor(args![
        "protocol",
        "export",
        bench.protocol(),
        "-o",
        empty.join("x")
    ])
    .exits(2);
    let told = proctor(args![
        "protocol",
        "export",
        bench.protocol(),
        "-o",
        &empty,
        "--json"
    ])
    .exits(0);
    let told: Value = serde_json::from_str(&told.stdout).expect("one JSON document");
    assert_eq!(told["output"], json!(empty));
}

#[test]
fn a_run_with_failures_merges_and_a_lost_score_file_is_3() {
    let bench = Bench::fixtures(1e-320);
    bench.run(&[json!("GST")]).exits(1).says("1e-320 s");
    proctor(args!["merge", bench.run_dir()]).exits(0);

    let bench = Bench::fixtures(20.0);
    bench.run(&[json!("GST")]).exits(0);
    let id = bench.bundle().id_of("GST").to_owned();
    let file: PathBuf = bench.run_dir().join(format!(
        "methods/{id}/attempts/0001.local.r0/scores/0-test.f64"
    ));
    let bytes = std::fs::read(&file).expect("scores");
    std::fs::write(&file, &bytes[8..]).expect("it can be written");
    proctor(args!["merge", bench.run_dir()])
        .exits(3)
        .says("the checkpoint promises");
    std::fs::remove_file(&file).expect("it can be removed");
    proctor(args!["merge", bench.run_dir()])
        .exits(3)
        .says("the checkpoint promises");
}

#[test]
fn what_is_odd_but_allowed_is_said() {
    let bench = Bench::fixtures(20.0);
    let mut good = bench.rogue::<&str>("good", &[]);
    good["env"] = json!(["PROCTOR_TEST_NOT_SET"]);
    let mut command = bench.run_command(&[good], &["--basename", "my board"]);
    command.env_remove("PROCTOR_TEST_NOT_SET");
    proctor::finish(command)
        .exits(0)
        .says("PROCTOR_TEST_NOT_SET, which is not set")
        .says("are named my_board");
    assert!(bench.bundle().payload_file().ends_with("my_board.json"));
}
