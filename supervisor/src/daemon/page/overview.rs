//! The page of everything: what runs, what waits and why, what ended, and the machine.

use super::words::{Standing, clock, count, instant, time};
use super::{Keep, Moment, Page, chip, machine, name, sentence};
use crate::daemon::view::{QueueView, RunPage, RunState, RunSummary};
use maud::{Markup, html};

/// The overview. It is bounded as the view is.
pub fn overview_page(queue: &QueueView, now_utc: &str, keep: Keep<'_>) -> String {
    let moment = Moment {
        now_utc,
        version: &queue.version,
        host: &queue.machine.host,
    };
    let title = format!(
        "{} running, {} queued - Proctor",
        queue.running.len(),
        queue.queued
    );
    let page = Page {
        moment,
        keep,
        address: "/",
        title: &title,
        heading: html! { "Proctor on " (name(&queue.machine.host)) },
        facts: html! {
            (queue.running.len()) " running · " (queue.queued) " queued · " (queue.ended) " ended · up since "
            (time(&queue.started_utc))
        },
        main: html! {
            @if queue.stopping {
                div.banner role="note" {
                    strong.owed { "The daemon is stopping." } " It takes no more runs and starts no more methods."
                }
            }
            section aria-labelledby="running" {
                h2 id="running" { "Running" }
                @if queue.running.is_empty() { p.note { "Nothing runs." } }
                @for run in &queue.running { (running(run, now_utc)) }
            }
            section aria-labelledby="queue" {
                h2 id="queue" { "Queue" }
                (waiting(queue))
            }
            section aria-labelledby="ended" {
                h2 id="ended" { "Ended" }
                @if queue.recent.is_empty() {
                    p.note { "Nothing has ended yet." }
                } @else {
                    (ended(&queue.recent))
                    @if queue.ended > queue.recent.len() as u64 {
                        p.note { a href="/runs" { "All " (queue.ended) " that ended" } }
                    }
                }
            }
            section aria-labelledby="machine" {
                h2 id="machine" { "Machine" }
                (machine::panel(&queue.machine))
            }
        },
    };
    page.text()
}

/// A part of the list of all runs, newest first. `before` is the number asked for.
pub fn list_page(
    page: &RunPage,
    before: Option<u64>,
    moment: Moment<'_>,
    keep: Keep<'_>,
) -> String {
    let address = before.map_or_else(|| "/runs".to_owned(), |id| format!("/runs?before={id}"));
    let page = Page {
        moment,
        keep,
        address: &address,
        title: "All runs - Proctor",
        heading: html! { "All runs" },
        facts: html! { "Newest first" },
        main: html! {
            @if page.runs.is_empty() {
                p.note { "There are no runs here." }
            } @else {
                (ended(&page.runs))
            }
            nav.pages aria-label="Parts of the list" {
                @if before.is_some() { a href="/runs" { "Newest" } }
                @if let Some(next) = page.next_before { a href=(format!("/runs?before={next}")) { "Older" } }
            }
        },
    };
    page.text()
}

/// The name of a run as a link to its page.
fn link(run: &RunSummary) -> Markup {
    html! { a href=(format!("/runs/{}", run.id)) { "Run " (run.id) ": " (name(&run.benchmark_id)) } }
}

/// Where a run is, in its sentence, less its name, which stands beside it.
pub(super) fn state(run: &RunSummary) -> Markup {
    let name = format!("{}: ", run.benchmark_id);
    sentence(&run.sentence.replacen(&name, "", 1))
}

/// What the sentence of a run that goes on does not tell of its methods; nothing when there is nothing to tell.
pub(super) fn tally(run: &RunSummary) -> Option<String> {
    let methods = run.methods;
    let mut parts = Vec::new();
    if methods.running > 0 {
        parts.push(format!("{} running", count(methods.running, "method")));
    }
    if methods.failed > 0 {
        parts.push(format!("{} failed", methods.failed));
    }
    if methods.without_result > 0 {
        parts.push(format!("{} without a result", methods.without_result));
    }
    let goes_on = run.state == RunState::Running && !parts.is_empty();
    goes_on.then(|| parts.join(", "))
}

fn running(run: &RunSummary, now_utc: &str) -> Markup {
    let seconds = run.started_utc.as_deref().and_then(instant);
    let seconds = instant(now_utc)
        .zip(seconds)
        .map(|(now, start)| now - start);
    let (standing, word) = Standing::of_run(run);
    html! {
        article.card id=(format!("run-{}", run.id)) {
            h3 { (link(run)) " " (chip(standing, word)) }
            (progress(run))
            p { (state(run)) }
            p.note {
                @if let Some(tally) = tally(run) { (tally) " · " }
                "priority " (run.priority)
                @if run.exclusive { " · alone on the machine" }
                @if let Some(started) = &run.started_utc { " · since " (time(started)) }
                @if let Some(seconds) = seconds.filter(|seconds| *seconds >= 0.0) { ", for " (clock(seconds)) }
            }
        }
    }
}

/// A bar of the methods that ended.
pub(super) fn progress(run: &RunSummary) -> Markup {
    let methods = run.methods;
    let label = format!("{} of {} methods ended", methods.ended, methods.total);
    html! {
        @if methods.total > 0 {
            progress max=(methods.total) value=(methods.ended.min(methods.total)) aria-label=(label) {
                (label)
            }
        }
    }
}

fn waiting(queue: &QueueView) -> Markup {
    let shown = queue.next.len() as u64;
    html! {
        @if queue.next.is_empty() {
            p.note { "Nothing waits." }
        } @else {
            @if let Some(why) = &queue.waits_for { p { (sentence(why)) } }
            div.wide {
                table.stack {
                    thead { tr {
                        th.number scope="col" { "Place" } th scope="col" { "Run" } th scope="col" { "Why it waits" }
                        th.number scope="col" { "Priority" } th.number scope="col" { "Methods" }
                        th.number scope="col" { "Cores" }
                    } }
                    tbody { @for run in &queue.next { tr id=(format!("run-{}", run.id)) {
                        td.number data-label="place" {
                            @match run.position { Some(position) => (position), None => span.none { "-" } }
                        }
                        td.name { (link(run)) small { "submitted " (time(&run.submitted_utc)) } }
                        td.why { (sentence(&run.sentence)) }
                        td.number data-label="priority" { (run.priority) }
                        td.number data-label="methods" { (run.methods.total) }
                        td.number data-label="cores" {
                            (run.cores_wanted) @if run.exclusive { ", alone" }
                        }
                    } } }
                }
            }
            @if queue.queued > shown {
                p.note { "and " (queue.queued - shown) " more behind these" }
            }
        }
    }
}

/// Runs in a table, whatever became of them.
fn ended(runs: &[RunSummary]) -> Markup {
    html! {
        div.wide {
            table.stack {
                thead { tr {
                    th scope="col" { "Run" } th scope="col" { "Outcome" } th scope="col" { "What happened" }
                    th.number scope="col" { "Methods" } th.number scope="col" { "Ended" }
                } }
                tbody { @for run in runs {
                    @let (standing, word) = Standing::of_run(run);
                    tr id=(format!("run-{}", run.id)) {
                        td.name { (link(run)) }
                        td.outcome { (chip(standing, word)) }
                        td.why { (state(run)) }
                        td.number data-label="methods" { (run.methods.ended) " / " (run.methods.total) }
                        td.number data-label="ended" {
                            @match &run.ended_utc { Some(ended) => (time(ended)), None => span.none { "-" } }
                        }
                    }
                } }
            }
        }
    }
}
