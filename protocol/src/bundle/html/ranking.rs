//! The page of rankings.

use maud::{Markup, html};
use proctor_wire::Family;

use super::summary::{Standing, Summary, summaries};
use super::{metric_title, page, score, seconds, short};
use crate::bundle::Artifact;
use crate::bundle::document::Document;
use crate::metric::Metric;
use crate::report::AggregateRow;

pub(in crate::bundle) fn ranking_page(document: &Document, stem: &str) -> String {
    let methods = summaries(document);
    let title = format!("{}: rankings", document.benchmark_id());
    let main = html! {
        (banner(&methods))
        h2 { "Methods" }
        p.note { (tally(&methods)) }
        (method_table(&methods))
        @for family in [Family::Pair, Family::Retrieval] {
            (rankings(document, family))
        }
    };
    page(&title, document, stem, Artifact::Html, &main)
}

/// What is missing, said first.
fn banner(methods: &[Summary<'_>]) -> Markup {
    let owed: Vec<&Summary<'_>> = methods
        .iter()
        .filter(|one| one.standing == Standing::Owed)
        .collect();
    html! {
        @if !owed.is_empty() {
            div.banner role="note" {
                strong.owed { "This bundle is incomplete." }
                " These methods are owed another attempt; what is missing is not held against them:"
                ul { @for method in owed { li { b { (method.name) } ": " (method.sentence) } } }
            }
        }
    }
}

/// How many methods came out how: "7 methods: 2 completed, 5 failed".
fn tally(methods: &[Summary<'_>]) -> String {
    let count = |standing| {
        methods
            .iter()
            .filter(|one| one.standing == standing)
            .count()
    };
    let parts: Vec<String> = [
        (Standing::Completed, "completed"),
        (Standing::Failed, "failed"),
        (Standing::Owed, "owed another attempt"),
        (Standing::NotApplicable, "not applicable"),
    ]
    .into_iter()
    .map(|(standing, word)| (count(standing), word))
    .filter(|(count, _)| *count > 0)
    .map(|(count, word)| format!("{count} {word}"))
    .collect();
    let noun = if methods.len() == 1 {
        "method"
    } else {
        "methods"
    };
    format!("{} {noun}: {}.", methods.len(), parts.join(", "))
}

fn chip(method: &Summary<'_>) -> Markup {
    let outcome = &method.outcome;
    html! {
        @match method.standing {
            Standing::Owed => span.chip.owed { (outcome) },
            Standing::Failed => span.chip.bad { (outcome) },
            Standing::Completed => span.chip.good { (outcome) },
            Standing::NotApplicable => span.chip.none { (outcome) },
        }
    }
}

fn method_table(methods: &[Summary<'_>]) -> Markup {
    html! {
        div.wide {
            table.stack {
                thead { tr {
                    th { "Method" } th { "Outcome" } th { "What happened" }
                    th.number { "Datasets" } th.number { "Wall time" }
                } }
                tbody { @for method in methods { tr {
                    td.name { (method.name) small { (method.kind) " " code title=(method.id) { (short(method.id)) } } }
                    td.outcome { (chip(method)) }
                    td.why { (method.sentence) }
                    td.number data-label="datasets" { (method.scored) " / " (method.applicable) }
                    td.number data-label="wall time" { @match method.wall_seconds {
                        Some(wall) => (seconds(wall)),
                        None => span.none { "-" },
                    } }
                } } }
            }
        }
    }
}

fn rankings(document: &Document, family: Family) -> Markup {
    let rows: Vec<&AggregateRow> = document
        .aggregate()
        .iter()
        .filter(|row| row.family == family)
        .collect();
    let title = match family {
        Family::Pair => "Pair classification",
        Family::Retrieval => "Retrieval",
    };
    html! {
        @if let Some(first) = rows.first() {
            h2 { (title) }
            p.note {
                "Mean over " (first.expected_dataset_count) " "
                (if first.expected_dataset_count == 1 { "dataset" } else { "datasets" })
                " with equal weight. Ranked is who has a value on every one of them."
            }
            @for ranking in rows.chunk_by(|a, b| a.metric == b.metric) {
                (ranking_table(document, family, ranking))
            }
        }
    }
}

fn ranking_table(document: &Document, family: Family, ranking: &[&AggregateRow]) -> Markup {
    let metric = ranking.first().map_or("", |row| &row.metric);
    let (ranked, unranked): (Vec<&AggregateRow>, Vec<_>) =
        ranking.iter().partition(|row| row.rank.is_some());
    html! {
        h3 id={ (family.name()) "-" (metric) } { (metric_title(family, metric)) }
        @if let Some(known) = Metric::find(family, metric) {
            p.note { (known.meaning) "; higher is better." }
        }
        @for dataset in undefined_on(document, metric) {
            p.note { "It is undefined on " b { (dataset) } ", for every method, so nobody is ranked." }
        }
        @if !ranked.is_empty() {
            div.wide {
                table {
                    thead { tr {
                        th.number { "Rank" } th { "Method" } th.number { "Mean" } th.number { "Median" } th.number { "Time" }
                    } }
                    tbody { @for row in ranked { (ranking_row(row)) } }
                }
            }
        }
        @if !unranked.is_empty() {
            p.note {
                "Not ranked: "
                @for (n, (why, names)) in by_reason(&unranked).iter().enumerate() {
                    @if n > 0 { "; " }
                    @for (n, name) in names.iter().enumerate() { @if n > 0 { ", " } b { (name) } }
                    " (" (why) ")"
                }
                "."
            }
        }
    }
}

fn ranking_row(row: &AggregateRow) -> Markup {
    let part = row.mean_score.unwrap_or_default() * 100.0;
    html! {
        tr {
            td.number { @if let Some(rank) = row.rank { (rank) } }
            td.name { (row.algorithm_name) }
            td.number.bar style=(format!("--part:{part:.1}%")) { (score(row.mean_score)) }
            td.number { (score(row.median_score)) }
            td.number { (seconds(row.elapsed_seconds)) }
        }
    }
}

/// Datasets on which methods were scored but the metric has no value for any of them.
fn undefined_on<'a>(document: &'a Document, metric: &str) -> Vec<&'a str> {
    let datasets = document
        .rows()
        .chunk_by(|a, b| a.dataset_name == b.dataset_name && a.metric == b.metric)
        .filter(|rows| rows.first().is_some_and(|row| *row.metric == *metric));
    datasets
        .filter(|rows| {
            let mut scored = rows.iter().filter(|row| row.sample_count > 0).peekable();
            scored.peek().is_some() && scored.all(|row| !row.eligible)
        })
        .filter_map(|rows| rows.first().map(|row| &*row.dataset_name))
        .collect()
}

/// Names by the reason why they are not ranked, in the order they come.
fn by_reason<'a>(unranked: &[&'a AggregateRow]) -> Vec<(String, Vec<&'a str>)> {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for row in unranked {
        let why = match &row.not_applicable_reason {
            Some(reason) => format!("not applicable: {reason}"),
            None => format!(
                "a value on {} of {} datasets",
                row.dataset_count, row.expected_dataset_count
            ),
        };
        match reasons.iter_mut().find(|(other, _)| *other == why) {
            Some((_, names)) => names.push(&row.algorithm_name),
            None => reasons.push((why, vec![&row.algorithm_name])),
        }
    }
    reasons
}
