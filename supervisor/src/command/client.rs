//! The commands that ask a daemon: `submit`, `ls`, `show`, `watch`, `logs`, `cancel`, `fetch`.

use crate::cli::{Cancel, Fetch, Logs, Ls, RunStateName, Show, Submit, ToDaemon, Watch};
use crate::daemon::api::Cancel as Wish;
use crate::daemon::client::{Client, ClientError, fetch as bundle, segment, watch as follow};
use crate::daemon::places::client_socket;
use crate::daemon::submit::{Submission, SubmittedLimits};
use crate::daemon::view::{LogView, RunPage, RunState, RunSummary, RunView};
use crate::error::{Error, Exit};
use crate::render::table::{Align, Table};
use crate::render::{brief, output, plain};
use crate::run::preflight::empty_or_absent;
use proctor_protocol::object;
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A log that is followed is asked for again after so long without news.
const FOLLOW: Duration = Duration::from_millis(500);

fn client(at: &ToDaemon) -> Result<Client, Error> {
    Client::new(&client_socket(at.socket.as_deref())?)
}

/// A document of the daemon, as it is.
fn print_document(document: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(document);
    let text = text.map_err(|error| Error::Infrastructure(error.to_string()))?;
    output::print(&(text + "\n"))
}

/// The daemon works elsewhere, so it is told whole paths.
fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path)
        .map_err(|error| Error::input(format!("{}: {error}", brief(&path.display().to_string()))))
}

pub(super) fn submit(args: &Submit) -> Result<Exit, Error> {
    let submission = Submission {
        protocol: absolute(&args.protocol)?,
        methods: absolute(&args.methods)?,
        priority: args.priority,
        exclusive: args.exclusive,
        cores: args.cores.map(|cores| cores as usize),
        jobs: args.jobs as usize,
        only: args.only.clone(),
        basename: args.basename.clone(),
        containment: args.containment.map(|rung| rung.name().to_owned()),
        official: args.official,
        allow_degraded: args.allow_degraded,
        max_load: args.load.max_load,
        max_load_wait_seconds: args.load.max_load.map(|_| args.load.max_load_wait),
        limits: SubmittedLimits::of(&args.limits.asked()),
    };
    let run: RunSummary = client(&args.daemon)?
        .post("/v1/runs", &submission)
        .map_err(|error| match error {
            ClientError::Broken { .. } => Error::Infrastructure(format!(
                "{error}; whether it took the run is not known: look at `proctor ls` before you submit it again"
            )),
            other => other.into(),
        })?;
    if args.report.json {
        print_document(&run)?;
    } else {
        output::print(&format!(
            "run {}: {}; `proctor watch {}` follows it\n",
            run.id,
            plain(&run.sentence),
            run.id
        ))?;
    }
    Ok(Exit::Success)
}

pub(super) fn ls(args: &Ls) -> Result<Exit, Error> {
    let mut path = format!("/v1/runs?limit={}", args.limit);
    if let Some(state) = args.state {
        let state = match state {
            RunStateName::Queued => "queued",
            RunStateName::Running => "running",
            RunStateName::Ended => "ended",
        };
        let _ = write!(path, "&state={state}");
    }
    if let Some(before) = args.before {
        let _ = write!(path, "&before={before}");
    }
    let page: RunPage = client(&args.daemon)?.get(&path)?;
    if args.report.json {
        print_document(&page)?;
        return Ok(Exit::Success);
    }
    if page.runs.is_empty() {
        output::print("no runs\n")?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new([
        ("run", Align::Right),
        ("state", Align::Left),
        ("priority", Align::Right),
        ("methods", Align::Right),
        ("benchmark", Align::Left),
        ("how it is", Align::Left),
    ]);
    for run in &page.runs {
        table.row([
            run.id.to_string(),
            state(run).to_owned(),
            run.priority.to_string(),
            format!("{}/{}", run.methods.ended, run.methods.total),
            brief(&run.benchmark_id),
            run.sentence.clone(),
        ]);
    }
    let mut text = table.text();
    if let Some(before) = page.next_before {
        let _ = writeln!(text, "older ones: proctor ls --before {before}");
    }
    output::print(&text)?;
    Ok(Exit::Success)
}

fn state(run: &RunSummary) -> &'static str {
    match run.state {
        RunState::Queued => "queued",
        RunState::Running => "running",
        RunState::Ended => "ended",
    }
}

pub(super) fn show(args: &Show) -> Result<Exit, Error> {
    let run: RunView = client(&args.daemon)?.get(&format!("/v1/runs/{}", args.run))?;
    if args.report.json {
        print_document(&run)?;
    } else {
        output::print(&text(&run))?;
    }
    Ok(Exit::Success)
}

fn text(run: &RunView) -> String {
    let summary = &run.summary;
    let mut text = format!(
        "run {} of {}, {}: {}\nsubmitted {}, priority {}{}\nrun directory: {}\n\n",
        summary.id,
        brief(&summary.benchmark_id),
        state(summary),
        plain(&summary.sentence),
        summary.submitted_utc,
        summary.priority,
        if summary.exclusive { ", exclusive" } else { "" },
        plain(&run.run_dir),
    );
    let mut table = Table::new([
        ("method", Align::Left),
        ("scored", Align::Right),
        ("attempts", Align::Right),
        ("state", Align::Left),
    ]);
    for method in &run.methods {
        table.row([
            method.name.clone(),
            format!("{}/{}", method.datasets_done, method.datasets_total),
            method.attempts.len().to_string(),
            method.sentence.clone(),
        ]);
    }
    text.push_str(&table.text());
    for method in &run.methods {
        let failed = method.outcome.as_ref().is_some_and(|end| !end.succeeded);
        if failed && !method.stderr.is_empty() {
            let _ = writeln!(text, "\nlast words of {}:", plain(&method.name));
            for line in &method.stderr {
                let _ = writeln!(text, "  {}", plain(line));
            }
        }
    }
    let bundle = run.bundle.as_ref();
    let bundle = bundle.map_or_else(|| "none yet".to_owned(), |bundle| plain(&bundle.path));
    let _ = writeln!(text, "\nbundle: {bundle}");
    text
}

pub(super) fn watch(args: &Watch) -> Result<Exit, Error> {
    let client = client(&args.daemon)?;
    let patience = Duration::from_secs(args.patience);
    let mut say = |line: &str| output::tell(&plain(line));
    let run = follow::watch(&client, args.run, patience, &mut say)?;
    if args.report.json {
        print_document(&run)?;
    } else {
        output::print(&format!("run {}: {}\n", run.id, plain(&run.sentence)))?;
    }
    Ok(match run.exit_code {
        Some(0) => Exit::Success,
        Some(1) => Exit::Negative,
        Some(2) => Exit::Usage,
        Some(130) => Exit::Interrupted,
        _ => Exit::Infrastructure,
    })
}

pub(super) fn logs(args: &Logs) -> Result<Exit, Error> {
    let client = client(&args.daemon)?;
    let place = format!(
        "/v1/runs/{}/methods/{}/log",
        args.run,
        segment(&args.method)
    );
    let mut attempt = args.attempt.clone();
    let mut from = 0;
    loop {
        let mut path = format!("{place}?from={from}");
        if let Some(attempt) = &attempt {
            let _ = write!(path, "&attempt={}", segment(attempt));
        }
        let log: LogView = client.get(&path)?;
        let lines: Vec<String> = log.text.split('\n').map(plain).collect();
        output::print(&lines.join("\n"))?;
        let more = log.next > from;
        from = log.next;
        // The one that was begun with, also when a newer one starts meanwhile.
        attempt = Some(log.attempt);
        if log.complete || (!args.follow && !more) {
            return Ok(Exit::Success);
        }
        if !more {
            std::thread::sleep(FOLLOW);
        }
    }
}

pub(super) fn cancel(args: &Cancel) -> Result<Exit, Error> {
    let wish = Wish {
        methods: args.methods.clone(),
    };
    let path = format!("/v1/runs/{}/cancel", args.run);
    let run: RunSummary = client(&args.daemon)?.post(&path, &wish)?;
    if args.report.json {
        print_document(&run)?;
    } else {
        output::print(&format!(
            "run {}: cancelled {}; {}\n",
            run.id,
            match args.methods.len() {
                0 => "as a whole".to_owned(),
                _ => brief(&args.methods.join(", ")),
            },
            plain(&run.sentence)
        ))?;
    }
    Ok(Exit::Success)
}

pub(super) fn fetch(args: &Fetch) -> Result<Exit, Error> {
    empty_or_absent(&args.output, "--output")?;
    let published = bundle::fetch(&client(&args.daemon)?, args.run, &args.output)?;
    let path = published.path.display().to_string();
    if args.report.json {
        output::print_json(&object! {
            "bundle" => path,
            "root_sha256" => published.root_sha256.as_str(),
        })?;
    } else {
        output::print(&format!(
            "bundle: {}\nroot digest: {}\n",
            plain(&path),
            published.root_sha256
        ))?;
    }
    Ok(Exit::Success)
}
