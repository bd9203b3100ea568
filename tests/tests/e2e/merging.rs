//! The same run directory always merges to the same bytes, and two runs of one plan differ only where they must.

use std::collections::BTreeSet;
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

fn same_files(
    one: &std::collections::BTreeMap<String, Vec<u8>>,
    two: &std::collections::BTreeMap<String, Vec<u8>>,
    what: &str,
) {
    let names = |files: &std::collections::BTreeMap<String, Vec<u8>>| -> Vec<String> {
        files.keys().cloned().collect()
    };
    assert_eq!(names(one), names(two), "{what}");
    for (name, bytes) in one {
        assert!(&two[name] == bytes, "{what}: {name} differs");
    }
}

/// The JSON pointers at which the payloads of two runs of one plan may differ; `*` stands for any position or id.
const MAY_DIFFER: &[&str] = &[
    "/aggregate/*/elapsed_seconds",
    "/per_dataset/*/elapsed_seconds",
];

#[test]
fn two_runs_of_one_plan_differ_only_at_a_closed_list() {
    let bench = Bench::fixtures(2.0);
    let methods = methods(&bench);
    bench.run(&methods).exits(1);
    let first = bench.bundle();
    std::fs::rename(bench.run_dir(), bench.path("first")).expect("the run can be moved");
    bench.run(&methods).exits(1);
    let second = bench.bundle();

    let mut differing = BTreeSet::new();
    differences("", &first.payload, &second.payload, &mut differing);
    let allowed: BTreeSet<String> = MAY_DIFFER.iter().map(|p| (*p).to_owned()).collect();
    let surprising: Vec<_> = differing.difference(&allowed).collect();
    assert!(surprising.is_empty(), "{surprising:#?}");

    // The score files hold no time and no name: they are the same bytes.
    let scores = |root: &Path| tree(&root.join("scores"));
    let one = scores(&bench.path("first/bundle"));
    assert!(!one.is_empty());
    same_files(&one, &scores(&second.dir), "scores");
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
