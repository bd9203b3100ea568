//! Kill anything, lose nothing: runs that are killed over and over, at random instants and while they go on from the last kill,
//! end as if nothing had happened, and no dataset with a durable checkpoint is ever asked again.
//!
//! `PROCTOR_KILLS` says how many kills; 40 without it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::args;
use crate::support::bench::Bench;
use crate::support::oracle::Oracle;
use crate::support::proctor::{command, finish, proctor};
use crate::support::{repository, wait_for};

const METHODS: usize = 8;
/// Milliseconds a method takes for each of its five datasets.
const PACE: u32 = 60;
/// The longest life of a supervisor.
const LIFE: u64 = 1500;

/// Numbers by chance, the same for the same seed (splitmix64).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// A benchmark of five datasets, and eight methods for it.
pub(crate) fn benchmark() -> (Bench, PathBuf) {
    let bench = Bench::of(&repository().join("fixtures/manifest.json"), |manifest| {
        manifest["execution_policy"]["max_method_seconds"] = json!(600);
        let datasets = manifest["datasets"].as_array_mut().expect("datasets");
        for at in [0, 1] {
            let mut again = datasets[at].clone();
            again["name"] = json!(format!("again_{at}"));
            datasets.push(again);
        }
        assert_eq!(datasets.len(), 5);
    });
    let methods: Vec<Value> = (0..METHODS)
        .map(|number| {
            let mut method = bench.rogue("plodder", &[PACE, number as u32]);
            method["name"] = json!(format!("plodder {number}"));
            method
        })
        .collect();
    let methods = bench.methods(&methods);
    (bench, methods)
}

fn jobs() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    cores.min(2).to_string()
}

/// What must not depend on what happened on the way: every score, rank and count.
pub(crate) fn results(bundle: &Path) -> Vec<String> {
    let bundle = crate::support::bundle::Bundle::open(bundle);
    let mut lines = Vec::new();
    for (part, fields) in [
        (
            "per_dataset",
            &[
                "dataset_name",
                "metric",
                "algorithm_name",
                "score",
                "rank",
                "status",
                "sample_count",
            ][..],
        ),
        (
            "aggregate",
            &[
                "family",
                "metric",
                "algorithm_name",
                "mean_score",
                "rank",
                "dataset_count",
            ][..],
        ),
    ] {
        let rows = bundle.payload[part].as_array().expect("rows");
        assert!(!rows.is_empty());
        for row in rows {
            let fields = fields.iter().map(|field| row[*field].to_string());
            lines.push(format!("{part}: {}", fields.collect::<Vec<_>>().join(" ")));
        }
    }
    lines
}

/// The attempts of each method, oldest first.
pub(crate) fn attempts(run: &Path) -> Vec<Vec<PathBuf>> {
    let mut methods = Vec::new();
    for method in std::fs::read_dir(run.join("methods"))
        .expect("methods")
        .flatten()
    {
        let folder = method.path().join("attempts");
        let mut attempts: Vec<_> = std::fs::read_dir(folder)
            .expect("attempts")
            .flatten()
            .map(|entry| entry.path())
            .collect();
        attempts.sort();
        methods.push(attempts);
    }
    methods
}

/// What the worker of an attempt was asked, by its own account.
pub(crate) fn asked(attempt: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(attempt.join("stderr")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.strip_prefix("asked "));
    lines.map(str::to_owned).collect()
}

/// The datasets of which an attempt has a durable checkpoint, read without the program under test.
fn durable(attempt: &Path) -> Vec<usize> {
    let text = std::fs::read_to_string(attempt.join("checkpoints.log")).unwrap_or_default();
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| serde_json::from_str::<Value>(line).expect("a whole line is a record"))
        .map(|line| line["record"]["dataset"].as_u64().expect("a number") as usize)
        .collect()
}

/// Demands that nothing was asked again of which an earlier attempt had a checkpoint. Gives how many attempts there were,
/// and how many times a dataset was kept from an earlier one.
pub(crate) fn nothing_ran_twice(run: &Path, order: &[String]) -> (usize, usize) {
    let (mut count, mut kept) = (0, 0);
    for attempts in attempts(run) {
        let mut done: BTreeSet<&str> = BTreeSet::new();
        for attempt in &attempts {
            count += 1;
            for digest in asked(attempt) {
                assert!(
                    !done.contains(digest.as_str()),
                    "{}: a dataset with a checkpoint ran again",
                    attempt.display()
                );
            }
            kept += done.len();
            done.extend(durable(attempt).into_iter().map(|at| order[at].as_str()));
        }
        assert_eq!(done.len(), order.len(), "{attempts:?}");
    }
    (count, kept)
}

/// The parent and the state of every process.
fn parents() -> BTreeMap<i32, i32> {
    let mut parents = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let stat = std::fs::read(entry.path().join("stat")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat).into_owned();
        let parent = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_ascii_whitespace().nth(1)?.parse().ok());
        if let Some(parent) = parent {
            parents.insert(pid, parent);
        }
    }
    parents
}

/// The rooms' own processes below a supervisor, and the workers below those.
fn below(supervisor: i32) -> (Vec<i32>, Vec<i32>) {
    let parents = parents();
    let children = |of: i32| -> Vec<i32> {
        let children = parents.iter().filter(|(_, parent)| **parent == of);
        children.map(|(pid, _)| *pid).collect()
    };
    let inits = children(supervisor);
    let workers = inits.iter().flat_map(|init| children(*init)).collect();
    (inits, workers)
}

/// Kills something of a running supervisor: itself in three of five cases, else a room's own process or a worker. True when it
/// was the supervisor; `None` when there was nothing to kill.
fn strike(child: &Child, chance: &mut Chance) -> Option<bool> {
    let supervisor = i32::try_from(child.id()).expect("a process id");
    let (inits, workers) = below(supervisor);
    let (victims, itself) = match chance.below(5) {
        0 => (inits, false),
        1 => (workers, false),
        _ => (vec![supervisor], true),
    };
    let at = chance.below(victims.len().max(1) as u64);
    let victim = victims.get(usize::try_from(at).expect("small"))?;
    kill(Pid::from_raw(*victim), Signal::SIGKILL).ok()?;
    Some(itself)
}

#[test]
fn a_run_that_is_killed_again_and_again_ends_as_if_nothing_had_happened() {
    let kills: usize = std::env::var("PROCTOR_KILLS")
        .map_or(40, |text| text.parse().expect("PROCTOR_KILLS is a number"));
    let seed = std::env::var("PROCTOR_SEED").ok();
    let seed = seed.map_or_else(
        || {
            let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970");
            u64::from(now.subsec_nanos())
        },
        |text| text.parse().expect("PROCTOR_SEED is a number"),
    );
    println!("PROCTOR_SEED={seed}");
    let mut chance = Chance(seed);
    let (bench, methods) = benchmark();
    let jobs = jobs();
    let begin = |run: &Path| {
        command(args![
            "run",
            bench.protocol(),
            &methods,
            "-o",
            run,
            "--jobs",
            &jobs
        ])
    };
    let calm = bench.path("calm");
    finish(begin(&calm)).exits(0);
    let expected = results(&calm.join("bundle"));
    // In an undisturbed attempt the datasets are asked in their order.
    let order = asked(&attempts(&calm)[0][0]);
    assert_eq!(order.len(), 5);

    let oracle = Oracle::new(bench.path("").as_path());
    let (mut struck, mut runs, mut kept) = (0, 0, 0);
    while struck < kills {
        runs += 1;
        let run = bench.path(&format!("run-{runs}"));
        loop {
            // What was killed before there was a plan was never started.
            let resume = run.join("run.json").exists();
            let next = if resume {
                command(args!["resume", &run, "--retry-failed"])
            } else {
                begin(&run)
            };
            if struck >= kills {
                break;
            }
            let mut child = oracle
                .watch(&next)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("proctor starts");
            let over = loop {
                let until = Instant::now() + Duration::from_millis(chance.below(LIFE));
                let over = loop {
                    if let Some(status) = child.try_wait().expect("proctor is ours") {
                        break Some(status);
                    }
                    if Instant::now() >= until {
                        break None;
                    }
                    std::thread::sleep(Duration::from_millis(1));
                };
                if over.is_some() {
                    break over;
                }
                match strike(&child, &mut chance) {
                    Some(true) => {
                        struck += 1;
                        child.wait().expect("proctor is ours");
                        break None;
                    }
                    Some(false) => struck += 1,
                    None => {}
                }
            };
            if over.is_some_and(|status| status.success()) {
                break;
            }
        }
        // Whoever is set aside by then is tried once more, and a method that was killed last is, too.
        let done = (0..4).any(|_| {
            let next = if run.join("run.json").exists() {
                command(args!["resume", &run, "--retry-failed"])
            } else {
                begin(&run)
            };
            finish(next).code == Some(0)
        });
        assert!(done, "{}: it does not end", run.display());
        assert_eq!(results(&run.join("bundle")), expected, "{}", run.display());
        kept += nothing_ran_twice(&run, &order).1;
        proctor(args![
            "validate",
            run.join("bundle"),
            "--protocol",
            bench.protocol()
        ])
        .exits(0);
        wait_for("the rooms to be empty", || oracle.survivors().is_empty());
    }
    println!("{struck} kills in {runs} runs; {kept} times a dataset was kept");
    assert!(kept > 0);
}
