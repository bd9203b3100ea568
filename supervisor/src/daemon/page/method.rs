//! The methods of a run.

use super::words::{Standing, clock, left, took};
use super::{address, chip, name, sentence, short};
use crate::daemon::view::{MethodState, MethodView};
use crate::render::brief;
use maud::{Markup, html};

/// The most lines of stderr that are shown.
const STDERR_LINES: usize = 20;

/// The table of these methods, each with its position in the methods file. `cancel` is the address that cancels, of a run
/// that can be cancelled.
pub(super) fn table(methods: &[(usize, &MethodView)], cancel: Option<&str>) -> Markup {
    html! {
        div.wide {
            table.stack.methods {
                thead { tr {
                    th scope="col" { "Method" } th scope="col" { "State" } th scope="col" { "What happens" }
                    th.number scope="col" { "Datasets" } th.number scope="col" { "Time of budget" }
                } }
                @for (at, method) in methods { (row(*at, method, cancel)) }
            }
        }
    }
}

/// A method: a body of its own, since its last words belong to it.
fn row(at: usize, method: &MethodView, cancel: Option<&str>) -> Markup {
    let cancel = cancel.filter(|_| method.state != MethodState::Ended);
    let (standing, word) = Standing::of_method(method);
    html! {
        tbody id=(format!("method-{at}")) data-state=(standing.class()) {
            tr {
                th.name scope="row" { (name(&method.name)) small { code title=(brief(&method.id)) { (short(&method.id)) }
                        @if let Some(cancel) = cancel {
                            " · " a href=(format!("{cancel}?method={}", address(&method.id))) aria-label=(format!("Cancel {}", brief(&method.name))) { "Cancel ..." }
                        } } }
                td.outcome { (chip(standing, &word)) }
                td.why { @if method.state == MethodState::Running && method.items_total > 0 {
                    (under_way(method))
                } @else {
                    p { (sentence(&method.sentence)) }
                    @for remark in remarks(method) { p.note { (sentence(remark)) } }
                } }
                td.number data-label="datasets" { (method.datasets_done) " / " (method.datasets_total) }
                td.number data-label="time" { (time_of_budget(method)) }
            }
            @if !method.stderr.is_empty() && standing != Standing::Completed {
                tr.words { td colspan="5" { (last_words(method)) } }
            }
        }
    }
}

/// What is worth a word about the attempt that counts.
fn remarks(method: &MethodView) -> &[String] {
    let counting = method.attempts.iter().rfind(|attempt| attempt.counts);
    counting.map_or(&[], |attempt| &attempt.remarks)
}

/// How far a running method is.
fn under_way(method: &MethodView) -> Markup {
    let label = format!("{} of {} items", method.items_done, method.items_total);
    html! {
        p {
            @if let Some(dataset) = &method.dataset { "On " b { (name(dataset)) } ": " }
            (label) @if method.dataset.is_none() { " of a dataset" } "."
        }
        progress max=(method.items_total) value=(method.items_done.min(method.items_total)) aria-label=(label) {
            (label)
        }
        p.note { (sentence(&left(method))) }
    }
}

fn time_of_budget(method: &MethodView) -> Markup {
    let budget = clock(method.budget_seconds);
    let share = (method.elapsed_seconds / method.budget_seconds * 100.0).clamp(0.0, 100.0);
    html! {
        @if method.state == MethodState::Queued {
            "0 s / " (budget)
        } @else if method.state == MethodState::Ended {
            (took(method.elapsed_seconds)) " / " (budget)
        } @else {
            (clock(method.elapsed_seconds)) " / " (budget)
            @if method.state == MethodState::Running && share.is_finite() {
                progress.budget max="100" value=(format!("{share:.1}")) aria-label="share of the budget that is used" {
                    (format!("{share:.0} %"))
                }
            }
        }
    }
}

fn last_words(method: &MethodView) -> Markup {
    let skipped = method.stderr.len().saturating_sub(STDERR_LINES);
    let label = format!("The last lines of stderr of {}", brief(&method.name));
    html! {
        p.note { "Last lines of its stderr:" }
        pre.stderr tabindex="0" role="region" aria-label=(label) dir="ltr" {
            @for line in method.stderr.iter().skip(skipped) { (clean(line)) "\n" }
        }
    }
}

/// A line of stderr: bounded and harmless, with its spaces.
fn clean(line: &str) -> String {
    const MOST: usize = 400;
    let mut characters = line.chars();
    let start: String = characters.by_ref().take(MOST).collect();
    let mut out = crate::render::plain(&start);
    if characters.next().is_some() {
        out.push_str("...");
    }
    out
}
