//! `proctor status`: reads the run directory and nothing else, at any time, also while the run goes on.

use crate::cli::Status;
use crate::error::{Error, Exit};
use crate::render::sentence::{Numbers, sentence, tail};
use crate::render::table::{Align, Table};
use crate::render::{brief, output, plain, seconds};
use crate::run::{STDERR_LINES, host};
use crate::rundir::plan::{Plan, datasets, not_applicable, parts};
use crate::rundir::session::{Liveness, Session};
use crate::rundir::state::{self, Attempt, Heartbeat};
use crate::rundir::{Part, RunDir, Started};
use proctor_protocol::bundle::other_load;
use proctor_protocol::canonical::Value;
use proctor_protocol::method::Method;
use proctor_protocol::object;
use proctor_protocol::outcome::Outcome;
use std::fmt::Write;

/// A method as its files show it.
struct Line<'a> {
    method: &'a Method,
    attempts: Vec<Attempt>,
    state: State,
    parts: Vec<Part>,
    numbers: Numbers,
}

enum State {
    NotStarted,
    NotApplicable(String),
    /// Begun, and it goes on as far as can be told from here.
    Begun(Option<Heartbeat>),
    /// Begun, and its supervisor is gone.
    Lost,
    Ended(Outcome),
}

impl State {
    fn name(&self) -> &'static str {
        match self {
            Self::NotStarted => "not started",
            Self::NotApplicable(_) => "not applicable",
            Self::Begun(_) => "begun",
            Self::Lost => "lost",
            Self::Ended(_) => "ended",
        }
    }
}

pub(super) fn execute(args: &Status) -> Result<Exit, Error> {
    // `run` shows absolute paths, so this does too.
    let root = std::path::absolute(&args.run_dir).unwrap_or_else(|_| args.run_dir.clone());
    let run = RunDir::new(&root);
    let plan = Plan::read(&run)?;
    let sessions = run.sessions()?;
    let lines: Vec<Line<'_>> = plan
        .methods
        .iter()
        .map(|method| line(&run, &plan, method, &sessions))
        .collect::<Result<_, Error>>()?;
    let session = sessions.last();
    let liveness = session.map(|last| last.liveness(&host::machine().host, &host::boot_id()));
    let bundle = std::fs::read_link(run.bundle_link()).ok();
    let bundle = bundle.map(|link| run.root().join(link).display().to_string());
    if args.report.json {
        let rows: Vec<Value> = lines.iter().map(|line| json(line, &plan)).collect();
        output::print_json(&object! {
            "run_id" => plan.run_id.as_str(),
            "benchmark_id" => plan.protocol.benchmark_id(),
            "protocol_id" => plan.protocol.id(),
            "created_utc" => plan.created_utc.as_str(),
            "budget_seconds" => plan.policy.budget_seconds,
            "sessions" => sessions.iter().map(session_json).collect::<Vec<Value>>(),
            "driven" => driven(liveness),
            "methods" => rows,
            "bundle" => bundle,
            "advice" => advice(&run, &lines, liveness),
        })?;
    } else {
        let advice = advice(&run, &lines, liveness);
        output::print(&text(&plan, &lines, bundle.as_deref(), advice.as_deref()))?;
    }
    Ok(Exit::Success)
}

/// Whether somebody drives the run: `yes`, `no`, or `hidden` when that cannot be seen from here.
fn driven(liveness: Option<Liveness>) -> &'static str {
    match liveness {
        None | Some(Liveness::Over { .. }) => "no",
        Some(Liveness::Alive) => "yes",
        Some(Liveness::Hidden) => "hidden",
    }
}

fn session_json(session: &Session) -> Value {
    let liveness = session.liveness(&host::machine().host, &host::boot_id());
    object! {
        "number" => session.number,
        "mode" => session.mode.as_str(),
        "created_utc" => session.created_utc.as_str(),
        "host" => session.host.as_str(),
        "pid" => session.supervisor.pid,
        "state" => match liveness {
            Liveness::Over { orderly: true } => "ended",
            Liveness::Over { orderly: false } => "lost",
            Liveness::Alive => "running",
            Liveness::Hidden => "hidden",
        },
    }
}

fn line<'a>(
    run: &RunDir,
    plan: &Plan,
    method: &'a Method,
    sessions: &[Session],
) -> Result<Line<'a>, Error> {
    let attempts = state::attempts(run, &method.id)?;
    let newest = state::counting(&attempts);
    let state = match newest {
        None => match not_applicable(&plan.protocol, method) {
            Some(reason) => State::NotApplicable(reason),
            None => State::NotStarted,
        },
        Some(attempt) => match &attempt.terminal {
            Some(terminal) => State::Ended(terminal.outcome.clone()),
            None if is_lost(attempt, sessions) => State::Lost,
            None => State::Begun(Heartbeat::read(&attempt.dir)),
        },
    };
    let parts = parts(&plan.protocol, method);
    Ok(Line {
        method,
        state,
        numbers: Numbers::of(newest, &parts, plan.policy.budget_seconds),
        parts,
        attempts,
    })
}

/// True when nobody supervises an attempt any more that has no end: its session is over, or a later one began. Where this
/// cannot be seen from here, it goes on.
fn is_lost(attempt: &Attempt, sessions: &[Session]) -> bool {
    let (host, boot_id) = (host::machine().host, host::boot_id());
    let of_session = |session: &Session| {
        session.number > attempt.id.submission
            || session.number == attempt.id.submission
                && matches!(session.liveness(&host, &boot_id), Liveness::Over { .. })
    };
    // Run directories of earlier versions have no sessions; there the attempt says whose it is.
    let gone = |started: &Started| {
        started.host == host && (started.boot_id != boot_id || started.supervisor.is_gone())
    };
    sessions.iter().any(of_session) || attempt.started.as_ref().is_some_and(gone)
}

/// What to do about a run that nobody drives and that is not done; `None` when there is nothing to do.
fn advice(run: &RunDir, lines: &[Line<'_>], liveness: Option<Liveness>) -> Option<String> {
    if matches!(liveness, Some(Liveness::Alive | Liveness::Hidden)) {
        return None;
    }
    let path = plain(&run.root().display().to_string());
    let any = |is: &dyn Fn(&State) -> bool| lines.iter().any(|line| is(&line.state));
    let begun = |state: &State| matches!(state, State::Begun(_));
    if liveness.is_none() && any(&begun) {
        // Of an earlier version, and it goes on.
        return None;
    }
    let cut_off = liveness == Some(Liveness::Over { orderly: false });
    let unresolved = |state: &State| matches!(state, State::Ended(Outcome::Unresolved));
    let owed = |state: &State| match state {
        State::NotStarted | State::Lost => true,
        State::Ended(outcome) => !outcome.charged() && *outcome != Outcome::Unresolved,
        State::NotApplicable(_) | State::Begun(_) => false,
    };
    let why = if !any(&owed) && any(&unresolved) {
        return Some(format!(
            "some methods were set aside; `proctor resume --retry-failed {path}` tries them once more"
        ));
    } else if cut_off || any(&|state| matches!(state, State::Lost)) {
        "the supervisor of this run is gone and nothing goes on"
    } else if any(&owed) {
        "nobody drives this run, and some methods have no result"
    } else {
        return None;
    };
    Some(format!(
        "{why}; `proctor resume {path}` goes on with it, `proctor merge {path}` makes a bundle of what is there"
    ))
}

fn json(line: &Line<'_>, plan: &Plan) -> Value {
    let (outcome, wall) = match &line.state {
        State::Ended(outcome) => (Some(outcome.to_value()), Some(line.numbers.wall_seconds)),
        _ => (None, None),
    };
    let heartbeat = match &line.state {
        State::Begun(beat) => beat.as_ref().map(Heartbeat::to_value),
        _ => None,
    };
    let counts = state::counting(&line.attempts).map(|attempt| &attempt.id);
    let attempts: Vec<Value> = line
        .attempts
        .iter()
        .map(|attempt| attempt_json(attempt, counts == Some(&attempt.id)))
        .collect();
    object! {
        "name" => line.method.name.as_str(),
        "id" => line.method.id.as_str(),
        "state" => line.state.name(),
        "outcome" => outcome,
        "sentence" => describe(line, plan),
        "wall_seconds" => wall,
        "heartbeat" => heartbeat,
        "scored" => line.numbers.done,
        "asked" => line.numbers.total,
        "attempts" => attempts,
    }
}

fn attempt_json(attempt: &Attempt, counts: bool) -> Value {
    let (started, terminal) = (attempt.started.as_ref(), attempt.terminal.as_ref());
    object! {
        "attempt" => attempt.id.to_string(),
        "counts" => counts,
        "reason" => started.map(|started| started.ancestry.reason.name()),
        "started_utc" => started.map(|started| started.started_utc.as_str()),
        "cores" => started.map(|started| started.cores.clone()),
        "ended_utc" => terminal.map(|terminal| terminal.ended_utc.as_str()),
        "outcome" => terminal.map(|terminal| terminal.outcome.to_value()),
        "wall_seconds" => terminal.map(|terminal| terminal.wall_seconds),
        "earlier_seconds" => attempt.earlier_seconds(),
        "inherited" => attempt.inherited().len(),
        "checkpoints" => attempt.checkpoints.len(),
    }
}

fn describe(line: &Line<'_>, plan: &Plan) -> String {
    match &line.state {
        State::NotStarted => "has not started".into(),
        State::NotApplicable(reason) => format!("does not apply to this benchmark: {reason}"),
        State::Lost => "its supervisor is gone; it has no outcome".into(),
        State::Begun(None) => "started; nothing heard of it yet".into(),
        State::Begun(Some(beat)) => {
            let newest = state::counting(&line.attempts);
            let earlier = newest.map_or(0.0, Attempt::earlier_seconds);
            let open = newest.and_then(|one| one.asked(&line.parts).nth(beat.part as usize));
            let place = line.parts.iter().position(|part| Some(*part) == open);
            format!(
                "at {} of {}: {}/{} items of dataset {} of {} when last heard of",
                seconds(earlier + beat.elapsed_seconds),
                seconds(plan.policy.budget_seconds),
                beat.items,
                beat.total,
                datasets(place.map_or(&[][..], |place| &line.parts[..=place])),
                line.numbers.total,
            )
        }
        State::Ended(outcome) => {
            let mut text = sentence(outcome, line.numbers);
            if let Some(load) = beside(&line.attempts) {
                let _ = write!(text, "; beside it, {load}");
            }
            text
        }
    }
}

/// Heavy other load beside the attempt that counts.
fn beside(attempts: &[Attempt]) -> Option<String> {
    let terminal = state::counting(attempts)?.terminal.as_ref()?;
    other_load(&terminal.measured, "used")
}

/// An attempt in one line.
fn one_attempt(attempt: &Attempt, line: &Line<'_>, plan: &Plan) -> String {
    let newest = state::counting(&line.attempts).map(|newest| &newest.id);
    let reason = attempt.started.as_ref();
    let reason = reason.map_or("never started", |started| started.ancestry.reason.name());
    let how = match &attempt.terminal {
        _ if newest == Some(&attempt.id) => describe(line, plan),
        Some(terminal) => {
            let budget = plan.policy.budget_seconds;
            let numbers = Numbers::of(Some(attempt), &line.parts, budget);
            sentence(&terminal.outcome, numbers)
        }
        None => "was cut off; it has no outcome".into(),
    };
    let counts = if newest == Some(&attempt.id) {
        " (counts)"
    } else {
        ""
    };
    format!("{} {reason}: {how}{counts}", attempt.id)
}

fn text(plan: &Plan, lines: &[Line<'_>], bundle: Option<&str>, advice: Option<&str>) -> String {
    let mut table = Table::new([
        ("method", Align::Left),
        ("scored", Align::Right),
        ("state", Align::Left),
    ]);
    for line in lines {
        table.row([
            line.method.name.clone(),
            format!("{}/{}", line.numbers.done, line.numbers.total),
            describe(line, plan),
        ]);
    }
    let mut text = format!(
        "run {} of {}, planned {}\n\n{}",
        plan.run_id,
        brief(plan.protocol.benchmark_id()),
        plan.created_utc,
        table.text()
    );
    for line in lines.iter().filter(|line| line.attempts.len() > 1) {
        let _ = writeln!(text, "\nattempts of {}:", plain(&line.method.name));
        for attempt in &line.attempts {
            let _ = writeln!(text, "  {}", one_attempt(attempt, line, plan));
        }
    }
    for line in lines {
        let State::Ended(outcome) = &line.state else {
            continue;
        };
        let log = state::counting(&line.attempts).map(Attempt::stderr_log);
        let last = match log {
            Some(log) if !outcome.succeeded() => tail(&log, STDERR_LINES),
            _ => Vec::new(),
        };
        if !last.is_empty() {
            let _ = writeln!(text, "\nlast words of {}:", plain(&line.method.name));
        }
        for words in last {
            let _ = writeln!(text, "  {words}");
        }
    }
    let bundle = bundle.map_or_else(|| "none yet".to_owned(), plain);
    let _ = writeln!(text, "\nbundle: {bundle}");
    if let Some(advice) = advice {
        let _ = writeln!(text, "{advice}");
    }
    text
}
