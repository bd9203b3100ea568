//! The same run directory always merges to the same bytes, and two runs of one plan differ only where they must.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::args;
use crate::support::bench::Bench;
use crate::support::proctor::{command, finish, proctor};
use crate::support::tree;

const NONE: &[u32] = &[];

fn methods(bench: &Bench) -> Vec<Value> {
    vec![
        json!("Levenshtein"),
        bench.rogue("sleeper", &["1"]),
        bench.rogue("quitter", NONE),
        json!("GST"),
    ]
}

#[test]
fn a_run_directory_merges_to_the_same_bytes_everywhere() {
    let bench = Bench::fixtures(2.0);
    bench.run(&methods(&bench)).exits(1);
    let published = tree(&bench.run_dir().join("bundle"));
    assert!(published.len() > 10, "{:?}", published.keys());

    let environments: [&[(&str, &str)]; 4] = [
        &[],
        &[("LANG", "C"), ("TZ", "UTC"), ("RAYON_NUM_THREADS", "1")],
        &[
            ("LC_ALL", "tr_TR.UTF-8"),
            ("LANG", "tr_TR.UTF-8"),
            ("TZ", "Asia/Kathmandu"),
        ],
        &[
            ("LC_ALL", "de_DE.UTF-8"),
            ("TZ", "America/St_Johns"),
            ("RAYON_NUM_THREADS", "7"),
        ],
    ];
    for (number, variables) in environments.into_iter().enumerate() {
        let out = bench.path(&format!("merged-{number}"));
        let mut merge = command(args!["merge", bench.run_dir(), "-o", &out]);
        merge
            .env_clear()
            .envs(variables.iter().copied())
            .current_dir("/");
        finish(merge).exits(0);
        same_files(&published, &tree(&out), &format!("{variables:?}"));
    }

    // The directory may be moved, and clocks go on.
    let moved = bench.path("moved");
    std::fs::rename(bench.run_dir(), &moved).expect("the run can be moved");
    let out = bench.path("merged-moved");
    proctor(args!["merge", &moved, "-o", &out]).exits(0);
    same_files(&published, &tree(&out), "moved");
}

/// Files by relative path.
type Files = BTreeMap<String, Vec<u8>>;

fn same_files(one: &Files, two: &Files, what: &str) {
    let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(one), names(two), "{what}");
    for (name, bytes) in one {
        assert!(&two[name] == bytes, "{what}: {name} differs");
    }
}

/// Where the JSON files of two runs of one plan may differ: times, and what follows from them. `*` stands for any position,
/// method id or attempt, `/**` at the end for everything below.
const MAY_DIFFER: &[&str] = &[
    "evidence/attempts/*/0001.local.r0.json /checkpoints/*/at_seconds",
    "evidence/attempts/*/0001.local.r0.json /checkpoints/*/elapsed_seconds",
    "evidence/attempts/*/0001.local.r0.json /started/run_id",
    "evidence/attempts/*/0001.local.r0.json /started/started_utc",
    "evidence/attempts/*/0001.local.r0.json /terminal/boottime_seconds",
    "evidence/attempts/*/0001.local.r0.json /terminal/cpu_seconds",
    "evidence/attempts/*/0001.local.r0.json /terminal/ended_utc",
    "evidence/attempts/*/0001.local.r0.json /terminal/facts/emptying_seconds",
    "evidence/attempts/*/0001.local.r0.json /terminal/facts/kill_delay_seconds",
    "evidence/attempts/*/0001.local.r0.json /terminal/measured/after/**",
    "evidence/attempts/*/0001.local.r0.json /terminal/measured/before/**",
    "evidence/attempts/*/0001.local.r0.json /terminal/measured/other_load/**",
    "evidence/attempts/*/0001.local.r0.json /terminal/measured/page_cache/**",
    "evidence/attempts/*/0001.local.r0.json /terminal/peak_memory_bytes",
    "evidence/attempts/*/0001.local.r0.json /terminal/wall_seconds",
    "evidence/plan.json /created_utc",
    "evidence/plan.json /run_id",
    "inventory.json /*/sha256",
    "inventory.json /*/size_bytes",
    "leaderboard.json /aggregate/*/elapsed_seconds",
    "leaderboard.json /metadata/execution_failures/*/elapsed_seconds",
    "leaderboard.json /metadata/reproducibility/created_utc",
    "leaderboard.json /metadata/reproducibility/proctor/measurements/*/boottime_seconds",
    "leaderboard.json /metadata/reproducibility/proctor/measurements/*/cpu_seconds",
    "leaderboard.json /metadata/reproducibility/proctor/measurements/*/measured/after/**",
    "leaderboard.json /metadata/reproducibility/proctor/measurements/*/measured/before/**",
    "leaderboard.json /metadata/reproducibility/proctor/measurements/*/measured/other_load/**",
    "leaderboard.json /metadata/reproducibility/proctor/measurements/*/measured/page_cache/**",
    "leaderboard.json /metadata/reproducibility/proctor/measurements/*/peak_memory_bytes",
    "leaderboard.json /metadata/reproducibility/proctor/measurements/*/wall_seconds",
    "leaderboard.json /metadata/reproducibility/proctor/run_id",
    "leaderboard.json /metadata/supervised_executions/*/boottime_seconds",
    "leaderboard.json /metadata/supervised_executions/*/cpu_seconds",
    "leaderboard.json /metadata/supervised_executions/*/ended_utc",
    "leaderboard.json /metadata/supervised_executions/*/facts/emptying_seconds",
    "leaderboard.json /metadata/supervised_executions/*/facts/kill_delay_seconds",
    "leaderboard.json /metadata/supervised_executions/*/measured/after/**",
    "leaderboard.json /metadata/supervised_executions/*/measured/before/**",
    "leaderboard.json /metadata/supervised_executions/*/measured/other_load/**",
    "leaderboard.json /metadata/supervised_executions/*/measured/page_cache/**",
    "leaderboard.json /metadata/supervised_executions/*/peak_memory_bytes",
    "leaderboard.json /metadata/supervised_executions/*/started_utc",
    "leaderboard.json /metadata/supervised_executions/*/wall_seconds",
    "leaderboard.json /per_dataset/*/elapsed_seconds",
    "leaderboard_reproducibility.json /created_utc",
    "leaderboard_reproducibility.json /proctor/measurements/*/boottime_seconds",
    "leaderboard_reproducibility.json /proctor/measurements/*/cpu_seconds",
    "leaderboard_reproducibility.json /proctor/measurements/*/measured/after/**",
    "leaderboard_reproducibility.json /proctor/measurements/*/measured/before/**",
    "leaderboard_reproducibility.json /proctor/measurements/*/measured/other_load/**",
    "leaderboard_reproducibility.json /proctor/measurements/*/measured/page_cache/**",
    "leaderboard_reproducibility.json /proctor/measurements/*/peak_memory_bytes",
    "leaderboard_reproducibility.json /proctor/measurements/*/wall_seconds",
    "leaderboard_reproducibility.json /proctor/run_id",
];

#[test]
fn two_runs_of_one_plan_differ_only_at_a_closed_list() {
    let bench = Bench::fixtures(2.0);
    let methods = methods(&bench);
    bench.run(&methods).exits(1);
    std::fs::rename(bench.run_dir(), bench.path("first")).expect("the run can be moved");
    bench.run(&methods).exits(1);
    let (first, second) = (
        tree(&bench.path("first/bundle")),
        tree(&bench.run_dir().join("bundle")),
    );

    let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&first), names(&second));
    let mut differing = BTreeSet::new();
    for (name, bytes) in &first {
        if Path::new(name)
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            let value = |bytes: &[u8]| -> Value { serde_json::from_slice(bytes).expect("JSON") };
            let mut found = BTreeSet::new();
            differences("", &value(bytes), &value(&second[name]), &mut found);
            let name = general(name);
            differing.extend(found.into_iter().map(|pointer| format!("{name} {pointer}")));
        }
    }
    let allowed = |pointer: &String| {
        MAY_DIFFER
            .iter()
            .any(|allowed| match allowed.strip_suffix("**") {
                Some(above) => pointer.starts_with(above),
                None => pointer == allowed,
            })
    };
    let surprising: Vec<_> = differing
        .iter()
        .filter(|pointer| !allowed(pointer))
        .collect();
    assert!(surprising.is_empty(), "{surprising:#?}");

    // The score files hold no time and no name: they are the same bytes.
    let scores = |files: Files| -> Files {
        files
            .into_iter()
            .filter(|(name, _)| name.starts_with("scores/"))
            .collect()
    };
    let one = scores(first);
    assert!(!one.is_empty());
    same_files(&one, &scores(second), "scores");
}

/// A path with method ids replaced by `*`.
fn general(name: &str) -> String {
    let part = |part: &str| {
        if part.len() == 64 {
            "*".to_owned()
        } else {
            part.to_owned()
        }
    };
    name.split('/').map(part).collect::<Vec<_>>().join("/")
}

fn differences(at: &str, one: &Value, two: &Value, found: &mut BTreeSet<String>) {
    match (one, two) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                // A method's id is a position, not a name.
                let name = if key.len() == 64 { "*" } else { key.as_str() };
                let none = Value::Null;
                let (a, b) = (a.get(key).unwrap_or(&none), b.get(key).unwrap_or(&none));
                differences(&format!("{at}/{name}"), a, b, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (a, b) in a.iter().zip(b) {
                differences(&format!("{at}/*"), a, b, found);
            }
        }
        _ if one == two => {}
        _ => {
            found.insert(at.to_owned());
        }
    }
}
