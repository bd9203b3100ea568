//! Every short history of a method, played out against the rules that must hold of whatever is assigned.

use super::*;
use crate::rundir::Supervisor;
use crate::rundir::record::{AttemptId, Role, Started, Terminal};
use proctor_protocol::canonical::Value;
use proctor_protocol::object;
use std::path::PathBuf;

const BUDGET: f64 = 10.0;
/// What each part takes.
const EACH: f64 = 2.0;
/// What an attempt that is cut off ran on after its last checkpoint.
const AFTER: f64 = 1.0;

fn parts() -> Vec<Part> {
    (0..3)
        .map(|dataset| Part {
            dataset,
            role: Role::Test,
        })
        .collect()
}

/// How a simulated attempt ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// The supervisor is killed after so many answers.
    Lost(usize),
    /// Ctrl-C after so many answers.
    Interrupted(usize),
    /// Our side fails after so many answers.
    Infrastructure(usize),
    /// The method exits with an error after so many answers.
    Exit(usize),
    /// The budget is over after so many answers.
    Timeout(usize),
    /// Everything is answered well.
    Well,
    /// Everything is answered, the first part asked for with an error.
    FirstFails,
    /// The supervisor is killed when every part has an answer, the last one an error.
    LastFailsLost,
}

const ENDS: [End; 12] = [
    End::Lost(0),
    End::Lost(1),
    End::Lost(3),
    End::Interrupted(1),
    End::Infrastructure(0),
    End::Infrastructure(2),
    End::Exit(0),
    End::Exit(1),
    End::Timeout(1),
    End::Well,
    End::FirstFails,
    End::LastFailsLost,
];

const HOWS: [How; 4] = [
    How {
        mode: Mode::Continue,
        retry_failed: false,
        retries: 3,
    },
    How {
        mode: Mode::Continue,
        retry_failed: true,
        retries: 3,
    },
    How {
        mode: Mode::Restart,
        retry_failed: false,
        retries: 3,
    },
    How {
        mode: Mode::Restart,
        retry_failed: true,
        retries: 3,
    },
];

fn checkpoint(part: Part, at: usize, failed: bool) -> Checkpoint {
    Checkpoint {
        part,
        elapsed_seconds: EACH,
        at_seconds: EACH * (at + 1) as f64,
        answer: if failed {
            Answer::Failed { error: "x".into() }
        } else {
            Answer::Scored {
                items: 1,
                sha256: "ab".into(),
            }
        },
    }
}

fn terminal(outcome: &Outcome, wall_seconds: f64) -> Terminal {
    let value = object! {
        "schema" => "proctor.attempt-terminal/1",
        "outcome" => outcome.to_value(),
        "facts" => object! {},
        "isolation" => object! {},
        "wall_seconds" => wall_seconds,
        "boottime_seconds" => wall_seconds,
        "cpu_seconds" => Value::Null,
        "cpu_exact" => false,
        "ended_as" => Value::Null,
        "worker" => "w",
        "ended_utc" => "2026-01-01T00:00:01Z",
    };
    Terminal::from_value(&value, &PathBuf::from("terminal.json")).unwrap()
}

/// What the files say of an attempt that was assigned this and ended so; with how long it was seen to run.
fn played(number: u32, assignment: &Assignment, end: End) -> (Attempt, Option<f64>) {
    let asked = &assignment.parts;
    let left = BUDGET - assignment.ancestry.earlier_seconds;
    let (answers, outcome) = match end {
        _ if assignment.verdict.is_some() => (0, assignment.verdict.clone()),
        End::Lost(count) => (count, None),
        End::LastFailsLost => (asked.len(), None),
        End::Interrupted(count) => (count, Some(Outcome::Interrupted)),
        End::Infrastructure(count) => (count, Some(Outcome::Infrastructure("x".into()))),
        End::Exit(count) => (count, Some(Outcome::Exit(3))),
        End::Timeout(count) => (count, Some(Outcome::Timeout)),
        End::Well => (asked.len(), Some(Outcome::Completed)),
        End::FirstFails => (
            asked.len(),
            Some(Outcome::DatasetErrors {
                failed: 1,
                total: 3,
            }),
        ),
    };
    // The last scores are recorded only when the end was good.
    let good = matches!(
        end,
        End::Well | End::FirstFails | End::LastFailsLost | End::Lost(3) | End::Infrastructure(3)
    );
    let most = if good {
        asked.len()
    } else {
        asked.len().saturating_sub(1)
    };
    let answers = answers.min(most);
    let checkpoints: Vec<Checkpoint> = asked[..answers]
        .iter()
        .enumerate()
        .map(|(at, part)| {
            let failed = end == End::FirstFails && at == 0
                || end == End::LastFailsLost && at + 1 == asked.len();
            checkpoint(*part, at, failed)
        })
        .collect();
    let ran = EACH * answers as f64 + AFTER;
    let wall = if outcome == Some(Outcome::Timeout) {
        left.max(0.0)
    } else {
        ran
    };
    let wall = if assignment.verdict.is_some() {
        0.0
    } else {
        wall
    };
    let seen = outcome.is_none().then_some(ran);
    let attempt = Attempt {
        id: AttemptId::local(number),
        dir: PathBuf::new(),
        started: Some(Started {
            run_id: "r".into(),
            nonce: "n".into(),
            method_id: "m".into(),
            started_utc: "2026-01-01T00:00:00Z".into(),
            host: "h".into(),
            boot_id: "b".into(),
            supervisor: Supervisor {
                namespace: 1,
                pid: 1,
                started: 1,
            },
            cores: vec![0],
            budget_seconds: BUDGET,
            ancestry: assignment.ancestry.clone(),
        }),
        checkpoints,
        torn_tail: false,
        terminal: outcome.map(|outcome| terminal(&outcome, wall)),
    };
    (attempt, seen)
}

/// What must hold of an assignment, whatever came before.
fn check(attempts: &[Attempt], how: How, assigned: Option<&Assignment>) {
    let newest = attempts.last().unwrap();
    let outcome = newest.terminal.as_ref().map(|end| end.outcome.clone());
    let own_fault = outcome.as_ref().is_some_and(Outcome::charged);
    let unresolved = outcome == Some(Outcome::Unresolved);
    let story = || format!("{how:?}\n{attempts:#?}\n{assigned:#?}");
    let settled = match &outcome {
        Some(Outcome::Completed) => true,
        Some(_) => (own_fault || unresolved) && !how.retry_failed,
        None => false,
    };
    assert_eq!(assigned.is_none(), settled, "{}", story());
    let Some(assigned) = assigned else { return };
    let ancestry = &assigned.ancestry;

    // Every part is either kept or asked for, in order, and never both.
    let kept: Vec<Part> = ancestry
        .inherited
        .iter()
        .map(|one| one.checkpoint.part)
        .collect();
    let mut all = [kept.clone(), assigned.parts.clone()].concat();
    all.sort();
    assert_eq!(all, parts(), "{}", story());
    assert!(
        kept.is_sorted() && assigned.parts.is_sorted(),
        "{}",
        story()
    );
    // What is kept is what that attempt recorded.
    for one in &ancestry.inherited {
        let from = attempts
            .iter()
            .find(|attempt| attempt.id == one.from)
            .unwrap();
        assert!(from.checkpoints.contains(&one.checkpoint), "{}", story());
    }
    let lost: f64 = ancestry.lost.iter().filter_map(|one| one.seconds).sum();

    if how.mode == Mode::Restart && assigned.verdict != Some(Outcome::Unresolved) {
        assert!(kept.is_empty(), "{}", story());
        assert_eq!(ancestry.earlier_seconds, 0.0, "{}", story());
        assert_eq!(assigned.verdict, None, "{}", story());
        return;
    }
    // No scores that are durable are asked for again.
    let scored = |one: &&Checkpoint| matches!(one.answer, Answer::Scored { .. });
    let before = newest.inherited().iter().map(|one| &one.checkpoint);
    for one in before.chain(&newest.checkpoints).filter(scored) {
        assert!(kept.contains(&one.part), "{}", story());
    }
    // A method is asked again for what it could not do only when somebody asks for that, or when its end is not known.
    let errors = newest.checkpoints.iter().filter(|one| !scored(one));
    for one in errors.clone() {
        let at_the_end = newest.asked(&parts()).next_back() == Some(one.part);
        let again = own_fault || unresolved || at_the_end;
        assert_eq!(assigned.parts.contains(&one.part), again, "{}", story());
    }
    // Time is charged or lost, none is forgotten, and what the method itself used is never lost.
    let ran = newest
        .terminal
        .as_ref()
        .map_or(EACH * newest.checkpoints.len() as f64 + AFTER, |terminal| {
            terminal.wall_seconds
        });
    let durable = EACH * newest.checkpoints.len() as f64;
    let used = if own_fault { ran } else { durable };
    assert_eq!(
        ancestry.earlier_seconds,
        newest.earlier_seconds() + used,
        "{}",
        story()
    );
    let earlier_lost = newest.started.as_ref().unwrap().ancestry.lost.iter();
    let earlier_lost: f64 = earlier_lost.filter_map(|one| one.seconds).sum();
    assert_eq!(lost - earlier_lost, (ran - used).max(0.0), "{}", story());
    // A timeout stays one.
    if outcome == Some(Outcome::Timeout) {
        assert_eq!(assigned.verdict, Some(Outcome::Timeout), "{}", story());
    }
    match &assigned.verdict {
        Some(Outcome::Timeout) => assert!(ancestry.earlier_seconds >= BUDGET, "{}", story()),
        Some(Outcome::Completed | Outcome::DatasetErrors { .. }) => {
            assert!(assigned.parts.is_empty(), "{}", story());
        }
        Some(Outcome::Unresolved) => assert!(!own_fault && attempts.len() >= 3, "{}", story()),
        Some(other) => panic!("{other}: {}", story()),
        None => assert!(
            !assigned.parts.is_empty() && ancestry.earlier_seconds < BUDGET,
            "{}",
            story()
        ),
    }
}

fn play(attempts: &mut Vec<Attempt>, assigned: &Assignment, depth: usize, count: &mut usize) {
    for end in ENDS {
        let (attempt, seen) = played(attempts.len() as u32 + 1, assigned, end);
        attempts.push(attempt);
        for how in HOWS {
            let next = assign(&parts(), attempts, seen, BUDGET, how);
            check(attempts, how, next.as_ref());
            *count += 1;
            if let Some(next) = next.filter(|_| depth > 1) {
                play(attempts, &next, depth - 1, count);
            }
        }
        attempts.pop();
        if assigned.verdict.is_some() {
            // It ends in one way only.
            break;
        }
    }
}

#[test]
fn every_history_of_three_attempts_keeps_the_rules() {
    let first = assign(&parts(), &[], None, BUDGET, HOWS[0]).unwrap();
    assert_eq!(first.parts, parts());
    assert_eq!(first.ancestry, Ancestry::default());
    let mut count = 0;
    play(&mut Vec::new(), &first, 3, &mut count);
    assert!(count > 5_000, "{count}");
}

/// Plays these ends one after the other, demanding that each attempt runs a worker. What comes then.
fn after(ends: &[End]) -> (Vec<Attempt>, Assignment) {
    let mut attempts = Vec::new();
    let mut next = assign(&parts(), &[], None, BUDGET, HOWS[0]).unwrap();
    for (at, end) in ends.iter().enumerate() {
        assert_eq!(next.verdict, None, "{at}");
        let (attempt, seen) = played(at as u32 + 1, &next, *end);
        attempts.push(attempt);
        next = assign(&parts(), &attempts, seen, BUDGET, HOWS[0]).unwrap();
    }
    (attempts, next)
}

#[test]
fn attempts_that_come_to_nothing_are_bounded() {
    for ends in [vec![End::Infrastructure(0); 3], vec![End::Lost(0); 10]] {
        let (mut attempts, next) = after(&ends);
        assert_eq!(next.verdict, Some(Outcome::Unresolved));
        let (attempt, _) = played(ends.len() as u32 + 1, &next, End::Well);
        attempts.push(attempt);
        // It stays set aside until somebody asks.
        assert_eq!(assign(&parts(), &attempts, None, BUDGET, HOWS[0]), None);
        let next = assign(&parts(), &attempts, None, BUDGET, HOWS[1]).unwrap();
        assert_eq!((next.verdict, next.ancestry.reason), (None, Reason::Retry));
    }
}

#[test]
fn an_attempt_that_got_somewhere_or_was_stopped_by_somebody_does_not_count_against_it() {
    let mut ends = vec![
        End::Infrastructure(0),
        End::Infrastructure(0),
        End::Infrastructure(2),
        End::Infrastructure(0),
        End::Lost(0),
        End::Interrupted(0),
        End::Infrastructure(0),
    ];
    assert_eq!(after(&ends).1.verdict, None);
    // What was stopped after it had got somewhere got somewhere.
    let stopped = [
        End::Infrastructure(0),
        End::Infrastructure(0),
        End::Interrupted(1),
        End::Infrastructure(0),
    ];
    assert_eq!(after(&stopped).1.verdict, None);
    ends.push(End::Infrastructure(0));
    let next = after(&ends).1;
    assert_eq!(next.verdict, Some(Outcome::Unresolved));
    // What it had stays its own.
    assert_eq!(next.ancestry.inherited.len(), 2);
}

#[test]
fn a_busy_machine_sets_nobody_aside() {
    let (mut attempts, _) = after(&[End::Infrastructure(0); 2]);
    let (refused, _) = after(&[End::Infrastructure(0)]);
    let mut refused = refused[0].clone();
    let gate = object! { "load_gate" => object! { "passed" => "refused" } };
    refused.terminal.as_mut().unwrap().measured = gate;
    for number in 3..8 {
        refused.id = AttemptId::local(number);
        attempts.push(refused.clone());
    }
    let next = || assign(&parts(), &attempts, None, BUDGET, HOWS[0]).unwrap();
    assert_eq!((next().verdict, next().parts), (None, parts()));
    // They do not hide what was wrong on our side either.
    let (failed, _) = after(&[End::Infrastructure(0)]);
    attempts.push(failed[0].clone());
    let next = assign(&parts(), &attempts, None, BUDGET, HOWS[0]).unwrap();
    assert_eq!(next.verdict, Some(Outcome::Unresolved));
}

#[test]
fn an_attempt_that_never_started_a_worker_is_no_attempt() {
    let (mut attempt, _) = played(
        1,
        &assign(&parts(), &[], None, BUDGET, HOWS[0]).unwrap(),
        End::Lost(0),
    );
    attempt.started = None;
    let next = assign(&parts(), &[attempt], None, BUDGET, HOWS[0]).unwrap();
    assert_eq!(next.ancestry, Ancestry::default());
}
