//! The page of every row, configuration and card.

use maud::{Markup, html};

use super::summary::{Summary, summaries};
use super::{metric_title, page, score, seconds, short};
use crate::bundle::Artifact;
use crate::bundle::document::Document;
use crate::canonical::{Value, canonical, pretty};
use crate::outcome::Outcome;
use crate::report::Row;

pub(in crate::bundle) fn details_page(document: &Document, stem: &str) -> String {
    let title = format!("{}: details", document.benchmark_id());
    let methods = summaries(document);
    let main = html! {
        h2 { "Datasets" }
        @for dataset in document.rows().chunk_by(|a, b| a.family == b.family && a.dataset_name == b.dataset_name) {
            (dataset_details(document, dataset))
        }
        h2 { "Methods" }
        @for method in &methods { (method_details(document, method)) }
        (thresholds(document))
        h2 { "Protocol" }
        details {
            summary { "The frozen definition" }
            div.body { (json(document.metadata().get("benchmark_protocol"))) }
        }
    };
    page(&title, document, stem, Artifact::DetailsHtml, &main)
}

fn json(value: Option<&Value>) -> Markup {
    html! { @if let Some(value) = value { pre { (pretty(value)) } } }
}

/// The card of a dataset, of those of the bundle.
fn card<'a>(document: &'a Document, name: &str) -> Option<&'a Value> {
    let cards = document.cards().get("datasets")?.as_array()?;
    let named = |card: &&Value| card.get("name").and_then(Value::as_str) == Some(name);
    cards.iter().find(named)
}

fn dataset_details(document: &Document, rows: &[Row]) -> Markup {
    let Some(first) = rows.first() else {
        return html! {};
    };
    html! {
        details {
            summary { b { (first.dataset_name) } " · " (first.family.name()) }
            div.body {
                (dataset_facts(first, card(document, &first.dataset_name)))
                @for metric in rows.chunk_by(|a, b| a.metric == b.metric) { (metric_table(metric)) }
            }
        }
    }
}

fn dataset_facts(row: &Row, card: Option<&Value>) -> Markup {
    let facts = [
        "source_url",
        "source_revision",
        "split",
        "license",
        "counts",
    ];
    html! {
        dl {
            dt { "content" } dd { code { (row.dataset_fingerprint) } }
            @for fact in facts {
                @if let Some(value) = card.and_then(|card| card.get(fact)).filter(|value| value.truthy()) {
                    dt { (fact.replace('_', " ")) }
                    dd { @match value {
                        Value::String(text) => (text),
                        other => code { (canonical(other)) },
                    } }
                }
            }
        }
    }
}

fn metric_table(rows: &[Row]) -> Markup {
    let Some(first) = rows.first() else {
        return html! {};
    };
    let has_thresholds = rows.iter().any(|row| row.selected_threshold.is_some());
    html! {
        h3 { (metric_title(first.family, &first.metric)) }
        div.wide {
            table {
                thead { tr {
                    th.number { "Rank" } th { "Method" } th.number { "Score" }
                    @if has_thresholds { th.number { "Threshold" } }
                    th.number { "Items" } th.number { "Time" } th { "Remark" }
                } }
                tbody {
                    @for row in rows {
                        tr.unranked[!row.eligible] {
                            td.number { @match row.rank { Some(rank) => (rank), None => span.none { "-" } } }
                            td.name { (row.algorithm_name) }
                            td.number { (score(row.score)) }
                            @if has_thresholds { td.number { (score(row.selected_threshold)) } }
                            td.number { (row.sample_count) }
                            td.number { (seconds(row.elapsed_seconds)) }
                            td { (remark(row)) }
                        }
                    }
                }
            }
        }
    }
}

/// Why a row has no score.
fn remark(row: &Row) -> Markup {
    html! {
        @if let Some(error) = &row.error {
            span.bad[!row.not_charged()].owed[row.not_charged()] { (error) }
        } @else if let Some(reason) = &row.not_applicable_reason {
            "not applicable: " (reason)
        } @else if !row.eligible {
            (undefined(row))
        }
    }
}

/// Why a metric of a scored dataset has no value: the curves are the only ones that may have none.
fn undefined(row: &Row) -> &'static str {
    match &*row.metric {
        "auroc" | "average_precision" => {
            "undefined: the curve needs pairs of both labels, and scores whose differences and sums do not overflow"
        }
        _ => "undefined on this dataset",
    }
}

fn method_details(document: &Document, method: &Summary<'_>) -> Markup {
    let configurations = document.metadata().get("method_configurations");
    let configuration = configurations.and_then(|all| all.get(method.id));
    html! {
        details {
            summary { b { (method.name) } " · " (method.outcome) " · " code { (short(method.id)) } }
            div.body {
                p { (method.sentence) }
                dl {
                    dt { "method id" } dd { code { (method.id) } }
                    @if let Some(wall) = method.wall_seconds { dt { "wall time" } dd { (seconds(wall)) } }
                    @if let Some(budget) = method.budget_seconds { dt { "budget" } dd { (seconds(budget)) } }
                }
                @if let Some(history) = method.supervised.and_then(|entry| entry.get("history")?.as_array()) {
                    (attempts(history))
                }
                @if let Some(supervised) = method.supervised {
                    h3 { "How it was supervised" }
                    (json(Some(&Value::Object(supervised.clone()))))
                }
                h3 { "Configuration" }
                (json(configuration))
            }
        }
    }
}

/// The attempts of a method that has more than one, oldest first.
fn attempts(history: &[Value]) -> Markup {
    let number = |one: &Value, key: &str| one.get(key).and_then(Value::as_number);
    let text = |one: &Value, key: &str| {
        let text = one.get(key).and_then(Value::as_str);
        text.unwrap_or("-").to_owned()
    };
    let outcome = |one: &Value| {
        let outcome = one.get("outcome").and_then(Outcome::from_value);
        outcome.map_or_else(|| "-".to_owned(), |outcome| outcome.to_string())
    };
    html! {
        h3 { "Attempts" }
        div.wide {
            table {
                thead { tr {
                    th { "Attempt" } th { "Why" } th { "Started" } th { "Outcome" } th.number { "Time" }
                    th.number { "Budget used before" } th.number { "Answers kept" } th.number { "Answers of its own" }
                    th { "Counts" }
                } }
                tbody {
                    @for one in history {
                        tr {
                            td { (text(one, "attempt")) }
                            td { (text(one, "reason")) }
                            td { (text(one, "started_utc")) }
                            td { (outcome(one)) }
                            td.number { @match number(one, "wall_seconds") { Some(wall) => (seconds(wall)), None => "-" } }
                            td.number { (seconds(number(one, "earlier_seconds").unwrap_or(0.0))) }
                            td.number { (number(one, "inherited").unwrap_or(0.0)) }
                            td.number { (number(one, "checkpoints").unwrap_or(0.0)) }
                            td { @if one.get("counts").and_then(Value::as_bool) == Some(true) { "yes" } @else { "no" } }
                        }
                    }
                }
            }
        }
    }
}

fn thresholds(document: &Document) -> Markup {
    let thresholds = document
        .metadata()
        .get("thresholds")
        .and_then(Value::as_array);
    let thresholds = thresholds.unwrap_or_default();
    let text = |entry: &Value, key: &str| {
        let text = entry.get(key).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    html! {
        @if !thresholds.is_empty() {
            h2 { "Calibrated thresholds" }
            div.wide {
                table {
                    thead { tr { th { "Dataset" } th { "Method" } th.number { "Threshold" } } }
                    tbody {
                        @for entry in thresholds {
                            tr {
                                td { (text(entry, "dataset_name")) }
                                td { (text(entry, "algorithm_name")) }
                                td.number { (score(entry.get("threshold").and_then(Value::as_number))) }
                            }
                        }
                    }
                }
            }
        }
    }
}
