//! One case each: clocks, grace, floods, last words, and any bytes in any chunks.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::*;

#[test]
fn the_whole_conversation_completes() {
    let (fake, _) = replay(&[S::Hello, S::Score, S::Done0, S::Score, S::Done1, S::Done]);
    assert_eq!(fake.outcome(), None);
    // The last dataset waits for the proper end.
    assert_eq!(fake.stored.len(), 1);
    let (fake, _) = replay(&[
        S::Hello,
        S::Score,
        S::Done0,
        S::Score,
        S::Done1,
        S::Done,
        S::Exit0,
    ]);
    assert_eq!(fake.outcome().as_deref(), Some("completed"));
    assert_eq!(fake.stored, [(0, vec![0.5]), (1, vec![0.5])]);
}

#[test]
fn the_first_cause_wins() {
    // Our own kill after a violation comes back as signal 9.
    let mut fake = Fake::new(1, 1, 0);
    fake.line("junk", 5);
    let status = WaitStatus::Signaled {
        signal: 9,
        core: false,
    };
    fake.event(Event::Ended(status), 6);
    let (outcome, at) = fake.machine.verdict().cloned().unwrap();
    assert_eq!(outcome.kind(), "protocol_error");
    assert_eq!(at, 5);
    assert_eq!(fake.machine.wait_status, Some(status));
}

#[test]
fn an_exit_before_the_deadline_that_is_heard_late_is_in_time() {
    let mut fake = Fake::new(0, 0, 0);
    fake.line(S::Hello.line().unwrap(), 10);
    fake.line(S::Done.line().unwrap(), 10);
    // The shell was busy; the room's init took the time of the exit.
    fake.event(Event::Ended(WaitStatus::Exited(0)), DEADLINE - 1);
    fake.act(DEADLINE + 50);
    assert_eq!(fake.outcome().as_deref(), Some("completed"));

    let mut fake = Fake::new(0, 0, 0);
    fake.line(S::Hello.line().unwrap(), 10);
    fake.line(S::Done.line().unwrap(), 10);
    fake.event(Event::Ended(WaitStatus::Exited(0)), DEADLINE);
    assert_eq!(fake.outcome().as_deref(), Some("timeout"));
}

#[test]
fn what_is_durable_counts_even_when_storing_took_past_the_deadline() {
    let mut fake = Fake::new(2, 1, 0);
    for symbol in [S::Hello, S::Score] {
        symbol.happen(&mut fake);
    }
    fake.machine.bytes(S::Done0.line().unwrap().as_bytes());
    fake.machine.bytes(b"\n");
    let Some(Action::Store { dataset: 0, .. }) = fake.machine.next(10) else {
        panic!("a store was expected");
    };
    fake.event(Event::Stored, DEADLINE + 7);
    assert_eq!(fake.machine.checkpoints, 1);
    assert_eq!(fake.outcome().as_deref(), Some("timeout"));
}

#[test]
fn rows_after_the_deadline_are_late() {
    let mut fake = Fake::new(1, 1, 0);
    fake.line(S::Hello.line().unwrap(), 10);
    fake.line(S::Score.line().unwrap(), DEADLINE);
    fake.line(S::Score.line().unwrap(), DEADLINE + 1);
    assert_eq!(fake.outcome().as_deref(), Some("timeout"));
    assert_eq!(fake.machine.late_rows, 2);
}

#[test]
fn grace_is_given_at_the_deadline_and_cut_short_on_demand() {
    let mut fake = Fake::new(1, 1, 100);
    fake.act(DEADLINE);
    assert!(fake.terminated && !fake.killed);
    assert_eq!(fake.machine.wake_at(), Some(DEADLINE + 100));
    fake.act(DEADLINE + 99);
    assert!(!fake.killed);
    fake.act(DEADLINE + 100);
    assert!(fake.killed);

    // The leader leaves during the grace: what it left behind is killed at once.
    let mut fake = Fake::new(1, 1, 100);
    fake.act(DEADLINE);
    fake.event(Event::Ended(WaitStatus::Exited(0)), DEADLINE + 1);
    assert!(fake.killed);
    assert_eq!(fake.outcome().as_deref(), Some("timeout"));

    let mut fake = Fake::new(1, 1, 100);
    let stop = |now| {
        Event::Stop(Stop {
            cancelled: false,
            now,
        })
    };
    fake.event(stop(false), 10);
    assert!(fake.terminated && !fake.killed);
    fake.event(stop(true), 11);
    assert!(fake.killed);
    assert_eq!(fake.outcome().as_deref(), Some("interrupted"));

    // A violation gets no grace.
    let mut fake = Fake::new(1, 1, 100);
    fake.line("junk", 5);
    assert!(fake.killed && !fake.terminated);
}

#[test]
fn answers_before_the_question_was_sent_are_refused() {
    let mut machine = Machine::new(1, DEADLINE, 0);
    machine.bytes(S::Hello.line().unwrap().as_bytes());
    machine.bytes(b"\n");
    assert_eq!(machine.next(1), Some(Action::Open(0)));
    machine.event(Event::Opened { items: 1 }, 1);
    machine.event(Event::FirstByte, 1);
    machine.bytes(S::Score.line().unwrap().as_bytes());
    machine.bytes(b"\n");
    assert_eq!(machine.next(2), Some(Action::Kill));
    assert_eq!(
        machine.verdict().unwrap().0.to_string(),
        "protocol_error(stdout line 2: scores of dataset 0 came when they were not asked for)"
    );
}

#[test]
fn an_early_refusal_waits_until_the_question_was_sent() {
    let mut machine = Machine::new(2, DEADLINE, 0);
    machine.bytes(S::Hello.line().unwrap().as_bytes());
    machine.bytes(b"\n");
    assert_eq!(machine.next(1), Some(Action::Open(0)));
    machine.event(Event::Opened { items: 5 }, 1);
    machine.event(Event::FirstByte, 3);
    machine.bytes(S::Error0.line().unwrap().as_bytes());
    machine.bytes(b"\n");
    assert_eq!(machine.next(9), None);
    machine.event(Event::AllSent, 20);
    let refused = Action::Refused {
        dataset: 0,
        error: "e".into(),
        elapsed: 6,
    };
    assert_eq!(machine.next(20), Some(refused));
}

#[test]
fn elapsed_runs_from_the_first_byte_to_the_last_score() {
    let mut machine = Machine::new(2, DEADLINE, 0);
    machine.bytes(S::Hello.line().unwrap().as_bytes());
    machine.bytes(b"\n");
    assert_eq!(machine.next(1), Some(Action::Open(0)));
    machine.event(Event::Opened { items: 1 }, 2);
    machine.event(Event::FirstByte, 10);
    machine.event(Event::FirstByte, 20);
    machine.event(Event::AllSent, 30);
    machine.bytes(S::Score.line().unwrap().as_bytes());
    machine.bytes(b"\n");
    assert_eq!(machine.next(50), None);
    machine.bytes(S::Done0.line().unwrap().as_bytes());
    machine.bytes(b"\n");
    let store = Action::Store {
        dataset: 0,
        scores: vec![0.5],
        elapsed: 40,
    };
    assert_eq!(machine.next(99), Some(store));
}

#[test]
fn a_flood_of_valid_lines_is_a_resource_limit_at_the_same_place_for_any_chunk() {
    let line = format!("{}\n", S::Progress.line().unwrap());
    let hello = format!("{}\n", S::Hello.line().unwrap());
    let flood = line.repeat((OUTPUT_BASE as usize) / line.len() + 1000);
    for chunk in [flood.len(), 65_536] {
        let mut fake = Fake::new(1, 1, 0);
        fake.machine.bytes(hello.as_bytes());
        fake.act(1);
        for bytes in flood.as_bytes().chunks(chunk) {
            fake.machine.bytes(bytes);
            fake.act(1);
        }
        fake.line("junk", 1);
        let outcome = fake.outcome().unwrap();
        assert!(outcome.starts_with("resource_limit(output"), "{outcome}");
    }
}

#[test]
fn a_worker_that_gives_up_ends_soon() {
    let gives_up = |now| {
        let mut fake = Fake::new(2, 1, 0);
        for symbol in [S::Hello, S::Score, S::Done0] {
            symbol.happen(&mut fake);
        }
        fake.machine.deadline = 10 * GIVE_UP_NS;
        fake.line(S::WorkerError.line().unwrap(), now);
        fake
    };
    let mut fake = gives_up(100);
    assert_eq!(fake.machine.wake_at(), Some(100 + GIVE_UP_NS));
    fake.act(99 + GIVE_UP_NS);
    assert_eq!(fake.outcome(), None);
    fake.act(100 + GIVE_UP_NS);
    assert_eq!(fake.outcome().as_deref(), Some("incomplete(1/2)"));
    assert!(fake.killed);

    let mut fake = gives_up(100);
    fake.event(Event::Ended(WaitStatus::Exited(4)), 200);
    assert_eq!(fake.outcome().as_deref(), Some("exit(4)"));

    // What comes first is the cause, also just before the deadline.
    let mut fake = gives_up(10 * GIVE_UP_NS - 1);
    fake.act(10 * GIVE_UP_NS);
    assert_eq!(fake.outcome().as_deref(), Some("incomplete(1/2)"));
}

/// Whether the end of a quick worker is heard before or after its words is chance.
#[test]
fn last_words_mean_the_same_when_the_next_question_is_not_put_any_more() {
    for (said, outcome) in [
        (S::WorkerError, "exit(3)"),
        (S::Progress, "exit(3)"),
        (S::Error0, "exit(3)"),
        (S::Score, "protocol_error"),
        (S::Done, "protocol_error"),
    ] {
        for put in [true, false] {
            let mut machine = Machine::new(2, DEADLINE, 0);
            for symbol in [S::Hello, said] {
                machine.bytes(symbol.line().unwrap().as_bytes());
                machine.bytes(b"\n");
            }
            assert_eq!(machine.next(1), Some(Action::Open(0)));
            if put {
                machine.event(Event::Opened { items: 1 }, 1);
            }
            while machine.next(1).is_some() {}
            machine.event(Event::Ended(WaitStatus::Exited(3)), 2);
            let (found, _) = machine.verdict().unwrap();
            assert_eq!(kind(&found.to_string()), outcome, "{said:?} {put}");
        }
    }
}

#[test]
fn a_broken_rule_names_the_line_and_shows_its_start() {
    let outcome = |lines: &[&str]| {
        let mut fake = Fake::new(1, 1, 0);
        for line in lines {
            fake.line(line, 1);
        }
        fake.outcome().unwrap()
    };
    let hello = S::Hello.line().unwrap();
    assert_eq!(
        outcome(&[hello, "Loading model\u{1b}[2J"]),
        "protocol_error(stdout line 2 is not a message: \"Loading model\\u{1b}[2J\" (expected value at column 1))"
    );
    assert_eq!(
        outcome(&[hello, S::Done.line().unwrap()]),
        "protocol_error(stdout line 2: `done` came before the worker was told to finish)"
    );
    let long = format!("{}\u{202e}", "x".repeat(2 << 20));
    let long = outcome(&[hello, S::Progress.line().unwrap(), &long]);
    let start = "protocol_error(stdout line 3 is longer than 65536 bytes: \"xxx";
    assert!(
        long.starts_with(start) && long.ends_with("xxx...\")"),
        "{long}"
    );
    // Whatever a line holds, a record stays short and clean.
    let name = "\u{202e}\u{9b}y".repeat(100_000);
    for line in [
        format!("{{\"type\":\"{name}\"}}"),
        format!("{{\"type\":\"done\",\"{name}\":1}}"),
        format!("{{\"type\":{name}"),
        name,
    ] {
        let outcome = outcome(&[hello, &line]);
        assert!(outcome.len() < 1500, "{}", outcome.len());
        assert!(!outcome.contains(['\u{202e}', '\u{9b}', '\n']), "{outcome}");
    }
}

#[test]
fn a_terminal_is_safe_from_what_a_worker_says() {
    let mut fake = Fake::new(1, 1, 0);
    fake.line(
        r#"{"type":"hello","protocol":1,"worker":"\u001b[2J\nname"}"#,
        1,
    );
    assert_eq!(fake.machine.worker, " [2J name");
    fake.line(r#"{"type":"worker_error","error":"a\u0007b"}"#, 1);
    assert_eq!(fake.machine.worker_error.as_deref(), Some("a b"));
}

/// Lines that are nearly right, and bytes that are nothing.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let said = prop::sample::select(
        SYMBOLS
            .iter()
            .filter_map(|symbol| symbol.line())
            .map(|line| format!("{line}\n").into_bytes())
            .collect::<Vec<_>>(),
    );
    prop_oneof![
        8 => said,
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => "[{}\\[\\]\",:a-z0-9\n]{0,40}".prop_map(String::into_bytes),
    ]
}

/// A conversation that goes well for a while and then turns into noise.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let whole: Vec<u8> = [S::Hello, S::Score, S::Done0, S::Score, S::Done1, S::Done]
        .iter()
        .filter_map(|symbol| symbol.line())
        .flat_map(|line| format!("{line}\n").into_bytes())
        .collect();
    (0..=whole.len(), prop::collection::vec(noise(), 0..8)).prop_map(move |(keep, rest)| {
        let mut bytes = whole[..keep].to_vec();
        bytes.extend(rest.concat());
        bytes
    })
}

fn ending_of(bytes: &[u8], chunks: &[usize]) -> (String, Vec<(u32, Vec<f64>)>, u64) {
    let mut fake = Fake::new(2, 1, 0);
    let mut rest = bytes;
    let mut chunks = chunks.iter().cycle();
    while !rest.is_empty() {
        let length = chunks.next().map_or(rest.len(), |n| *n).min(rest.len());
        fake.machine.bytes(&rest[..length]);
        fake.act(1);
        rest = &rest[length..];
    }
    fake.event(Event::Ended(WaitStatus::Exited(0)), 2);
    let outcome = fake.outcome().unwrap_or_default();
    (outcome, fake.stored, fake.machine.late_rows)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn any_chunking_of_any_bytes_has_the_same_ending(
        bytes in stream(),
        chunks in prop::collection::vec(1usize..50, 1..10),
    ) {
        let whole = ending_of(&bytes, &[usize::MAX]);
        prop_assert_eq!(&whole, &ending_of(&bytes, &chunks));
        prop_assert_eq!(&whole, &ending_of(&bytes, &[1]));
        finite(&whole.1)?;
    }
}

fn finite(stored: &[(u32, Vec<f64>)]) -> Result<(), TestCaseError> {
    for (_, scores) in stored {
        prop_assert!(scores.iter().all(|score| score.is_finite()));
    }
    Ok(())
}
