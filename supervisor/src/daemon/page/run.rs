//! The page of one run.

use super::timeline::{Bar, MOST_BARS, Timeline};
use super::words::{Standing, clock, count, instant, time, took};
use super::{Keep, Moment, Page, chip, files, method, name, overview, sentence, short};
use crate::daemon::view::{AttemptView, MethodState, MethodView, RunState, RunView};
use crate::render::brief;
use crate::render::progress::ranges;
use maud::{Markup, html};

/// Methods on one page.
const METHODS: usize = 50;
/// The most attempts in the table beside the picture.
const ATTEMPTS: usize = MOST_BARS;
/// The most lacks of isolation that are listed.
const LACKS: usize = 30;

/// The page of a run. `part` is which part of its methods is shown, from 1.
pub fn run_page(run: &RunView, part: usize, moment: Moment<'_>, keep: Keep<'_>) -> String {
    let summary = &run.summary;
    let (standing, word) = Standing::of_run(summary);
    let id = summary.id;
    let over = summary.state == RunState::Ended || summary.cancelled;
    let cancel = (!over).then(|| format!("/runs/{id}/cancel"));
    let parts = run.methods.len().div_ceil(METHODS).max(1);
    let part = part.clamp(1, parts);
    let address = match part {
        1 => format!("/runs/{id}"),
        part => format!("/runs/{id}?part={part}"),
    };
    let title = format!(
        "Run {id} {word}: {} - Proctor",
        brief(&summary.benchmark_id)
    );
    let page = Page {
        moment,
        keep,
        address: &address,
        title: &title,
        heading: html! { (name(&summary.benchmark_id)) " " (chip(standing, word)) },
        facts: html! {
            "Run " (id) " · protocol " code title=(brief(&summary.protocol_id)) { (short(&summary.protocol_id)) }
            " · budget " (clock(run.budget_seconds)) " a method"
        },
        main: html! {
            (degraded(run))
            section aria-labelledby="state" {
                h2 id="state" { "State" }
                p.lead { (overview::state(summary)) }
                (overview::progress(summary))
                @if let Some(tally) = overview::tally(summary) { p.note { (tally) } }
                (facts(run))
                @if let Some(cancel) = &cancel { p { a href=(cancel) { "Cancel this run ..." } } }
            }
            section aria-labelledby="methods" {
                h2 id="methods" { "Methods" }
                @if parts > 1 {
                    p.note { "Running methods first, then failed ones, then the others; part " (part) " of " (parts) "." }
                }
                (method::table(&shown(&run.methods, part), cancel.as_deref()))
                (part_links(id, part, parts))
            }
            (attempts(run, moment))
            (files::section(run))
        },
    };
    page.text()
}

/// What its rooms lack, said first: it bears on every number below.
fn degraded(run: &RunView) -> Markup {
    html! {
        @if !run.degraded.is_empty() {
            div.banner role="note" {
                strong.owed { "Its methods were isolated less than they were to be." }
                ul { @for lack in run.degraded.iter().take(LACKS) { li { (sentence(lack)) } } }
            }
        }
    }
}

fn facts(run: &RunView) -> Markup {
    let summary = &run.summary;
    html! {
        dl.compact {
            @if let Some(position) = summary.position { dt { "place in the queue" } dd { (position) } }
            dt { "priority" } dd { (summary.priority) @if summary.exclusive { ", alone on the machine" } }
            dt { "submitted" } dd { (time(&summary.submitted_utc)) }
            @if let Some(started) = &summary.started_utc { dt { "started" } dd { (time(started)) } }
            @if let Some(ended) = &summary.ended_utc { dt { "ended" } dd { (time(ended)) } }
            dt { "cores" }
            dd { @match (run.cores.as_slice(), summary.state) {
                ([], RunState::Ended) => (summary.cores_wanted),
                ([], _) => { (summary.cores_wanted) " wanted" },
                (cores, _) => (ranges(cores)),
            } }
        }
    }
}

/// The methods of a part. When all fit on one page they keep their order, so that nothing jumps about.
fn shown(methods: &[MethodView], part: usize) -> Vec<(usize, &MethodView)> {
    let mut order: Vec<(usize, &MethodView)> = methods.iter().enumerate().collect();
    if methods.len() > METHODS {
        order.sort_by_key(|(_, method)| match Standing::of_method(method).0 {
            Standing::Running => 0,
            Standing::Failed | Standing::Owed => 1,
            Standing::Queued => 2,
            Standing::Completed | Standing::NotApplicable => 3,
        });
    }
    order
        .into_iter()
        .skip((part - 1) * METHODS)
        .take(METHODS)
        .collect()
}

fn part_links(id: u64, part: usize, parts: usize) -> Markup {
    html! {
        @if parts > 1 {
            nav.pages aria-label="Parts of the methods" {
                @if part > 1 { a href=(format!("/runs/{id}?part={}", part - 1)) { "Earlier part" } }
                @if part < parts { a href=(format!("/runs/{id}?part={}", part + 1)) { "Next part" } }
            }
        }
    }
}

/// An attempt with what is needed to draw it.
struct Entry<'a> {
    method: &'a MethodView,
    attempt: &'a AttemptView,
    started: f64,
    standing: Standing,
    word: String,
}

fn attempts(run: &RunView, moment: Moment<'_>) -> Markup {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for method in &run.methods {
        let running = method.state == MethodState::Running;
        for attempt in &method.attempts {
            let Some(started) = attempt.started_utc.as_deref().and_then(instant) else {
                continue;
            };
            let (standing, word) = Standing::of_attempt(attempt, running);
            entries.push(Entry {
                method,
                attempt,
                started,
                standing,
                word,
            });
        }
    }
    entries.sort_by(|a, b| a.started.total_cmp(&b.started));
    let earlier = entries.len().saturating_sub(ATTEMPTS);
    let entries = &entries[earlier..];
    let now = instant(moment.now_utc);
    html! {
        @if !entries.is_empty() {
            section aria-labelledby="attempts" {
                h2 id="attempts" { "Attempts" }
                @if earlier > 0 { p.note { "The newest " (ATTEMPTS) "; " (earlier) " earlier ones are not shown." } }
                (picture(entries, now).markup())
                (legend(entries))
                (attempt_table(entries, now))
            }
        }
    }
}

fn picture(entries: &[Entry<'_>], now: Option<f64>) -> Timeline {
    let first = entries.first().map_or(0.0, |entry| entry.started);
    let mut lanes: Vec<&[usize]> = entries
        .iter()
        .map(|entry| entry.attempt.cores.as_slice())
        .collect();
    lanes.sort_unstable();
    lanes.dedup();
    let bars: Vec<Bar> = entries
        .iter()
        .enumerate()
        .map(|(at, entry)| {
            let start = entry.started - first;
            Bar {
                lane: lanes
                    .iter()
                    .position(|cores| *cores == entry.attempt.cores)
                    .unwrap_or(0),
                number: at + 1,
                name: entry.method.name.clone(),
                standing: entry.standing,
                outcome: entry.word.clone(),
                start,
                end: end(entry, now).map_or(start, |end| end - first).max(start),
                pauses: entry
                    .attempt
                    .pauses
                    .iter()
                    .map(|pause| {
                        (
                            start + pause.after_seconds,
                            start + pause.after_seconds + pause.seconds,
                        )
                    })
                    .collect(),
            }
        })
        .collect();
    let running = entries
        .iter()
        .any(|entry| entry.standing == Standing::Running);
    let last = bars.iter().map(|bar| bar.end).fold(0.0, f64::max);
    let span = match now {
        Some(now) if running => last.max(now - first),
        _ => last,
    };
    Timeline {
        lanes: lanes.into_iter().map(lane).collect(),
        bars,
        span: span.max(1.0),
    }
}

/// When an attempt ended, or how far it has come.
fn end(entry: &Entry<'_>, now: Option<f64>) -> Option<f64> {
    let known = entry.started + entry.attempt.seconds;
    match entry.standing {
        Standing::Running => now.map(|now| known.max(now)),
        _ => Some(known),
    }
}

fn lane(cores: &[usize]) -> String {
    match cores {
        [] => "cores unknown".to_owned(),
        [core] => format!("core {core}"),
        cores => format!("cores {}", ranges(cores)),
    }
}

fn legend(entries: &[Entry<'_>]) -> Markup {
    let kinds = [
        (Standing::Running, "running"),
        (Standing::Completed, "completed"),
        (Standing::Failed, "failed (hatched)"),
        (Standing::Owed, "not held against it (dashed)"),
    ];
    html! {
        ul.legend {
            @for (standing, word) in kinds {
                @if entries.iter().any(|entry| entry.standing == standing) {
                    li { span class=(format!("swatch {}", standing.class())) aria-hidden="true" {} " " (word) }
                }
            }
            @if entries.iter().any(|entry| !entry.attempt.pauses.is_empty()) {
                li { span.swatch.pause aria-hidden="true" {} " paused" }
            }
        }
    }
}

fn attempt_table(entries: &[Entry<'_>], now: Option<f64>) -> Markup {
    html! {
        details id="attempt-table" {
            summary { (count(entries.len() as u64, "attempt")) " in words" }
            div.body { div.wide { table.stack {
                thead { tr {
                    th.number scope="col" { "No." } th scope="col" { "Method" } th scope="col" { "Attempt" }
                    th scope="col" { "Outcome" } th scope="col" { "Started" } th.number scope="col" { "Took" }
                } }
                tbody { @for (at, entry) in entries.iter().enumerate() {
                    tr {
                        td.number data-label="no." { (at + 1) }
                        td.name { (name(&entry.method.name)) small { (lane(&entry.attempt.cores)) } }
                        td data-label="attempt" {
                            (brief(&entry.attempt.id)) @if entry.attempt.counts { ", counts" }
                        }
                        td.outcome {
                            (chip(entry.standing, &entry.word))
                            @if let Some(outcome) = &entry.attempt.outcome { p.note { (sentence(&outcome.sentence)) } }
                            @for remark in &entry.attempt.remarks { p.note { (sentence(remark)) } }
                        }
                        td data-label="started" { (time(entry.attempt.started_utc.as_deref().unwrap_or("unknown"))) }
                        td.number data-label="took" { @if entry.standing == Standing::Running {
                            (clock(end(entry, now).map_or(f64::NAN, |end| end - entry.started))) " so far"
                        } @else {
                            (took(entry.attempt.seconds))
                        } }
                    }
                } }
            } } }
        }
    }
}
