//! Merging run directories written by hand: what counts, what does not, and that the bytes repeat.

use super::{Merged, merge_run};
use crate::rundir::Supervisor;
use crate::rundir::ancestry::{Ancestry, Inherited, Lost, Reason};
use crate::rundir::durable::{self, Appender};
use crate::rundir::plan::{Machine, Policy, WorkerBinary, parts};
use crate::rundir::record::{Answer, AttemptId, Checkpoint, Part, Started, Terminal};
use crate::rundir::scores::write_scores;
use crate::rundir::state::read_attempt;
use crate::rundir::{Plan, RunDir};
use proctor_protocol::canonical::{Value, pretty, read};
use proctor_protocol::freeze::freeze;
use proctor_protocol::frozen::LoadedEntry;
use proctor_protocol::method::{Method, load_methods};
use proctor_protocol::object;
use proctor_protocol::outcome::Outcome;
use proctor_protocol::public_metadata::is_local_path;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(crate) struct Run {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) plan: Plan,
    loaded: Vec<LoadedEntry>,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures")
}

pub(crate) fn run(methods: &str, manifest: &str) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("methods.json");
    std::fs::write(&file, methods).unwrap();
    let manifest = read(&std::fs::read(fixtures().join(manifest)).unwrap()).unwrap();
    let base = std::path::absolute(fixtures()).unwrap();
    let protocol = freeze(&manifest, &base, None).unwrap();
    let loaded = protocol.verify_data().unwrap();
    let plan = Plan {
        run_id: "r1".into(),
        nonce: "n1".into(),
        created_utc: "2026-01-01T00:00:00Z".into(),
        version: "0".into(),
        binary_sha256: "00".into(),
        command_line: vec!["/usr/bin/proctor".into(), "run".into()],
        inputs: Vec::new(),
        basename: "board".into(),
        protocol,
        methods: load_methods(&file).unwrap(),
        policy: Policy {
            budget_seconds: 3.0,
            jobs: 1,
            core_sets: vec![vec![0]],
            limits: proctor_protocol::frozen::ExecutionLimits::default(),
            official: false,
            degraded: Vec::new(),
            load: None,
            containment: None,
            worker: WorkerBinary {
                path: None,
                sha256: String::new(),
            },
        },
        machine: Machine {
            host: "h".into(),
            system: "Linux".into(),
            release: "6".into(),
            architecture: "x".into(),
            processor: "p".into(),
        },
    };
    let run = RunDir::new(&folder.path().join("run"));
    durable::create_dir_all(run.root()).unwrap();
    plan.write(&run).unwrap();
    Run {
        folder,
        plan,
        loaded,
    }
}

impl Run {
    pub(crate) fn dir(&self) -> RunDir {
        RunDir::new(&self.folder.path().join("run"))
    }

    /// Writes an attempt that scored its first `answered` parts.
    pub(crate) fn attempt(
        &self,
        method: &Method,
        number: u32,
        answered: usize,
        outcome: Option<Outcome>,
    ) {
        let asked = parts(&self.plan.protocol, method);
        self.attempt_with(
            method,
            number,
            Ancestry::default(),
            &asked[..answered],
            outcome,
        );
    }

    /// Writes an attempt that goes on from the last one, which has no attempt after it yet, and scored these parts.
    pub(crate) fn attempt_after(
        &self,
        method: &Method,
        number: u32,
        from: u32,
        answered: &[Part],
        outcome: Option<Outcome>,
    ) {
        let from = AttemptId::local(from);
        let dir = self.dir().attempt_dir(&method.id, &from);
        let before = read_attempt(from.clone(), dir).unwrap();
        let own = before.checkpoints.iter().map(|checkpoint| Inherited {
            from: from.clone(),
            checkpoint: checkpoint.clone(),
        });
        let ancestry = Ancestry {
            reason: Reason::Continue,
            inherited: before.inherited().iter().cloned().chain(own).collect(),
            earlier_seconds: before.earlier_seconds() + 0.5,
            lost: vec![Lost {
                attempt: from.clone(),
                seconds: Some(1.25),
            }],
        };
        self.attempt_with(method, number, ancestry, answered, outcome);
    }

    fn attempt_with(
        &self,
        method: &Method,
        number: u32,
        ancestry: Ancestry,
        answered: &[Part],
        outcome: Option<Outcome>,
    ) {
        let dir = self
            .dir()
            .attempt_dir(&method.id, &AttemptId::local(number));
        durable::create_dir_all(&dir.join("scores")).unwrap();
        let begun = Started {
            run_id: self.plan.run_id.clone(),
            nonce: self.plan.nonce.clone(),
            method_id: method.id.clone(),
            started_utc: "2026-01-01T00:00:00Z".into(),
            host: "h".into(),
            boot_id: "b".into(),
            supervisor: Supervisor {
                namespace: 1,
                pid: 1,
                started: 1,
            },
            cores: vec![0],
            budget_seconds: 3.0,
            ancestry,
        };
        let text = pretty(&begun.to_value());
        durable::write_file(&dir.join("started.json"), text.as_bytes()).unwrap();
        let mut log = Appender::create(&dir.join("checkpoints.log")).unwrap();
        for &part in answered {
            let items = self.items(part);
            let scores: Vec<f64> = (0..items).map(|n| (n % 7) as f64 / 7.0).collect();
            let sha256 = write_scores(&dir.join(part.score_file()), &scores).unwrap();
            let checkpoint = Checkpoint {
                part,
                elapsed_seconds: 0.5,
                at_seconds: 0.5,
                answer: Answer::Scored { items, sha256 },
            };
            log.append(&checkpoint.to_line()).unwrap();
        }
        let Some(outcome) = outcome else {
            return;
        };
        let terminal = Terminal {
            outcome,
            facts: object! {},
            isolation: object! {},
            wall_seconds: 3.25,
            boottime_seconds: 3.25,
            measured: Value::Null,
            cpu_seconds: None,
            cpu_exact: false,
            peak_memory_bytes: Some(4096),
            ended_as: None,
            worker: "w".into(),
            ended_utc: "2026-01-01T00:00:04Z".into(),
        };
        let text = pretty(&terminal.to_value());
        durable::write_file(&dir.join("terminal.json"), text.as_bytes()).unwrap();
    }

    fn items(&self, part: Part) -> u64 {
        let loaded = &self.loaded[part.dataset];
        match part.role {
            crate::rundir::Role::Test => loaded.test.item_count(),
            crate::rundir::Role::Validation => loaded.validation.as_ref().unwrap().item_count(),
        }
    }

    pub(super) fn merge(&self) -> Merged<'_> {
        let parent = self.folder.path().join("out");
        merge_run(&self.dir(), &self.plan, &self.loaded, "board", &parent).unwrap()
    }

    pub(super) fn bundle(&self, name: &str) -> BTreeMap<String, Vec<u8>> {
        let target = self.folder.path().join(name);
        self.merge().bundle.publish(&target).unwrap();
        let mut files = BTreeMap::new();
        collect(&target, "", &mut files);
        files
    }
}

pub(super) fn collect(folder: &Path, below: &str, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{below}{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            collect(&entry.path(), &format!("{name}/"), files);
        } else {
            files.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
}

fn errors(merged: &Merged<'_>, method: &Method) -> Vec<Option<String>> {
    let rows = merged.document.rows().iter();
    rows.filter(|row| row.algorithm_id.as_ref() == method.id)
        .filter(|row| ["f1", "mean_average_precision"].contains(&row.metric.as_ref()))
        .map(|row| row.error.as_deref().map(str::to_owned))
        .collect()
}

#[test]
fn a_timed_out_method_keeps_what_it_finished_and_is_not_ranked() {
    let run = run(r#"["Levenshtein", "GST"]"#, "manifest.json");
    let [good, late] = run.plan.methods.as_slice() else {
        panic!("two methods");
    };
    run.attempt(good, 1, 3, Some(Outcome::Completed));
    run.attempt(late, 1, 1, Some(Outcome::Timeout));
    let merged = run.merge();
    assert!(!merged.document.is_incomplete());
    let timeout = Some("TimeoutError: the budget of 3.0 seconds was used up".to_owned());
    let found = errors(&merged, late);
    assert_eq!(found.len(), 3);
    assert_eq!(found.iter().filter(|error| error.is_none()).count(), 1);
    assert_eq!(found.iter().filter(|error| **error == timeout).count(), 2);
    for row in merged.document.aggregate() {
        assert_eq!(
            row.rank.is_some(),
            row.algorithm_id.as_ref() == good.id,
            "{row:?}"
        );
    }
    let failures = merged
        .document
        .metadata()
        .get("execution_failures")
        .unwrap();
    assert_eq!(
        *failures,
        Value::Array(vec![object! {
            "algorithm_id" => late.id.as_str(),
            "error" => "TimeoutError: the budget of 3.0 seconds was used up",
            "elapsed_seconds" => 3.25,
        }])
    );
}

#[test]
fn the_newest_attempt_counts_although_an_older_one_was_better() {
    let run = run(r#"["GST"]"#, "manifest.json");
    let method = &run.plan.methods[0];
    run.attempt(method, 1, 3, Some(Outcome::Completed));
    run.attempt(method, 2, 0, Some(Outcome::Signal(11)));
    let merged = run.merge();
    assert_eq!(merged.methods[0].outcome, Outcome::Signal(11));
    assert!(merged.document.rows().iter().all(|row| row.score.is_none()));
}

#[test]
fn without_a_terminal_record_the_bundle_is_incomplete_and_nobody_is_charged() {
    let run = run(r#"["GST", "Levenshtein"]"#, "manifest.json");
    run.attempt(&run.plan.methods[0], 1, 2, None);
    let merged = run.merge();
    assert!(merged.document.is_incomplete());
    let begun = errors(&merged, &run.plan.methods[0]);
    assert_eq!(begun.iter().filter(|error| error.is_none()).count(), 2);
    for error in errors(&merged, &run.plan.methods[1]) {
        assert!(error.unwrap().starts_with("NotCharged: "));
    }
}

#[test]
fn the_last_dataset_counts_only_when_the_method_answers_for_its_end() {
    // Every dataset has its checkpoint, but nothing proves a good end: interrupted, unkillable, or no record at all.
    let ends = [
        None,
        Some(Outcome::Interrupted),
        Some(Outcome::Infrastructure("unkillable: 12 (D)".into())),
    ];
    for end in ends {
        let run = run(r#"["GST"]"#, "manifest.json");
        let method = &run.plan.methods[0];
        run.attempt(method, 1, 3, end.clone());
        let merged = run.merge();
        assert!(merged.document.is_incomplete(), "{end:?}");
        let failed: Vec<String> = errors(&merged, method).into_iter().flatten().collect();
        assert_eq!(failed.len(), 1, "{end:?}");
        assert!(failed[0].starts_with("NotCharged: "), "{failed:?}");
        assert_eq!(merged.methods[0].numbers(&run.plan).done, 2, "{end:?}");
        let about = read(&run.bundle("b")["bundle.json"]).unwrap();
        assert_eq!(about.get("complete"), Some(&Value::Bool(false)), "{end:?}");
    }
}

#[test]
fn validation_data_is_not_counted_as_a_dataset() {
    let run = run(r#"["GST"]"#, "manifest.validation.json");
    let method = &run.plan.methods[0];
    run.attempt(method, 1, 3, Some(Outcome::Timeout));
    let merged = run.merge();
    let numbers = merged.methods[0].numbers(&run.plan);
    assert_eq!((numbers.done, numbers.total), (1, 2));
}

#[test]
fn the_same_records_give_the_same_bytes_and_name_no_folder_of_this_machine() {
    let run = run(r#"["Levenshtein", "GST"]"#, "manifest.validation.json");
    run.attempt(&run.plan.methods[0], 1, 4, Some(Outcome::Completed));
    run.attempt(&run.plan.methods[1], 1, 3, Some(Outcome::Timeout));
    let first = run.bundle("one");
    assert_eq!(first, run.bundle("two"));
    for name in ["bundle.json", "inventory.json", "board.json", "board.html"] {
        assert!(first.contains_key(name), "{name}");
    }
    let here = fixtures().canonicalize().unwrap();
    for (name, bytes) in &first {
        let text = String::from_utf8_lossy(bytes);
        assert!(!text.contains(here.to_str().unwrap()), "{name}");
        assert!(
            !text.contains(run.folder.path().to_str().unwrap()),
            "{name}"
        );
    }
}

/// Every text of a JSON value.
fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(object) => object.iter().for_each(|(_, item)| texts(item, found)),
        _ => {}
    }
}

#[test]
fn no_text_of_a_bundle_is_a_path_of_this_machine() {
    let mut run = run(r#"["Levenshtein", "GST", "Winnowing"]"#, "manifest.json");
    run.plan.command_line = vec!["/usr/bin/proctor".into(), "--output=/srv/runs/r".into()];
    run.plan.machine.processor = "/odd/name/".into();
    let reason = Outcome::Infrastructure("could not sync /srv/runs/r/terminal.json: full".into());
    run.attempt(&run.plan.methods[0], 1, 1, Some(reason));
    let what = Outcome::ProtocolError("/tmp/scratch/x is not a message".into());
    run.attempt(&run.plan.methods[1], 1, 1, Some(what));
    // A method's own words, and facts with paths in them.
    let failing = &run.plan.methods[2];
    run.attempt(failing, 1, 0, None);
    let dir = run.dir().attempt_dir(&failing.id, &AttemptId::local(1));
    let failed = Checkpoint {
        part: parts(&run.plan.protocol, failing)[0],
        elapsed_seconds: 0.5,
        at_seconds: 0.5,
        answer: Answer::Failed {
            error: "OSError: no file '/home/me/model.bin'".into(),
        },
    };
    std::fs::write(dir.join("checkpoints.log"), failed.to_line() + "\n").unwrap();
    let terminal = Terminal {
        outcome: Outcome::Exit(1),
        facts: object! { "scratch_left" => "/tmp/proctor-1: busy", "worker_error" => "see /var/log/x" },
        isolation: object! { "containment" => object! { "reason" => "/sys/fs/cgroup/x: denied" } },
        wall_seconds: 1.0,
        boottime_seconds: 1.0,
        measured: Value::Null,
        cpu_seconds: None,
        cpu_exact: false,
        peak_memory_bytes: Some(4096),
        ended_as: None,
        worker: "/opt/worker 1.0".into(),
        ended_utc: "2026-01-01T00:00:04Z".into(),
    };
    let text = pretty(&terminal.to_value());
    durable::write_file(&dir.join("terminal.json"), text.as_bytes()).unwrap();
    let files = run.bundle("b");
    let mut looked_at = 0;
    for (name, bytes) in files
        .iter()
        .filter(|(name, _)| Path::new(name).extension().is_some_and(|end| end == "json"))
    {
        let value = read(bytes).unwrap();
        let mut found = Vec::new();
        texts(&value, &mut found);
        for text in found {
            looked_at += 1;
            assert!(!is_local_path(text), "{name}: {text}");
        }
    }
    assert!(looked_at > 500, "{looked_at}");
    let page = String::from_utf8_lossy(&files["board_details.html"]).into_owned();
    assert!(
        page.contains("no file &#39;model.bin&#39;") || page.contains("no file 'model.bin'"),
        "{page}"
    );
}

#[test]
fn records_of_another_run_and_changed_scores_are_refused() {
    let run = run(r#"["GST"]"#, "manifest.json");
    let method = &run.plan.methods[0];
    run.attempt(method, 1, 1, Some(Outcome::Timeout));
    let dir = run.dir().attempt_dir(&method.id, &AttemptId::local(1));
    let parent = run.folder.path().join("out");
    let merge = |plan| merge_run(&run.dir(), plan, &run.loaded, "board", &parent).map(|_| ());
    let foreign = Plan {
        nonce: "other".into(),
        ..run.plan.clone()
    };
    let text = merge(&foreign).unwrap_err().to_string();
    assert!(text.contains("another run"), "{text}");
    let scores = dir.join("scores/0-test.f64");
    let mut bytes = std::fs::read(&scores).unwrap();
    bytes[3] ^= 1;
    std::fs::write(&scores, bytes).unwrap();
    let text = merge(&run.plan).unwrap_err().to_string();
    assert!(text.contains("0-test.f64"), "{text}");
    // A failed merge leaves nothing behind.
    assert_eq!(std::fs::read_dir(&parent).unwrap().count(), 0);
}

#[test]
fn the_plan_reads_back() {
    let run = run(
        r#"["GST", {"name": "p", "command": ["/bin/true"]}]"#,
        "manifest.json",
    );
    assert_eq!(Plan::read(&run.dir()).unwrap(), run.plan);
}
