//! Pauses: anywhere in a conversation they change nothing but the time.

use super::*;

/// A pause before the event at `from` and, if it ends, before the one at `until`, far longer than the budget.
fn replay_paused(path: &[Symbol], from: usize, until: Option<usize>) -> Fake {
    const LENGTH: u64 = 50 * DEADLINE;
    let mut fake = Fake::new(2, 1, 0);
    for (place, symbol) in path.iter().enumerate() {
        if place == from {
            fake.event(Event::Pause, 10);
            fake.late = LENGTH / 2;
        }
        if until == Some(place) {
            fake.late = LENGTH;
            fake.event(Event::Resume, 10);
        }
        symbol.happen(&mut fake);
    }
    fake
}

#[test]
fn a_pause_changes_nothing_but_that_no_deadline_passes_in_it() {
    let whole = [
        S::Hello,
        S::Score,
        S::Done0,
        S::Score,
        S::Done1,
        S::Done,
        S::Exit0,
    ];
    let mut seen = 0;
    for length in 0..=whole.len() {
        for one in SYMBOLS {
            for two in SYMBOLS {
                let mut path = whole[..length].to_vec();
                path.extend([one, two]);
                // A worker ends once, and the fake's disk does not mind the clock.
                let ended = |symbol: &&Symbol| matches!(symbol, S::Exit0 | S::Exit3 | S::Segv);
                if path.iter().filter(ended).count() > 1 {
                    continue;
                }
                for from in 0..path.len() {
                    for until in (from..path.len()).map(Some).chain([None]) {
                        let fake = replay_paused(&path, from, until);
                        // The same, less the deadlines that would have been in the pause.
                        let within = from..until.unwrap_or(path.len());
                        let mut place = 0..;
                        let mut left = path.clone();
                        left.retain(|symbol| {
                            let paused = place.next().is_some_and(|at| within.contains(&at));
                            !(paused && *symbol == S::Deadline)
                        });
                        let (same, _) = replay(&left);
                        let about = format!("{path:?} paused in {within:?}");
                        assert_eq!(fake.outcome(), same.outcome(), "{about}");
                        assert_eq!(fake.stored, same.stored, "{about}");
                        assert_eq!(fake.refused, same.refused, "{about}");
                        assert_eq!(
                            (fake.killed, fake.settled),
                            (same.killed, same.settled),
                            "{about}"
                        );
                        let when = |fake: &Fake| fake.machine.verdict().map(|verdict| verdict.1);
                        assert_eq!(when(&fake), when(&same), "{about}");
                        assert_eq!(fake.machine.paused(), until.is_none(), "{about}");
                        seen += 1;
                    }
                }
            }
        }
    }
    assert!(seen > 50_000, "{seen}");
}

#[test]
fn after_a_pause_the_rest_of_the_budget_is_left() {
    let mut machine = Machine::new(1, DEADLINE, 0);
    assert_eq!(machine.wake_at(), Some(DEADLINE));
    machine.event(Event::Pause, 400);
    assert_eq!(machine.wake_at(), None);
    assert_eq!(machine.next(5 * DEADLINE), None);
    machine.event(Event::Resume, 5 * DEADLINE);
    assert_eq!(machine.wake_at(), Some(5 * DEADLINE + 600));
    assert_eq!(machine.next(5 * DEADLINE + 599), None);
    assert_eq!(machine.next(5 * DEADLINE + 600), Some(Action::Kill));
    assert_eq!(machine.verdict(), Some(&(Outcome::Timeout, DEADLINE)));
    let pause = Pause {
        after_ns: 300,
        length_ns: 5 * DEADLINE - 400,
    };
    assert_eq!(machine.pauses(100, 9 * DEADLINE), [pause]);
}

#[test]
fn a_deadline_that_passed_before_the_room_stood_still_counts() {
    let mut machine = Machine::new(1, DEADLINE, 0);
    machine.event(Event::Pause, DEADLINE);
    assert_eq!(machine.next(DEADLINE), Some(Action::Kill));
    assert_eq!(machine.verdict(), Some(&(Outcome::Timeout, DEADLINE)));
}

#[test]
fn grace_and_giving_up_wait_for_the_end_of_a_pause() {
    let mut machine = Machine::new(1, DEADLINE, 50);
    assert_eq!(machine.next(DEADLINE), Some(Action::Terminate));
    machine.event(Event::Pause, DEADLINE + 20);
    assert_eq!(machine.next(9 * DEADLINE), None);
    machine.event(Event::Resume, 9 * DEADLINE);
    assert_eq!(machine.next(9 * DEADLINE + 29), None);
    assert_eq!(machine.next(9 * DEADLINE + 30), Some(Action::Kill));
    // Seconds of a dataset leave a pause out as well.
    let mut fake = Fake::new(2, 1, 0);
    S::Hello.happen(&mut fake);
    fake.event(Event::Pause, 10);
    fake.late = 70;
    fake.event(Event::Resume, 10);
    fake.late = 75;
    fake.machine
        .bytes(S::Score.line().unwrap_or_default().as_bytes());
    fake.machine.bytes(b"\n");
    fake.machine
        .bytes(S::Done0.line().unwrap_or_default().as_bytes());
    fake.machine.bytes(b"\n");
    let Some(Action::Store { elapsed, .. }) = fake.machine.next(10 + 75) else {
        panic!("the dataset is complete");
    };
    assert_eq!(elapsed, 5);
}
