//! The results of a merge, for people and for programs.

use super::sentence::sentence;
use super::table::{Align, Table};
use super::{brief, output, plain};
use crate::bundle::Published;
use crate::error::{Error, Exit};
use crate::merge::records::MethodRecord;
use crate::merge::standing::Standing;
use crate::rundir::plan::Plan;
use proctor_protocol::bundle::Document;
use proctor_protocol::canonical::Value;
use proctor_protocol::dataset::Family;
use proctor_protocol::object;
use proctor_protocol::outcome::Outcome;
use std::fmt::Write;

/// The exit code of a run by the outcomes of its methods.
pub fn exit<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Exit {
    let mut exit = Exit::Success;
    for outcome in outcomes {
        exit = match outcome {
            // Somebody wanted it so: our side did not fail.
            Outcome::Cancelled | Outcome::Interrupted => Exit::Interrupted,
            _ if !outcome.charged() => return Exit::Infrastructure,
            _ if !outcome.succeeded() && exit == Exit::Success => Exit::Negative,
            _ => exit,
        };
    }
    exit
}

/// Prints what came of a run.
///
/// # Errors
/// stdout cannot be written.
pub fn report(
    plan: &Plan,
    document: &Document,
    methods: &[MethodRecord<'_>],
    place: &Place<'_>,
    json: bool,
) -> Result<(), Error> {
    let standing = Standing::of(plan, methods);
    if json {
        let rows: Vec<Value> = methods
            .iter()
            .map(|record| {
                object! {
                    "name" => record.method.name.as_str(),
                    "id" => record.method.id.as_str(),
                    "outcome" => record.outcome.to_value(),
                    "charged" => record.outcome.charged(),
                    "sentence" => sentence(&record.outcome, record.numbers(plan)),
                    "wall_seconds" => record.numbers(plan).wall_seconds,
                }
            })
            .collect();
        let mut value = place.value(document);
        if let Value::Object(object) = &mut value {
            object.insert("run_id", plan.run_id.as_str());
            object.insert("methods", rows);
            object.insert("mode", standing.mode);
            object.insert("degraded", standing.degraded);
        }
        return output::print_json(&value);
    }
    let mut table = Table::new([("method", Align::Left), ("outcome", Align::Left)]);
    for record in methods {
        table.row([
            record.method.name.clone(),
            sentence(&record.outcome, record.numbers(plan)),
        ]);
    }
    output::print(&format!(
        "{}{}\n{}\n{}{}",
        first(&standing),
        headline(document),
        table.text(),
        rankings(document),
        place.text()
    ))
}

/// What an official run that is none must say before anything else.
fn first(standing: &Standing) -> String {
    if standing.mode != "degraded" {
        return String::new();
    }
    let mut text = "NOT OFFICIAL: what is demanded of official runs was missing\n".to_owned();
    for line in &standing.degraded {
        let _ = writeln!(text, "  {}", plain(line));
    }
    text
}

/// Prints what came of merging bundles.
///
/// # Errors
/// stdout cannot be written.
pub fn report_merged(document: &Document, place: &Place<'_>, json: bool) -> Result<(), Error> {
    if json {
        return output::print_json(&place.value(document));
    }
    output::print(&format!(
        "{}\n{}{}",
        headline(document),
        rankings(document),
        place.text()
    ))
}

/// Where a bundle is.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The bundle.
    pub bundle: &'a Published,
    /// Name of the page to look at.
    pub page: &'a str,
}

impl Place<'_> {
    fn page(&self) -> String {
        self.bundle.path.join(self.page).display().to_string()
    }

    fn text(&self) -> String {
        format!(
            "bundle: {}\npage to look at: {}\nroot digest: {}\n",
            plain(&self.bundle.path.display().to_string()),
            plain(&self.page()),
            self.bundle.root_sha256
        )
    }

    fn value(&self, document: &Document) -> Value {
        object! {
            "benchmark_id" => document.benchmark_id(),
            "protocol_id" => document.protocol_id(),
            "complete" => !document.is_incomplete(),
            "bundle" => self.bundle.path.display().to_string(),
            "page" => self.page(),
            "root_sha256" => self.bundle.root_sha256.as_str(),
        }
    }
}

/// The first line about a bundle.
fn headline(document: &Document) -> String {
    let name = brief(document.benchmark_id());
    if document.is_incomplete() {
        format!("INCOMPLETE: some methods of {name} have no result through no fault of theirs\n")
    } else {
        format!("results of {name}\n")
    }
}

/// One table a family: mean scores by metric, best first by the first metric; `-` where a method is not ranked.
fn rankings(document: &Document) -> String {
    let mut text = String::new();
    for family in [Family::Pair, Family::Retrieval] {
        let rows = || {
            document
                .aggregate()
                .iter()
                .filter(|row| row.family == family)
        };
        let mut metrics: Vec<&str> = Vec::new();
        for row in rows() {
            if !metrics.contains(&row.metric.as_ref()) {
                metrics.push(&row.metric);
            }
        }
        let Some(first) = metrics.first().copied() else {
            continue;
        };
        let mut columns = vec![("method", Align::Left)];
        columns.extend(metrics.iter().map(|metric| (*metric, Align::Right)));
        let mut table = Table::new(columns);
        // The rows of a metric are in rank order, those without a rank last.
        for leader in rows().filter(|row| row.metric.as_ref() == first) {
            let mean = |metric: &&str| {
                let row = rows().find(|row| {
                    row.metric.as_ref() == *metric && row.algorithm_id == leader.algorithm_id
                });
                let mean = row.and_then(|row| row.mean_score);
                mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.4}"))
            };
            let mut cells = vec![leader.algorithm_name.to_string()];
            cells.extend(metrics.iter().map(mean));
            table.row(cells);
        }
        let _ = writeln!(
            text,
            "{}, mean over datasets\n\n{}",
            family.name(),
            table.text()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_cancelled_is_no_failure_of_ours() {
        let ours = || Outcome::Infrastructure("disk full".into());
        let code = |outcomes: &[Outcome]| exit(outcomes).code();
        assert_eq!(code(&[Outcome::Completed]), 0);
        assert_eq!(code(&[Outcome::Timeout, Outcome::Completed]), 1);
        assert_eq!(code(&[Outcome::Cancelled, Outcome::Completed]), 130);
        assert_eq!(code(&[Outcome::Cancelled, Outcome::Timeout]), 130);
        assert_eq!(code(&[Outcome::Timeout, Outcome::Cancelled]), 130);
        assert_eq!(code(&[Outcome::Cancelled, ours()]), 3);
        assert_eq!(code(&[ours(), Outcome::Cancelled]), 3);
    }
}
