//! The rules, tested against a table written from the specification, over every short sequence of events.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::*;

const DEADLINE: u64 = 1000;

/// A shell without processes: questions are sent at once, answers are stored at once unless that is to fail.
#[expect(
    clippy::struct_excessive_bools,
    reason = "a record of what was asked for"
)]
struct Fake {
    machine: Machine,
    items: u64,
    storing_fails: bool,
    stored: Vec<(u32, Vec<f64>)>,
    refused: Vec<u32>,
    killed: bool,
    terminated: bool,
    settled: bool,
    alive: bool,
}

impl Fake {
    fn new(total: u32, items: u64, grace: u64) -> Self {
        Self {
            machine: Machine::new(total, DEADLINE, grace),
            items,
            storing_fails: false,
            stored: Vec::new(),
            refused: Vec::new(),
            killed: false,
            terminated: false,
            settled: false,
            alive: true,
        }
    }

    fn act(&mut self, now: u64) {
        while let Some(action) = self.machine.next(now) {
            match action {
                // A shell whose worker is gone asks nothing more.
                Action::Open(_) | Action::Finish if !self.alive => {}
                Action::Open(_) => {
                    assert!(!self.killed, "asked after the kill");
                    let items = self.items;
                    self.machine.event(Event::Opened { items }, now);
                    self.machine.event(Event::FirstByte, now);
                    self.machine.event(Event::AllSent, now);
                }
                Action::Store {
                    dataset, scores, ..
                } => {
                    assert_eq!(scores.len() as u64, self.items);
                    if self.storing_fails {
                        self.machine.event(Event::OurFailure("full".into()), now);
                    } else {
                        self.stored.push((dataset, scores));
                        self.machine.event(Event::Stored, now);
                    }
                }
                Action::Refused { dataset, .. } => {
                    if self.storing_fails {
                        self.machine.event(Event::OurFailure("full".into()), now);
                    } else {
                        self.refused.push(dataset);
                        self.machine.event(Event::Stored, now);
                    }
                }
                Action::Finish => {}
                Action::Terminate => self.terminated = true,
                Action::Kill => {
                    assert!(!self.killed, "killed twice");
                    self.killed = true;
                }
                Action::Settle => {
                    assert!(!self.settled && !self.killed);
                    self.settled = true;
                }
            }
        }
    }

    fn line(&mut self, text: &str, now: u64) {
        self.machine.bytes(text.as_bytes());
        self.machine.bytes(b"\n");
        self.act(now);
    }

    fn event(&mut self, event: Event, now: u64) {
        if matches!(event, Event::Ended(_)) {
            self.alive = false;
        }
        self.machine.event(event, now);
        self.act(now);
    }

    fn outcome(&self) -> Option<String> {
        Some(self.machine.verdict()?.0.to_string())
    }
}

/// One thing that can happen in the enumeration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Symbol {
    Hello,
    WrongVersion,
    /// One score at position 0; it is the only one of its dataset.
    Score,
    /// One score at position 1.
    ScoreBeyond,
    NoScores,
    Done0,
    Done1,
    Error0,
    Error1,
    Progress,
    WorkerError,
    Done,
    Junk,
    Exit0,
    Exit3,
    Segv,
    Deadline,
    Interrupt,
    Cancel,
    /// From now on nothing can be stored.
    DiskFull,
}

use Symbol as S;

const SYMBOLS: [Symbol; 20] = [
    S::Hello,
    S::WrongVersion,
    S::Score,
    S::ScoreBeyond,
    S::NoScores,
    S::Done0,
    S::Done1,
    S::Error0,
    S::Error1,
    S::Progress,
    S::WorkerError,
    S::Done,
    S::Junk,
    S::Exit0,
    S::Exit3,
    S::Segv,
    S::Deadline,
    S::Interrupt,
    S::Cancel,
    S::DiskFull,
];

impl Symbol {
    /// The line of the wire; `None` for what the worker does not say.
    fn line(self) -> Option<&'static str> {
        Some(match self {
            S::Hello => r#"{"type":"hello","protocol":1,"worker":"w"}"#,
            S::WrongVersion => r#"{"type":"hello","protocol":2,"worker":"w"}"#,
            S::Score => r#"{"type":"scores","start":0,"values":[0.5]}"#,
            S::ScoreBeyond => r#"{"type":"scores","start":1,"values":[0.5]}"#,
            S::NoScores => r#"{"type":"scores","start":0,"values":[]}"#,
            S::Done0 => r#"{"type":"dataset_done","dataset":0}"#,
            S::Done1 => r#"{"type":"dataset_done","dataset":1}"#,
            S::Error0 => r#"{"type":"dataset_error","dataset":0,"error":"e"}"#,
            S::Error1 => r#"{"type":"dataset_error","dataset":1,"error":"e"}"#,
            S::Progress => r#"{"type":"progress","items":1}"#,
            S::WorkerError => r#"{"type":"worker_error","error":"e"}"#,
            S::Done => r#"{"type":"done"}"#,
            S::Junk => "junk",
            _ => return None,
        })
    }

    fn happen(self, fake: &mut Fake) {
        let stop = |cancelled| {
            Event::Stop(Stop {
                cancelled,
                now: false,
            })
        };
        match self {
            S::Exit0 => fake.event(Event::Ended(WaitStatus::Exited(0)), 10),
            S::Exit3 => fake.event(Event::Ended(WaitStatus::Exited(3)), 10),
            S::Segv => {
                let status = WaitStatus::Signaled {
                    signal: 11,
                    core: false,
                };
                fake.event(Event::Ended(status), 10);
            }
            S::Deadline => fake.act(DEADLINE),
            S::Interrupt => fake.event(stop(false), 10),
            S::Cancel => fake.event(stop(true), 10),
            S::DiskFull => fake.storing_fails = true,
            other => fake.line(other.line().unwrap_or_default(), 10),
        }
    }
}

/// Where the conversation stands in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Hello,
    /// Dataset 0 is asked; `true` once its score came.
    First(bool),
    Second(bool),
    /// Finish was said; `true` when dataset 1 has an answer.
    Finish(bool),
    Done(bool),
    GaveUp,
}

/// What the specification expects of a sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Expected {
    at: At,
    stored: Vec<u32>,
    refused: Vec<u32>,
    full: bool,
    outcome: Option<String>,
}

impl Expected {
    fn new() -> Self {
        Self {
            at: At::Hello,
            stored: Vec::new(),
            refused: Vec::new(),
            full: false,
            outcome: None,
        }
    }

    /// The table of design section 6 and the wire: whatever has no row is a protocol error.
    fn step(&mut self, symbol: Symbol) {
        if self.outcome.is_some() {
            return;
        }
        let ends = match symbol {
            S::DiskFull => {
                self.full = true;
                return;
            }
            // It had given up before.
            S::Deadline if self.at == At::GaveUp => {
                format!("incomplete({}/2)", self.stored.len())
            }
            S::Deadline => "timeout".to_owned(),
            S::Interrupt => "interrupted".to_owned(),
            S::Cancel => "cancelled".to_owned(),
            S::Exit3 => "exit(3)".to_owned(),
            S::Segv => "signal(11)".to_owned(),
            S::Exit0 => self.exit(),
            said => return self.outcome = self.said(said),
        };
        self.outcome = Some(ends);
    }

    fn exit(&mut self) -> String {
        let At::Done(answered) = self.at else {
            return format!("incomplete({}/2)", self.stored.len());
        };
        if answered {
            if self.full {
                return "infrastructure".into();
            }
            self.stored.push(1);
        }
        match self.refused.len() {
            0 => "completed".into(),
            failed => format!("dataset_errors({failed}/2)"),
        }
    }

    fn said(&mut self, said: Symbol) -> Option<String> {
        let next = match (self.at, said) {
            // After the last word nothing counts and nothing harms.
            (At::Done(_) | At::GaveUp, _) => return None,
            (At::Hello, S::Hello) => At::First(false),
            (_, S::WorkerError) => At::GaveUp,
            // A sign of life changes nothing, and an empty batch at the right place is nothing.
            (At::First(_) | At::Second(_) | At::Finish(_), S::Progress)
            | (At::First(false) | At::Second(false), S::NoScores) => self.at,
            (At::First(false), S::Score) => At::First(true),
            (At::Second(false), S::Score) => At::Second(true),
            (At::First(true), S::Done0) => {
                if self.full {
                    return Some("infrastructure".into());
                }
                self.stored.push(0);
                At::Second(false)
            }
            (At::First(_), S::Error0) => {
                if self.full {
                    return Some("infrastructure".into());
                }
                self.refused.push(0);
                At::Second(false)
            }
            (At::Second(true), S::Done1) => At::Finish(true),
            (At::Second(_), S::Error1) => {
                if self.full {
                    return Some("infrastructure".into());
                }
                self.refused.push(1);
                At::Finish(false)
            }
            (At::Finish(answered), S::Done) => At::Done(answered),
            _ => return Some("protocol_error".into()),
        };
        self.at = next;
        None
    }
}

/// The part of an outcome that the table knows.
fn kind(outcome: &str) -> &str {
    match outcome.split_once('(') {
        Some((kind @ ("protocol_error" | "infrastructure"), _)) => kind,
        _ => outcome,
    }
}

fn replay(path: &[Symbol]) -> (Fake, Expected) {
    let mut fake = Fake::new(2, 1, 0);
    let mut expected = Expected::new();
    for symbol in path {
        symbol.happen(&mut fake);
        expected.step(*symbol);
    }
    (fake, expected)
}

fn check(path: &[Symbol]) -> Option<String> {
    let (fake, expected) = replay(path);
    let outcome = fake.outcome();
    assert_eq!(
        outcome.as_deref().map(kind),
        expected.outcome.as_deref(),
        "{path:?}"
    );
    let stored: Vec<u32> = fake.stored.iter().map(|(dataset, _)| *dataset).collect();
    assert_eq!(stored, expected.stored, "{path:?}");
    assert_eq!(fake.refused, expected.refused, "{path:?}");
    assert_eq!(fake.machine.checkpoints as usize, stored.len(), "{path:?}");
    // A verdict is followed by emptying the room, and nothing else is.
    assert_eq!(fake.killed || fake.settled, outcome.is_some(), "{path:?}");
    assert!(!fake.terminated, "{path:?}: there is no grace");
    outcome
}

/// Walks every sequence up to a length; one that has its verdict is followed by each thing that can still happen.
fn walk(path: &mut Vec<Symbol>, depth: usize, seen: &mut usize) {
    for symbol in SYMBOLS {
        path.push(symbol);
        *seen += 1;
        let outcome = check(path);
        match outcome {
            None if depth > 1 => walk(path, depth - 1, seen),
            None => {}
            Some(outcome) => {
                for late in SYMBOLS {
                    let ended = |symbol| matches!(symbol, S::Exit0 | S::Exit3 | S::Segv);
                    if ended(symbol) && ended(late) {
                        continue;
                    }
                    path.push(late);
                    *seen += 1;
                    assert_eq!(check(path), Some(outcome.clone()), "{path:?}");
                    path.pop();
                }
            }
        }
        path.pop();
    }
}

#[test]
fn every_short_sequence_has_the_outcome_of_the_table() {
    let mut seen = 0;
    walk(&mut Vec::new(), 4, &mut seen);
    assert!(seen > 20_000, "{seen}");
    // From every point of a whole conversation once more, so that its late stages are covered as well.
    let whole = [
        S::Hello,
        S::Score,
        S::Done0,
        S::Score,
        S::Done1,
        S::Done,
        S::Exit0,
    ];
    for length in 1..whole.len() {
        walk(&mut whole[..length].to_vec(), 3, &mut seen);
    }
    let refusing = [S::Hello, S::Error0, S::Score, S::Error1, S::Done];
    for length in 2..=refusing.len() {
        walk(&mut refusing[..length].to_vec(), 3, &mut seen);
    }
}

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
    let start = "protocol_error(stdout line 3 is longer than 1048576 bytes: \"xxx";
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
