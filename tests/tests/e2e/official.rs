//! Rungs by name, and runs that demand what results for others need.

use std::process::Command;

use serde_json::{Value, json};

use crate::args;
use crate::support::bench::Bench;
use crate::support::proctor::{self, Done, proctor};
use crate::support::{json, skip, write_json};

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
        .says("containment: K0 is used, K3b or better is demanded; ");
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
        "containment: K1 is used, K3b or better is demanded"
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
        && ["network", "file_system", "cpu_set"].into_iter().all(holds)
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

#[test]
fn a_room_that_lost_a_protection_takes_the_stamp_away() {
    let bench = Bench::fixtures(20.0);
    let done = run(&bench, MEMORY);
    if done.code == Some(2) {
        let test = "official::a_room_that_lost_a_protection_takes_the_stamp_away";
        skip(test, "this machine gives no official runs");
        return;
    }
    done.exits(0);
    let id = bench.bundle().id_of("GST").to_owned();
    let record = bench.run_dir().join("methods").join(&id);
    let file = record.join("attempts/0001.local.r0/terminal.json");
    let mut terminal = json(&file);
    terminal["isolation"]["guards"]["network"] = json!({"state": "unavailable", "reason": "gone"});
    write_json(&file, &terminal);
    let told = proctor(args!["merge", bench.run_dir()]).exits(0);
    assert!(told.stdout.starts_with("NOT OFFICIAL: "), "{}", told.stdout);
    let lacking = "network: was not enforced (gone), in the room of GST";
    assert_eq!(stamp(&bench), json!(["degraded", [lacking]]));
    let attempt = format!("evidence/attempts/{id}/0001.local.r0.json");
    let evidence = json(&bench.bundle().dir.join(attempt));
    let guard = &evidence["terminal"]["isolation"]["guards"]["network"];
    assert_eq!(guard["reason"], "gone");
}

#[test]
fn the_command_to_run_it_again_gives_the_same_limits_and_rooms() {
    let bench = Bench::fixtures(20.0);
    let options = ["--max-scratch", "64M", "--containment", "K1", "--jobs", "1"];
    run(&bench, &options).exits(0);
    let plan = json(&bench.bundle().dir.join("evidence/plan.json"));
    let again = plan["run_again"][1].as_str().expect("a command");
    assert!(
        again.starts_with(
            "proctor run PROTOCOL methods.json -o RUN_DIR --jobs 1 --max-scratch 67108864 --containment K1 "
        ),
        "{again}"
    );
}

/// A mark of a process that could not be killed: one that this test keeps alive.
#[test]
fn a_tainted_machine_is_said_until_its_processes_are_gone() {
    let bench = Bench::fixtures(20.0);
    let mut left = Command::new("sleep")
        .arg("600")
        .spawn()
        .expect("sleep starts");
    let pid = left.id();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let after_name = stat.rsplit_once(')').expect("a name").1;
    let started: u64 = after_name
        .split_whitespace()
        .nth(19)
        .and_then(|field| field.parse().ok())
        .expect("a start time");
    let namespace = std::fs::read_link("/proc/self/ns/pid").expect("a namespace");
    let namespace: String = namespace
        .to_string_lossy()
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot id");
    let folder = bench.path("temporary");
    std::fs::create_dir(&folder).expect("a folder can be made");
    let mark = folder.join("proctor-tainted-0011");
    write_json(
        &mark,
        &json!({
            "schema": "proctor.tainted/1",
            "boot_id": boot.trim(),
            "pid_namespace": namespace.parse::<u64>().expect("a number"),
            "run_id": "earlier",
            "processes": [{"pid": pid, "state": "D", "started": started}],
        }),
    );
    let run = |output: &str, options: &[&str]| {
        let methods = bench.methods(&[json!("GST")]);
        let mut command = proctor::command(args![
            "run",
            bench.protocol(),
            methods,
            "-o",
            bench.path(output)
        ]);
        command.args(options).env("TMPDIR", &folder);
        proctor::finish(command)
    };
    let said = format!("tainted machine: processes {pid} (D) of run earlier could not be killed");
    run("one", MEMORY)
        .exits(2)
        .says(&said)
        .says("restart the machine");
    assert!(!bench.path("one").exists());
    run("two", &[]).exits(0).says(&format!("warning: {said}"));
    let mut doctor = proctor::command(args!["doctor", "--json"]);
    let told = proctor::finish({
        doctor.env("TMPDIR", &folder);
        doctor
    });
    let told: Value = serde_json::from_str(&told.stdout).expect("one document");
    assert!(
        told["tainted"][0]
            .as_str()
            .is_some_and(|text| text.starts_with(&said))
    );
    assert!(mark.exists());
    left.kill().expect("it is alive");
    left.wait().expect("it ends");
    run("three", &[])
        .exits(0)
        .says("are gone: every one has ended");
    assert!(!mark.exists());
    let told = run("four", &[]).exits(0);
    assert!(
        !told.stderr.contains("could not be killed"),
        "{}",
        told.stderr
    );
}
