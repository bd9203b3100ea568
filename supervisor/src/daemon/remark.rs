//! What is worth a word about an attempt beside its outcome, and what the rooms of a run lack.

use super::view::PauseView;
use crate::render::seconds;
use crate::rundir::ancestry::Reason;
use crate::rundir::state::{self, Attempt};
use proctor_protocol::bundle::other_load;
use proctor_protocol::canonical::{Object, Value};

/// The most pauses that are listed.
const PAUSES: usize = 50;

/// What is worth a word about an attempt, each in one sentence without a full stop.
pub fn remarks(attempt: &Attempt) -> Vec<String> {
    let mut remarks: Vec<String> = begun(attempt).into_iter().collect();
    let Some(terminal) = &attempt.terminal else {
        return remarks;
    };
    let facts = &terminal.facts;
    let number = |key: &str| {
        let number = facts.get(key).and_then(Value::as_number);
        number.filter(|number| *number > 0.0)
    };
    let count = |key: &str| {
        facts
            .get(key)
            .and_then(Value::as_int)
            .filter(|count| *count > 0)
    };
    let is = |key: &str| facts.get(key).and_then(Value::as_bool) == Some(true);
    if let Some(load) = other_load(&terminal.measured, "used") {
        remarks.push(format!("beside it, {load}; its times are not comparable"));
    }
    if let Some(paused) = number("paused_seconds") {
        remarks.push(format!(
            "was paused for {}, which is not counted",
            seconds(paused)
        ));
    }
    if let Some(suspended) = number("suspended_seconds") {
        let suspended = seconds(suspended);
        remarks.push(format!(
            "the machine was suspended for {suspended}; its times are not comparable"
        ));
    }
    if let Some(stalled) = number("supervisor_stalled_seconds") {
        remarks.push(format!(
            "its supervisor stood still for {}",
            seconds(stalled)
        ));
    }
    if let Some(leaked) = count("leaked_processes") {
        let noun = if leaked == 1 { "process" } else { "processes" };
        remarks.push(format!("left {leaked} {noun} behind, which the room ended"));
    }
    if is("leaked_pipe") {
        remarks.push("left something behind that held its output open".to_owned());
    }
    if let Some(rows) = count("late_rows") {
        remarks.push(format!(
            "{rows} scores came after the verdict and were thrown away"
        ));
    }
    if let Some(cut) = count("output_cut") {
        remarks.push(format!("{cut} bytes of its stderr were not kept"));
    }
    if facts.get("room_empty").and_then(Value::as_bool) == Some(false) {
        remarks.push("processes of it could not be killed".to_owned());
    }
    remarks
}

/// Why there is this attempt, and what it has from those before it.
fn begun(attempt: &Attempt) -> Option<String> {
    let ancestry = &attempt.started.as_ref()?.ancestry;
    match ancestry.reason {
        Reason::First => None,
        Reason::Continue => Some(format!(
            "goes on where the attempt before it was cut off, with {} of its budget used",
            seconds(ancestry.earlier_seconds)
        )),
        Reason::Restart => Some("begins anew, since the attempt before it was cut off".to_owned()),
        Reason::Retry => Some("was asked for after the one before it had failed".to_owned()),
    }
}

/// When an attempt was paused.
pub fn pauses(attempt: &Attempt) -> Vec<PauseView> {
    let terminal = attempt.terminal.as_ref();
    let listed = terminal.and_then(|terminal| terminal.facts.get("pauses")?.as_array());
    let pause = |value: &Value| {
        Some(PauseView {
            after_seconds: value.get("after_seconds")?.as_number()?,
            seconds: value.get("seconds")?.as_number()?,
        })
    };
    listed
        .unwrap_or_default()
        .iter()
        .filter_map(pause)
        .take(PAUSES)
        .collect()
}

/// What the rooms of an attempt were to have and lacked, with the reason, added to what is there already.
pub fn add_missing(attempts: &[Attempt], missing: &mut Vec<String>) {
    let terminal = state::counting(attempts).and_then(|attempt| attempt.terminal.as_ref());
    let guards = terminal.and_then(|terminal| terminal.isolation.get("guards")?.as_object());
    for (name, guard) in guards.into_iter().flat_map(Object::iter) {
        if guard.get("state").and_then(Value::as_str) == Some("unavailable") {
            let reason = guard
                .get("reason")
                .and_then(Value::as_str)
                .unwrap_or("unknown");
            let text = format!("{}: {reason}", name.replace('_', " "));
            if !missing.contains(&text) {
                missing.push(text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rundir::record::{AttemptId, Terminal};
    use proctor_protocol::object;
    use proctor_protocol::outcome::Outcome;

    fn attempt(facts: Value, isolation: Value) -> Attempt {
        Attempt {
            id: AttemptId::local(1),
            dir: "/".into(),
            started: None,
            checkpoints: Vec::new(),
            torn_tail: false,
            terminal: Some(Terminal {
                outcome: Outcome::Completed,
                facts,
                isolation,
                wall_seconds: 1.0,
                boottime_seconds: 1.0,
                cpu_seconds: None,
                cpu_exact: false,
                peak_memory_bytes: None,
                measured: Value::Null,
                ended_as: None,
                worker: "w".into(),
                ended_utc: "2026-01-01T00:00:01Z".into(),
            }),
        }
    }

    #[test]
    fn facts_that_matter_are_told_and_zeros_are_not() {
        let nothing = object! {
            "leaked_processes" => 0i64, "late_rows" => 0i64, "paused_seconds" => 0.0, "leaked_pipe" => false,
            "room_empty" => true,
        };
        assert!(remarks(&attempt(nothing, Value::Null)).is_empty());
        let much = object! {
            "leaked_processes" => 1i64, "late_rows" => 12i64, "paused_seconds" => 2.5, "leaked_pipe" => true,
            "room_empty" => false, "output_cut" => 7i64,
            "pauses" => vec![object! { "after_seconds" => 1.0, "seconds" => 2.5 }],
        };
        let much = attempt(much, Value::Null);
        assert_eq!(
            remarks(&much),
            [
                "was paused for 2.500 s, which is not counted",
                "left 1 process behind, which the room ended",
                "left something behind that held its output open",
                "12 scores came after the verdict and were thrown away",
                "7 bytes of its stderr were not kept",
                "processes of it could not be killed",
            ]
        );
        let pause = PauseView {
            after_seconds: 1.0,
            seconds: 2.5,
        };
        assert_eq!(pauses(&much), [pause]);
        assert!(pauses(&attempt(Value::Null, Value::Null)).is_empty());
    }

    #[test]
    fn what_a_room_lacks_is_named_once_with_its_reason() {
        let guard = |state: &str| object! { "state" => state, "reason" => "no landlock here" };
        let isolation = object! { "guards" => object! {
            "file_system" => guard("unavailable"), "network" => guard("enforced"), "user" => guard("off"),
        } };
        let mut ended = attempt(Value::Null, isolation);
        let started = crate::rundir::record::Started {
            run_id: "r".into(),
            nonce: "n".into(),
            method_id: "m".into(),
            started_utc: "2026-01-01T00:00:00Z".into(),
            host: "h".into(),
            boot_id: "b".into(),
            supervisor: crate::rundir::Supervisor {
                namespace: 1,
                pid: 1,
                started: 1,
            },
            cores: vec![0],
            budget_seconds: 5.0,
            ancestry: crate::rundir::Ancestry {
                reason: Reason::Retry,
                ..Default::default()
            },
        };
        ended.started = Some(started);
        let mut missing = vec!["demanded".to_owned()];
        add_missing(std::slice::from_ref(&ended), &mut missing);
        add_missing(std::slice::from_ref(&ended), &mut missing);
        assert_eq!(missing, ["demanded", "file system: no landlock here"]);
        assert_eq!(
            remarks(&ended),
            ["was asked for after the one before it had failed"]
        );
    }
}
