//! `proctor status`: reads the run directory and nothing else, at any time, also while the run goes on.

use crate::cli::Status;
use crate::error::{Error, Exit};
use crate::render::sentence::{Numbers, sentence, tail};
use crate::render::table::{Align, Table};
use crate::render::{brief, output, plain, seconds};
use crate::run::{STDERR_LINES, host};
use crate::rundir::plan::{Plan, datasets, not_applicable, parts};
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
    let lines: Vec<Line<'_>> = plan
        .methods
        .iter()
        .map(|method| line(&run, &plan, method))
        .collect::<Result<_, Error>>()?;
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
            "methods" => rows,
            "bundle" => bundle,
            "advice" => advice(&run, &lines),
        })?;
    } else {
        let advice = advice(&run, &lines);
        output::print(&text(&plan, &lines, bundle.as_deref(), advice.as_deref()))?;
    }
    Ok(Exit::Success)
}

fn line<'a>(run: &RunDir, plan: &Plan, method: &'a Method) -> Result<Line<'a>, Error> {
    let attempts = state::attempts(run, &method.id)?;
    let newest = state::counting(&attempts);
    let state = match newest {
        None => match not_applicable(&plan.protocol, method) {
            Some(reason) => State::NotApplicable(reason),
            None => State::NotStarted,
        },
        Some(attempt) => match &attempt.terminal {
            Some(terminal) => State::Ended(terminal.outcome.clone()),
            None if attempt.started.as_ref().is_some_and(is_lost) => State::Lost,
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

/// True when the supervisor of an attempt does not run any more: another start of this machine, or no such process. From
/// another machine this cannot be told.
fn is_lost(started: &Started) -> bool {
    let here = started.host == host::machine().host;
    here && (started.boot_id != host::boot_id() || started.supervisor.is_gone())
}

/// What to do about a run whose supervisor is gone; `None` when there is nothing to do.
fn advice(run: &RunDir, lines: &[Line<'_>]) -> Option<String> {
    let lost = lines.iter().any(|line| matches!(line.state, State::Lost));
    lost.then(|| {
        format!(
            "the supervisor of this run is gone and nothing goes on; `proctor merge {}` makes a bundle of what is there",
            plain(&run.root().display().to_string())
        )
    })
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
    let attempts: Vec<String> = line
        .attempts
        .iter()
        .map(|attempt| attempt.id.to_string())
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

fn describe(line: &Line<'_>, plan: &Plan) -> String {
    match &line.state {
        State::NotStarted => "has not started".into(),
        State::NotApplicable(reason) => format!("does not apply to this benchmark: {reason}"),
        State::Lost => "its supervisor is gone; it has no outcome".into(),
        State::Begun(None) => "started; nothing heard of it yet".into(),
        State::Begun(Some(beat)) => format!(
            "at {} of {}: {}/{} items of dataset {} of {} when last heard of",
            seconds(beat.elapsed_seconds),
            seconds(plan.policy.budget_seconds),
            beat.items,
            beat.total,
            datasets(line.parts.get(..=beat.part as usize).unwrap_or_default()),
            line.numbers.total,
        ),
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
