//! The pages of a bundle: one of rankings, one of every row. They are static and complete: no script, no other file, the same
//! bytes for the same document.

mod details;
mod ranking;
mod summary;

use maud::{DOCTYPE, Markup, PreEscaped, html};

pub(super) use details::details_page;
pub(super) use ranking::ranking_page;

use super::Artifact;
use super::document::Document;
use crate::canonical::{Object, Value, float_text};
use crate::metric::Metric;

/// The styles of the pages, for other pages that are to look the same.
pub const STYLE: &str = include_str!("style.css");

/// The neighbours of a page, pages first.
const LINKS: [Artifact; 6] = [
    Artifact::Html,
    Artifact::DetailsHtml,
    Artifact::Json,
    Artifact::PerDatasetCsv,
    Artifact::AggregateCsv,
    Artifact::ReproducibilityJson,
];

/// The page around `main`.
fn page(title: &str, document: &Document, stem: &str, this: Artifact, main: &Markup) -> String {
    let policy = "default-src 'none'; style-src 'unsafe-inline'";
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(policy);
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (document.benchmark_id()) " " (status_chip(document)) " " (failed_chip(document)) }
                    p.facts {
                        "protocol " code title=(document.protocol_id()) { (short(document.protocol_id())) }
                        @if let Some(Value::String(domain)) = document.metadata().get("domain") {
                            " · " (domain)
                        }
                    }
                    nav {
                        @for artifact in LINKS {
                            @if artifact == this {
                                b { (label(artifact)) }
                            } @else {
                                a href=(link(&artifact.file_name(stem))) { (label(artifact)) }
                            }
                        }
                    }
                }
                main { (main) }
                footer { (origin(document)) }
            }
        }
    };
    page.into_string()
}

fn status_chip(document: &Document) -> Markup {
    if document.is_incomplete() {
        html! { span.chip.owed { "incomplete" } }
    } else {
        html! { span.chip.good { "complete" } }
    }
}

/// How many methods failed: a complete bundle can be one of failures.
fn failed_chip(document: &Document) -> Markup {
    let mut failed: Vec<&str> = document
        .rows()
        .iter()
        .filter(|row| row.error.is_some() && !row.not_charged())
        .map(|row| &*row.algorithm_id)
        .collect();
    failed.sort_unstable();
    failed.dedup();
    html! {
        @match failed.len() {
            0 => {},
            1 => span.chip.bad { "1 method failed" },
            count => span.chip.bad { (count) " methods failed" },
        }
    }
}

fn label(artifact: Artifact) -> &'static str {
    match artifact {
        Artifact::Html => "Rankings",
        Artifact::DetailsHtml => "Details",
        Artifact::Json => "JSON",
        Artifact::PerDatasetCsv => "Rows (CSV)",
        Artifact::AggregateCsv => "Aggregate (CSV)",
        Artifact::ReproducibilityJson => "Reproducibility",
    }
}

/// When and with what it was made, from the snapshot.
fn origin(document: &Document) -> Markup {
    let snapshot = document
        .metadata()
        .get("reproducibility")
        .unwrap_or(&Value::Null);
    let created = snapshot.get("created_utc").and_then(Value::as_str);
    let packages = snapshot.get("packages").and_then(Value::as_object);
    let versions: Vec<String> = packages
        .into_iter()
        .flat_map(Object::iter)
        .filter_map(|(name, version)| Some(format!("{name} {}", version.as_str()?)))
        .collect();
    html! {
        p {
            @if let Some(created) = created { "Run of " time datetime=(created) { (created) } ". " }
            @if !versions.is_empty() { "Made with " (versions.join(", ")) "." }
        }
        p { "Scores are shown to four places; the exact values are in the files above." }
    }
}

/// A name as a relative address.
fn link(name: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"._-".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The beginning of a digest.
fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

/// A score to four places, exact on pointing at it.
fn score(value: Option<f64>) -> Markup {
    html! {
        @match value {
            Some(value) => span title=(float_text(value)) { (format!("{value:.4}")) },
            None => span.none title="no value" { "-" },
        }
    }
}

/// Seconds for people.
fn seconds(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.2} s")
    } else if value < 120.0 {
        format!("{value:.1} s")
    } else {
        format!(
            "{:.0} min {:02.0} s",
            (value / 60.0).floor(),
            (value % 60.0).floor()
        )
    }
}

/// The name of a metric for people.
fn metric_title(family: proctor_wire::Family, name: &str) -> &str {
    Metric::find(family, name).map_or(name, |metric| metric.title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_relative_and_escaped() {
        assert_eq!(link("My_run.html"), "My_run.html");
        assert_eq!(link("ü a/b"), "%C3%BC%20a%2Fb");
    }

    #[test]
    fn seconds_read_well_at_any_length() {
        assert_eq!(seconds(0.034), "0.03 s");
        assert_eq!(seconds(61.27), "61.3 s");
        assert_eq!(seconds(1800.0), "30 min 00 s");
        assert_eq!(seconds(125.9), "2 min 05 s");
    }
}
