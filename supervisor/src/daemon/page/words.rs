//! States and times in words.

use crate::daemon::view::{
    AttemptView, MethodState, MethodView, OutcomeView, RunState, RunSummary,
};
use crate::render::{brief, progress};
use maud::{Markup, html};

/// How something stands. Every use of its colour comes with a word, since not everybody sees colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It waits for its turn.
    Queued,
    /// It goes on.
    Running,
    /// Nothing failed.
    Completed,
    /// It failed, and answers for it.
    Failed,
    /// It has no result through no fault of its own.
    Owed,
    /// It was not asked for anything.
    NotApplicable,
}

impl Standing {
    /// The class of its colour.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Queued | Self::NotApplicable => "none",
            Self::Running => "running",
            Self::Completed => "good",
            Self::Failed => "bad",
            Self::Owed => "owed",
        }
    }

    /// How an outcome stands.
    pub(super) fn of(outcome: &OutcomeView) -> Self {
        match (outcome.succeeded, outcome.charged) {
            (true, _) if outcome.kind == "not_applicable" => Self::NotApplicable,
            (true, _) => Self::Completed,
            (false, true) => Self::Failed,
            (false, false) => Self::Owed,
        }
    }

    /// How a method stands, and the same in a word or two.
    pub(super) fn of_method(method: &MethodView) -> (Self, String) {
        match (method.state, &method.outcome) {
            (MethodState::Queued, _) => (Self::Queued, "queued".into()),
            (MethodState::Running, _) => (Self::Running, "running".into()),
            (MethodState::Ended, Some(outcome)) => (Self::of(outcome), kind(outcome)),
            (MethodState::Ended, None) => (Self::Owed, "no outcome".into()),
        }
    }

    /// How an attempt stands; `running` says whether its method runs.
    pub(super) fn of_attempt(attempt: &AttemptView, running: bool) -> (Self, String) {
        match &attempt.outcome {
            Some(outcome) => (Self::of(outcome), kind(outcome)),
            None if running && attempt.counts => (Self::Running, "running".into()),
            None => (Self::Owed, "supervisor lost".into()),
        }
    }

    /// How a run stands, and the same in a word or two.
    pub(super) fn of_run(run: &RunSummary) -> (Self, &'static str) {
        match run.state {
            RunState::Queued | RunState::Running if run.cancelled => {
                (Self::Owed, "being cancelled")
            }
            RunState::Queued => (Self::Queued, "queued"),
            RunState::Running => (Self::Running, "running"),
            RunState::Ended if run.cancelled => (Self::Owed, "cancelled"),
            RunState::Ended => match run.exit_code {
                Some(0) => (Self::Completed, "completed"),
                Some(1) => (Self::Failed, "methods failed"),
                Some(130) => (Self::Owed, "methods cancelled"),
                _ => (Self::Owed, "could not finish"),
            },
        }
    }
}

/// The stable name of an outcome with spaces.
fn kind(outcome: &OutcomeView) -> String {
    brief(&outcome.kind.replace('_', " "))
}

/// Seconds as a clock shows them: `7 s`, `4:05`, `1:04:05`.
pub(super) fn clock(seconds: f64) -> String {
    if seconds.is_finite() && seconds >= 0.0 {
        progress::clock(seconds)
    } else {
        "unknown".to_owned()
    }
}

/// Seconds that something took, which will not change any more: exact where they are few.
pub(super) fn took(seconds: f64) -> String {
    if (0.0..10.0).contains(&seconds) {
        crate::render::seconds(seconds)
    } else {
        clock(seconds)
    }
}

pub(super) use crate::render::counted as count;

/// What is to be said of the time that a running method still needs.
pub(super) fn left(method: &MethodView) -> String {
    let remaining = method.budget_seconds - method.elapsed_seconds;
    match method
        .eta_seconds
        .filter(|eta| eta.is_finite() && *eta >= 0.0)
    {
        None => "time left unknown: nothing is answered yet".to_owned(),
        Some(eta) => {
            let more = if eta > remaining {
                ", more than its budget has"
            } else {
                ""
            };
            format!("about {} left at the pace so far{more}", clock(eta))
        }
    }
}

/// Bytes for people, in powers of 1024.
pub(super) fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if number < 1024 {
        return format!("{number} B");
    }
    let mut value = number as f64 / 1024.0;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

/// A time of day: `2026-01-01T00:00:00Z` without its letters.
pub(super) fn time(utc: &str) -> Markup {
    let text = brief(utc);
    let words = match text.strip_suffix('Z').and_then(|text| text.split_once('T')) {
        Some((day, time)) => format!("{day} {time} UTC"),
        None => text.clone(),
    };
    html! { time datetime=(text) { (words) } }
}

/// Seconds since 1970 of a time of day; `None` when it is none.
pub(super) fn instant(utc: &str) -> Option<f64> {
    let time: jiff::Timestamp = utc.parse().ok()?;
    Some(time.as_second() as f64)
}
