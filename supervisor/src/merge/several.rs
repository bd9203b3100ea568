//! Methods with several attempts: what counts of them, and that it does not matter which came first.

use super::tests::{Run, run};
use crate::rundir::Supervisor;
use crate::rundir::durable;
use crate::rundir::plan::parts;
use crate::rundir::record::AttemptId;
use crate::rundir::session::{Mode, Request};
use proctor_protocol::canonical::{Value, pretty, read};
use proctor_protocol::outcome::Outcome;

/// A method that was cut off after two parts, once more after the third, and went on each time.
fn gone_on_with(backwards: bool) -> Run {
    let run = run(r#"["Levenshtein"]"#, "manifest.validation.json");
    let method = &run.plan.methods[0];
    let asked = parts(&run.plan.protocol, method);
    assert_eq!(asked.len(), 4);
    let (done, lost) = (Some(Outcome::Completed), None);
    run.attempt(method, 1, 2, lost.clone());
    run.attempt_after(method, 2, 1, &asked[2..3], lost);
    run.attempt_after(method, 3, 2, &asked[3..], done);
    if backwards {
        // The same files, made in the other order.
        let folder = run.dir().attempts_dir(&method.id);
        for number in (1..=3).rev() {
            let attempt = folder.join(format!("000{number}.local.r0"));
            let aside = folder.join("aside");
            std::fs::rename(&attempt, &aside).unwrap();
            std::fs::rename(&aside, &attempt).unwrap();
        }
    }
    run
}

#[test]
fn an_attempt_that_goes_on_counts_with_everything_it_inherits() {
    let run = gone_on_with(false);
    let merged = run.merge();
    assert_eq!(merged.methods[0].outcome, Outcome::Completed);
    assert!(!merged.document.is_incomplete());
    let numbers = merged.methods[0].numbers(&run.plan);
    assert_eq!((numbers.done, numbers.total), (2, 2));
    // What all attempts used: half a second up to each checkpoint that was gone on from, and the last one's own time.
    assert_eq!(numbers.wall_seconds, 0.5 + 0.5 + 3.25);
    let supervised = merged.methods[0].supervised(&run.plan);
    assert_eq!(supervised.get("earlier_seconds"), Some(&Value::Float(1.0)));
    let history = supervised.get("history").unwrap().as_array().unwrap();
    let lost = Outcome::Infrastructure("supervisor lost".into()).to_value();
    let outcomes: Vec<&Value> = history
        .iter()
        .map(|one| one.get("outcome").unwrap())
        .collect();
    assert_eq!(outcomes, [&lost, &lost, &Outcome::Completed.to_value()]);
    let inherited: Vec<Option<i64>> = history
        .iter()
        .map(|one| one.get("inherited").unwrap().as_int())
        .collect();
    assert_eq!(inherited, [Some(0), Some(2), Some(3)]);
    assert_eq!(run.bundle("one"), gone_on_with(true).bundle("two"));
}

#[test]
fn a_supervisor_that_lives_on_after_it_was_given_up_changes_nothing_that_counts() {
    let run = gone_on_with(false);
    let before = run.bundle("before");
    // The second attempt ends after the third began, with another outcome.
    let method = &run.plan.methods[0];
    let dir = run.dir().attempt_dir(&method.id, &AttemptId::local(2));
    let last = run.dir().attempt_dir(&method.id, &AttemptId::local(3));
    let mut late = read(&std::fs::read(last.join("terminal.json")).unwrap()).unwrap();
    let outcome = Outcome::Timeout.to_value();
    late.as_object_mut().unwrap().insert("outcome", outcome);
    durable::write_file(&dir.join("terminal.json"), pretty(&late).as_bytes()).unwrap();
    assert_eq!(run.merge().methods[0].outcome, Outcome::Completed);
    let after = run.bundle("after");
    for (name, bytes) in &before {
        if name.starts_with("scores/") || name.ends_with("_per_dataset.csv") {
            assert_eq!(&after[name], bytes, "{name}");
        }
    }
}

#[test]
fn a_later_session_proves_that_an_attempt_without_an_end_was_lost() {
    let run = run(r#"["Levenshtein"]"#, "manifest.json");
    run.attempt(&run.plan.methods[0], 1, 1, None);
    let reason = |run: &Run| run.merge().methods[0].outcome.to_string();
    assert!(reason(&run).contains("it goes on, or"), "{}", reason(&run));
    let request = Request {
        run_id: "r1".into(),
        nonce: "n1".into(),
        created_utc: "2026-01-01T00:00:00Z".into(),
        host: "h".into(),
        boot_id: "b".into(),
        supervisor: Supervisor::this(),
        version: "0".into(),
        binary_sha256: "00".into(),
        mode: Mode::Continue,
        retry_failed: false,
        core_sets: vec![vec![0]],
        methods: Vec::new(),
    };
    run.dir().claim_session(1, &request).unwrap();
    assert!(reason(&run).contains("it goes on, or"), "{}", reason(&run));
    run.dir().claim_session(2, &request).unwrap();
    assert_eq!(reason(&run), "infrastructure(supervisor lost)");
}
