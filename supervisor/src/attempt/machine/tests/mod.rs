//! The rules, tested against a table written from the specification, over every short sequence of events.

mod cases;
mod pauses;

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
    /// Everything happens so much later.
    late: u64,
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
            late: 0,
        }
    }

    fn act(&mut self, now: u64) {
        let now = now + self.late;
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
        self.machine.event(event, now + self.late);
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
