//! Going on with a run: what is kept, what is charged, what is asked again, and when it is refused.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::args;
use crate::support::bench::Bench;
use crate::support::proctor::{Done, command, finish, proctor};
use crate::support::{json as read, repository, tree, wait_for};

const NONE: &[u32] = &[];

/// Starts a command, waits until something is so, and kills it as a power cut would.
fn cut_off(mut command: Command, what: &str, so: impl FnMut() -> bool) {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("proctor starts");
    wait_for(what, so);
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    kill(pid, Signal::SIGKILL).expect("the supervisor is alive");
    child.wait().expect("proctor is ours");
}

fn resume(bench: &Bench, more: &[&str]) -> Done {
    let mut resume = command(args!["resume", bench.run_dir()]);
    resume.args(more);
    finish(resume)
}

/// The folder of an attempt of the only method with a folder, by its number.
fn attempt(bench: &Bench, number: u32) -> PathBuf {
    let methods = std::fs::read_dir(bench.run_dir().join("methods"));
    let mut methods = methods.into_iter().flatten().flatten();
    let method = methods.next().map(|method| method.path());
    let name = format!("attempts/{number:04}.local.r0");
    method.map_or_else(|| PathBuf::from("/nowhere"), |method| method.join(name))
}

/// How many durable checkpoints an attempt has.
fn checkpoints(attempt: &Path) -> usize {
    let log = std::fs::read(attempt.join("checkpoints.log")).unwrap_or_default();
    log.split(|byte| *byte == b'\n').count() - 1
}

fn status(bench: &Bench) -> Value {
    let status = proctor(args!["status", bench.run_dir(), "--json"]).exits(0);
    serde_json::from_str(&status.stdout).expect("JSON")
}

fn valid(bench: &Bench) {
    let bundle = bench.run_dir().join("bundle");
    proctor(args!["validate", bundle, "--protocol", bench.protocol()]).exits(0);
}

/// A method that answers one dataset at once and is busy with the next for ever, cut off there.
fn cut_off_in_the_second(bench: &Bench) {
    let methods = [bench.rogue("busy", &[1])];
    cut_off(
        bench.run_command(&methods, &[]),
        "the first checkpoint",
        || checkpoints(&attempt(bench, 1)) == 1,
    );
}

#[test]
fn what_is_durable_is_kept_and_charged_and_the_lost_attempt_stays_as_evidence() {
    let bench = Bench::fixtures(60.0);
    let methods = [bench.rogue("plodder", &[300])];
    cut_off(
        bench.run_command(&methods, &[]),
        "the first checkpoint",
        || checkpoints(&attempt(&bench, 1)) == 1,
    );
    let before = status(&bench);
    assert_eq!(before["methods"][0]["state"], "lost");
    assert_eq!(before["driven"], "no");
    let advice = before["advice"].as_str().expect("an advice");
    assert!(advice.contains("proctor resume"), "{advice}");
    // A bundle can be made before, and says that it is not whole.
    proctor(args!["merge", bench.run_dir(), "-o", bench.path("early")]).exits(0);
    assert_eq!(read(&bench.path("early/bundle.json"))["complete"], false);

    let lost = tree(&attempt(&bench, 1));
    resume(&bench, &[]).exits(0);
    assert_eq!(
        tree(&attempt(&bench, 1)),
        lost,
        "the lost attempt was touched"
    );
    let started = read(&attempt(&bench, 2).join("started.json"));
    let ancestry = &started["ancestry"];
    assert_eq!(ancestry["reason"], "continue");
    let inherited = ancestry["inherited"].as_array().expect("a list");
    assert_eq!(inherited.len(), 1);
    assert_eq!(inherited[0]["attempt"], "0001.local.r0");
    let earlier = ancestry["earlier_seconds"].as_f64().expect("seconds");
    assert!((0.3..60.0).contains(&earlier), "{earlier}");
    assert_eq!(ancestry["lost"][0]["attempt"], "0001.local.r0");
    assert_eq!(checkpoints(&attempt(&bench, 2)), 2);

    valid(&bench);
    let bundle = bench.bundle();
    assert_eq!(bundle.scored("plodder").len(), 3);
    let execution = bundle.execution("plodder");
    assert_eq!(execution["attempts"], 2);
    let history = execution["history"].as_array().expect("a history");
    let lost = json!({ "kind": "infrastructure", "reason": "supervisor lost" });
    assert_eq!(history[0]["outcome"], lost);
    assert_eq!(
        (&history[0]["counts"], &history[1]["counts"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(execution["earlier_seconds"], earlier);
    let page = std::fs::read_to_string(bundle.dir.join("leaderboard_details.html"));
    let page = page.expect("a page");
    assert!(page.contains("0001.local.r0") && page.contains("supervisor lost"));
    let after = status(&bench);
    assert_eq!(after["methods"][0]["attempts"][0]["counts"], false);
    assert_eq!(after["methods"][0]["attempts"][1]["counts"], true);
    assert_eq!(after["advice"], Value::Null);
    proctor(args!["status", bench.run_dir()])
        .exits(0)
        .says("0001.local.r0 first: was cut off");
}

#[test]
fn the_budget_goes_on_from_the_last_checkpoint() {
    // Nine tenths of the budget are used when the supervisor is lost; what is left is not enough for a dataset.
    let bench = Bench::fixtures(2.5);
    let methods = [bench.rogue("plodder", &[1000])];
    cut_off(
        bench.run_command(&methods, &[]),
        "the second checkpoint",
        || checkpoints(&attempt(&bench, 1)) == 2,
    );
    let done = resume(&bench, &[]).exits(1);
    assert_eq!(bench.bundle().outcome("plodder"), "timeout");
    assert_eq!(bench.bundle().scored("plodder").len(), 2);
    let wall = read(&attempt(&bench, 2).join("terminal.json"))["wall_seconds"].as_f64();
    let wall = wall.expect("seconds");
    let started = read(&attempt(&bench, 2).join("started.json"));
    let earlier = started["ancestry"]["earlier_seconds"].as_f64();
    let used = earlier.expect("seconds") + wall;
    assert!((2.5..2.6).contains(&used), "{used}");
    assert!(done.stdout.contains("used up its budget of 2.500 s"));
    valid(&bench);
    // A timeout stays one, however often it is tried: nothing is left to try with.
    resume(&bench, &[]).exits(1).says("nothing is run again");
    resume(&bench, &["--retry-failed"]).exits(1);
    assert_eq!(bench.bundle().outcome("plodder"), "timeout");
    assert_eq!(bench.bundle().execution("plodder")["attempts"], 3);
    assert!(
        !attempt(&bench, 3).join("stderr").exists(),
        "a worker was started"
    );
    valid(&bench);
}

#[test]
fn restart_begins_anew_with_the_whole_budget() {
    let bench = Bench::fixtures(3.0);
    cut_off_in_the_second(&bench);
    resume(&bench, &["--restart"]).exits(1);
    let started = read(&attempt(&bench, 2).join("started.json"));
    assert_eq!(started["ancestry"]["reason"], "restart");
    assert_eq!(started["ancestry"]["inherited"], json!([]));
    assert_eq!(checkpoints(&attempt(&bench, 2)), 1);
    let wall = read(&attempt(&bench, 2).join("terminal.json"))["wall_seconds"].as_f64();
    assert!(wall.expect("seconds") >= 3.0);
    assert_eq!(bench.bundle().outcome("busy"), "timeout");
    valid(&bench);
}

#[test]
fn what_failed_by_its_own_fault_is_tried_again_only_on_request_and_visibly() {
    let bench = Bench::fixtures(30.0);
    // It answers everything and exits with code 3, so two of its three datasets count.
    let methods = [bench.rogue("exiter", NONE), json!("Levenshtein")];
    bench.run(&methods).exits(1);
    let first = tree(&bench.run_dir().join("bundle"));
    let failed = bench.bundle().outcome("exiter");
    resume(&bench, &[]).exits(1).says("nothing is run again");
    assert_eq!(tree(&bench.run_dir().join("bundle")), first);
    assert!(!bench.run_dir().join("submissions/0002").exists());
    resume(&bench, &["--retry-failed"]).exits(1);
    let bundle = bench.bundle();
    assert_eq!(bundle.outcome("exiter"), failed);
    let execution = bundle.execution("exiter");
    assert_eq!(execution["attempts"], 2);
    assert_eq!(execution["history"][1]["reason"], "retry");
    assert_eq!(execution["history"][1]["inherited"], 2);
    // The whole of the failed attempt is charged: the method itself used it.
    assert_eq!(
        execution["earlier_seconds"],
        execution["history"][0]["wall_seconds"]
    );
    assert_eq!(bundle.execution("Levenshtein")["attempts"], 1);
    valid(&bench);
}

#[test]
fn what_somebody_interrupted_is_gone_on_with() {
    let bench = Bench::fixtures(60.0);
    let methods = [bench.rogue("plodder", &[300]), json!("GST")];
    let mut child = bench
        .run_command(&methods, &[])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("proctor starts");
    wait_for("the first checkpoint", || {
        checkpoints(&attempt(&bench, 1)) == 1
    });
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    kill(pid, Signal::SIGINT).expect("the supervisor is alive");
    assert_eq!(child.wait().expect("proctor is ours").code(), Some(130));
    let advice = status(&bench)["advice"].clone();
    assert!(
        advice
            .as_str()
            .is_some_and(|text| text.contains("proctor resume")),
        "{advice}"
    );
    resume(&bench, &[]).exits(0);
    let bundle = bench.bundle();
    assert_eq!(bundle.outcome("plodder"), "completed");
    assert_eq!(bundle.outcome("GST"), "completed");
    // It had no attempt in the first session, so its only one carries the number of the second.
    assert_eq!(bundle.execution("GST")["attempt"], "0002.local.r0");
    assert_eq!(bundle.execution("GST")["attempts"], 1);
    valid(&bench);
}

#[test]
fn a_run_goes_on_only_with_what_it_was_planned_with() {
    let bench = Bench::of(&repository().join("fixtures/manifest.json"), |manifest| {
        manifest["execution_policy"]["max_method_seconds"] = json!(5);
    });
    // Data of its own, to be changed.
    let data = bench.path("data");
    copy(&repository().join("fixtures/python_pairs"), &data);
    let manifest = bench.path("manifest.json");
    let mut edited = read(&manifest);
    edited["datasets"][0]["path"] = json!(data);
    std::fs::write(&manifest, edited.to_string()).expect("the manifest can be written");
    std::fs::remove_file(bench.protocol()).expect("it was frozen");
    crate::support::proctor::freeze(&manifest, &bench.protocol());
    cut_off_in_the_second(&bench);
    let before = tree(&bench.run_dir());

    let data = data.display().to_string();
    let changes = [
        ("methods.json", "methods.json: SHA-256 is"),
        ("protocol.json", "protocol.json: SHA-256 is"),
        ("rogue-busy", "rogue-busy: SHA-256 is"),
        ("data/pairs.csv", data.as_str()),
    ];
    for (name, words) in changes {
        let path = bench.path(name);
        let kept = std::fs::read(&path).expect("it can be read");
        let text = String::from_utf8_lossy(&kept).into_owned();
        let edited = if path.extension().is_some_and(|kind| kind == "csv") {
            text.replacen(",1\n", ",0\n", 1).into_bytes()
        } else {
            [kept.as_slice(), b"\n"].concat()
        };
        assert_ne!(edited, kept, "{name}");
        std::fs::write(&path, edited).expect("it can be written");
        resume(&bench, &[]).exits(2).says(words);
        assert_eq!(
            tree(&bench.run_dir()),
            before,
            "{name}: something was written"
        );
        std::fs::write(&path, kept).expect("it can be put back");
    }
    // An input that is gone is no other input: the plan holds all that was in it.
    std::fs::remove_file(bench.path("methods.json")).expect("it is there");
    resume(&bench, &["--restart"]).says("starts anew");
}

fn copy(from: &Path, to: &Path) {
    for (name, bytes) in tree(from) {
        let path = to.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }
}

#[test]
fn another_program_or_worker_is_refused() {
    let bench = Bench::fixtures(60.0);
    let worker = bench.path("worker");
    std::fs::copy(crate::support::programs().join("proctor-worker"), &worker).expect("a copy");
    let methods = [bench.rogue("busy", &[1]), json!("GST")];
    let run = bench.run_command(&methods, &["--worker", worker.to_str().expect("text")]);
    cut_off(run, "the first checkpoint", || {
        checkpoints(&attempt(&bench, 1)) == 1
    });
    let before = tree(&bench.run_dir());

    let other = bench.path("proctor");
    let mut bytes = std::fs::read(crate::support::programs().join("proctor")).expect("a program");
    bytes.push(0);
    std::fs::write(&other, bytes).expect("a copy");
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let mut resumed = Command::new(&other);
    resumed.args(args!["resume", bench.run_dir()]);
    finish(resumed)
        .exits(2)
        .says("proctor: SHA-256 is")
        .says("was planned with");

    let mut bytes = std::fs::read(&worker).expect("a program");
    bytes.push(0);
    std::fs::write(&worker, bytes).expect("a copy");
    resume(&bench, &[]).exits(2).says("worker: SHA-256 is");
    std::fs::remove_file(&worker).expect("it is there");
    resume(&bench, &[])
        .exits(2)
        .says("worker: cannot be read any more");
    assert_eq!(tree(&bench.run_dir()), before, "something was written");
}

#[test]
fn of_two_who_go_on_with_a_run_one_does() {
    let bench = Bench::fixtures(60.0);
    let methods = [bench.rogue("plodder", &[400])];
    cut_off(
        bench.run_command(&methods, &[]),
        "the first checkpoint",
        || checkpoints(&attempt(&bench, 1)) == 1,
    );
    let all: Vec<_> = (0..3)
        .map(|_| {
            command(args!["resume", bench.run_dir()])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("proctor starts")
        })
        .collect();
    let ends: Vec<_> = all
        .into_iter()
        .map(|child| child.wait_with_output().expect("proctor ends"))
        .collect();
    let said: Vec<_> = ends
        .iter()
        .map(|end| {
            (
                end.status.code(),
                String::from_utf8_lossy(&end.stderr).into_owned(),
            )
        })
        .collect();
    let won = said.iter().filter(|(code, _)| *code == Some(0)).count();
    // One that came when all was over had nothing to do.
    let idle = said
        .iter()
        .filter(|(_, text)| text.contains("nothing is run again"))
        .count();
    assert_eq!(won - idle, 1, "{said:#?}");
    for (code, text) in said.iter().filter(|(code, _)| *code != Some(0)) {
        assert_eq!(*code, Some(2), "{text}");
        assert!(text.contains("is being run by somebody else"), "{text}");
        assert!(text.contains("process "), "{text}");
    }
    assert!(!bench.run_dir().join("submissions/0003").exists());
    assert!(!attempt(&bench, 3).exists());
    assert_eq!(bench.bundle().execution("plodder")["attempts"], 2);
}

#[test]
fn a_run_that_goes_on_is_not_resumed() {
    let bench = Bench::fixtures(60.0);
    let mut child = bench
        .run_command(&[bench.rogue("busy", &[1])], &[])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("proctor starts");
    wait_for("the first checkpoint", || {
        checkpoints(&attempt(&bench, 1)) == 1
    });
    let pid = child.id();
    resume(&bench, &[])
        .exits(2)
        .says(&format!("process {pid} "));
    assert_eq!(status(&bench)["driven"], "yes");
    proctor(args![
        "merge",
        bench.run_dir(),
        "-o",
        bench.path("meanwhile")
    ])
    .exits(0);
    let process = Pid::from_raw(i32::try_from(pid).expect("a process id"));
    for _ in 0..2 {
        kill(process, Signal::SIGINT).expect("the supervisor is alive");
    }
    child.wait().expect("proctor ends");
}

#[test]
fn who_was_taken_for_dead_stands_back() {
    let bench = Bench::fixtures(60.0);
    let mut child = bench
        .run_command(&[bench.rogue("plodder", &[500]), json!("GST")], &[])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("proctor starts");
    wait_for("the first checkpoint", || {
        checkpoints(&attempt(&bench, 1)) == 1
    });
    // As somebody on another machine would.
    let sessions = bench.run_dir().join("submissions");
    std::fs::create_dir(sessions.join("0002")).expect("a folder");
    std::fs::copy(
        sessions.join("0001/request.json"),
        sessions.join("0002/request.json"),
    )
    .expect("a record");
    assert_eq!(child.wait().expect("proctor ends").code(), Some(3));
    let attempt = attempt(&bench, 1);
    assert!(!attempt.join("terminal.json").exists());
    let superseded = read(&attempt.join("superseded.json"));
    assert_eq!(superseded["schema"], "proctor.attempt-terminal/1");
    assert_eq!(checkpoints(&attempt), 1);
    // Nothing else was started.
    let methods = std::fs::read_dir(bench.run_dir().join("methods")).expect("methods");
    assert_eq!(methods.count(), 1);
}

#[test]
fn what_was_never_started_can_be_run_and_not_resumed() {
    let bench = Bench::fixtures(60.0);
    resume(&bench, &[]).exits(2).says("has no run.json");
    std::fs::create_dir(bench.run_dir()).expect("a folder");
    // Left by somebody who was killed over the plan.
    std::fs::write(bench.run_dir().join(".aB3x.part"), "{").expect("a file");
    resume(&bench, &[]).exits(2).says("has no run.json");
    bench.run(&[json!("Levenshtein")]).exits(0);
    bench
        .run(&[json!("Levenshtein")])
        .exits(2)
        .says("proctor resume");
}

#[test]
fn a_finished_dataset_whose_scores_are_damaged_is_asked_again() {
    let bench = Bench::fixtures(60.0);
    let methods = [bench.rogue("plodder", &[300])];
    cut_off(
        bench.run_command(&methods, &[]),
        "the second checkpoint",
        || checkpoints(&attempt(&bench, 1)) == 2,
    );
    let scores = attempt(&bench, 1).join("scores/0-test.f64");
    let length = std::fs::metadata(&scores).expect("scores").len() as usize;
    std::fs::write(&scores, vec![0; length]).expect("zeros");
    resume(&bench, &[]).exits(0);
    let started = read(&attempt(&bench, 2).join("started.json"));
    let inherited = started["ancestry"]["inherited"].as_array().expect("a list");
    let datasets: Vec<_> = inherited
        .iter()
        .map(|one| &one["checkpoint"]["dataset"])
        .collect();
    assert_eq!(datasets, [1]);
    assert_eq!(bench.bundle().scored("plodder").len(), 3);
    valid(&bench);
}

#[test]
fn whoever_wants_to_know_is_told_at_the_end() {
    let bench = Bench::fixtures(60.0);
    let note = bench.path("note");
    let tell = format!(
        "sh -c 'printf \"%s|%s|%s\" \"$0\" \"$1\" \"$PROCTOR_EXIT_CODE\" > \"{}\"'",
        note.display()
    );
    let methods = [json!("Levenshtein"), bench.rogue("mute", NONE)];
    let file = bench.methods(&methods[..1]);
    let mut run = command(args!["run", bench.protocol(), &file, "-o", bench.run_dir()]);
    run.args(["--on-finish", &tell]);
    finish(run).exits(0);
    let told = std::fs::read_to_string(&note).expect("it was told");
    let bundle = bench.run_dir().join("merged/0001");
    let id = &read(&bundle.join("bundle.json"))["benchmark_id"];
    let id = id.as_str().expect("an id");
    assert_eq!(
        told,
        format!(
            "{id}: 1 of 1 methods completed, 0 failed, 0 without a result|{}|0",
            bundle.display()
        )
    );
    // Its own failure changes nothing, and a command that is none is refused before anything starts.
    resume(&bench, &["--on-finish", "false"])
        .exits(0)
        .says("warning: --on-finish: false failed");
    resume(&bench, &["--on-finish", "'"]).exits(2);
}
