//! One run with two honest methods and five rogues: everyone gets what is theirs, and nothing stays behind.

use std::time::Duration;

use serde_json::json;

use crate::args;
use crate::support::bench::Bench;
use crate::support::oracle::Oracle;
use crate::support::proctor;

const BUDGET: f64 = 4.0;
const NONE: &[u32] = &[];

#[test]
fn five_rogues_and_two_honest_methods() {
    let bench = Bench::fixtures(BUDGET);
    let oracle = Oracle::new(bench.path("").as_path());
    let methods = [
        json!("Levenshtein"),
        bench.rogue("sleeper", NONE),
        bench.rogue("busy", &[1]),
        bench.rogue("daemon", NONE),
        bench.rogue("quitter", &[1]),
        bench.rogue("crasher", &[2]),
        json!("Jaro-Winkler"),
    ];
    let run = bench.run_command(&methods, &[]);
    let done = proctor::finish(oracle.watch(&run)).exits(1);

    assert_eq!(
        oracle.survivors(),
        Vec::<String>::new(),
        "nothing may be alive"
    );
    let budgets = Duration::from_secs_f64(BUDGET * methods.len() as f64 + 2.0);
    assert!(
        done.wall < budgets,
        "took {:?}, allowed {budgets:?}",
        done.wall
    );

    let bundle = bench.bundle();
    assert_eq!(bundle.outcome("Levenshtein"), "completed");
    assert_eq!(bundle.outcome("Jaro-Winkler"), "completed");
    assert_eq!(bundle.outcome("sleeper"), "timeout");
    assert_eq!(bundle.outcome("busy"), "timeout");
    assert_eq!(bundle.outcome("daemon"), "completed");
    assert_eq!(bundle.outcome("quitter"), "incomplete(1/3)");
    assert_eq!(bundle.outcome("crasher"), "signal(11)");
    let facts = |name: &str| bundle.execution(name)["facts"].clone();
    assert_eq!(facts("daemon")["leaked_processes"], 1);
    assert_eq!(facts("Levenshtein")["leaked_processes"], 0);

    // What was finished before the misdeed counts; the rest is null and says why.
    let all = ["java_pairs", "programs_retrieval", "python_pairs"];
    for honest in ["Levenshtein", "Jaro-Winkler", "daemon"] {
        assert_eq!(bundle.scored(honest), all, "{honest}");
    }
    assert_eq!(bundle.scored("sleeper"), [""; 0]);
    assert_eq!(bundle.scored("busy").len(), 1);
    assert_eq!(bundle.scored("quitter").len(), 1);
    assert_eq!(bundle.scored("crasher").len(), 2);
    for (name, error) in [
        (
            "sleeper",
            "TimeoutError: the budget of 4.0 seconds was used up",
        ),
        (
            "busy",
            "TimeoutError: the budget of 4.0 seconds was used up",
        ),
        (
            "quitter",
            "Incomplete: the worker ended after 1 of 3 datasets",
        ),
        ("crasher", "WorkerCrash: signal 11"),
    ] {
        for row in bundle.rows_of(name) {
            if row["score"].is_null() {
                assert_eq!(row["status"], "failed");
                assert_eq!(row["error"], error);
                assert_eq!(row["rank"], json!(null));
            } else {
                assert_eq!(row["status"], "completed");
            }
        }
    }

    // The supervised wall time of the two that hung is the budget and little more.
    for name in ["sleeper", "busy"] {
        let wall = bundle.execution(name)["wall_seconds"]
            .as_f64()
            .expect("a wall time");
        assert!((BUDGET..BUDGET + 0.5).contains(&wall), "{name}: {wall}");
    }
    let failures = bundle.payload["metadata"]["execution_failures"]
        .as_array()
        .expect("failures");
    let mut failed: Vec<_> = failures
        .iter()
        .map(|f| f["algorithm_id"].as_str())
        .collect();
    let mut expected: Vec<_> = ["sleeper", "busy", "quitter", "crasher"]
        .map(|name| Some(bundle.id_of(name)))
        .into();
    failed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(failed, expected);

    proctor::proctor(args![
        "validate",
        bundle.dir,
        "--protocol",
        bench.protocol()
    ])
    .exits(0);
}
