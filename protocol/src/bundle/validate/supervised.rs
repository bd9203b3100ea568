//! Beyond Matheel: what a bundle of ours says of its attempts must agree with its rows and its protocol.
//!
//! Matheel takes any object as an entry of `supervised_executions`. Only entries whose `outcome` is an object, as ours
//! are, are held to anything here.

use std::collections::HashMap;

use super::identity::Methods;
use crate::bundle::Finding;
use crate::canonical::{Object, Value, canonical, float_text};
use crate::frozen::Protocol;
use crate::outcome::Outcome;
use crate::report::{Row, Status};

const ENTRIES: &str = "metadata.supervised_executions";
const FAILURES: &str = "metadata.execution_failures";
const MEASUREMENTS: &str = "metadata.reproducibility.proctor.measurements";
const RULE: &str = "supervised_executions";

/// Which rows a method has.
#[derive(Debug, Clone, Copy, Default)]
struct Rows {
    failed: bool,
    applicable: bool,
}

/// Compares the entries of supervised methods with rows, failures and protocol.
pub(super) fn check_supervised(
    metadata: &Value,
    protocol: &Protocol,
    methods: &Methods<'_>,
    rows: &[Row],
) -> Result<(), Finding> {
    let list = |key| metadata.get(key).and_then(Value::as_array);
    let entries = list("supervised_executions").unwrap_or_default();
    if entries.is_empty() {
        return Ok(());
    }
    let mut of_method = vec![Rows::default(); methods.len()];
    for row in rows {
        if let Some(method) = methods.find(&row.algorithm_id) {
            let of = &mut of_method[method];
            of.failed |= row.error.is_some() || row.status == Some(Status::Failed);
            of.applicable |= row.status != Some(Status::NotApplicable);
        }
    }
    let mut failures: HashMap<&str, (usize, &Value)> = HashMap::new();
    for (at, failure) in list("execution_failures")
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        if let Some(id) = failure.get("algorithm_id").and_then(Value::as_str) {
            failures.insert(id, (at, failure));
        }
    }
    let mut seen = vec![false; methods.len()];
    for (at, value) in entries.iter().enumerate() {
        let Some(outcome) = value.get("outcome").filter(|one| one.as_object().is_some()) else {
            continue;
        };
        let entry = Entry { at, value };
        let outcome = Outcome::from_value(outcome)
            .ok_or_else(|| entry.finding("outcome", "is no outcome that Proctor knows"))?;
        let id = entry.text("algorithm_id");
        let Some(method) = methods.find(id) else {
            return Err(entry.finding("algorithm_id", "is no method of this bundle"));
        };
        if std::mem::replace(&mut seen[method], true) {
            return Err(entry.finding("algorithm_id", "has another entry already"));
        }
        entry.check_figures(&outcome, protocol)?;
        entry.check_rows(&outcome, of_method[method])?;
        entry.check_failure(&outcome, protocol, failures.get(id).copied())?;
    }
    check_measurements(metadata, entries)
}

/// The reproducibility section repeats what was measured of each method; it is the same there.
fn check_measurements(metadata: &Value, entries: &[Value]) -> Result<(), Finding> {
    let ours = metadata
        .get("reproducibility")
        .and_then(|snapshot| snapshot.get("proctor"));
    let list = ours
        .and_then(|ours| ours.get("measurements"))
        .and_then(Value::as_array);
    for (at, measured) in list.unwrap_or_default().iter().enumerate() {
        let place = |field: &str| format!("{MEASUREMENTS}[{at}].{field}");
        let id = measured.get("algorithm_id");
        let entry = entries
            .iter()
            .find(|entry| id.is_some() && entry.get("algorithm_id") == id);
        let Some(entry) = entry else {
            let problem = "is no method with an entry in supervised_executions";
            return Err(Finding::new(RULE, place("algorithm_id"), problem));
        };
        for (field, value) in measured.as_object().into_iter().flat_map(Object::iter) {
            let expected = if field == "suspended_seconds" {
                entry.get("facts").and_then(|facts| facts.get(field))
            } else {
                entry.get(field)
            };
            if expected.unwrap_or(&Value::Null) != value {
                let text = |value: &Value| canonical(value).chars().take(200).collect::<String>();
                return Err(Finding::differs(
                    RULE,
                    place(field),
                    (
                        &text(expected.unwrap_or(&Value::Null)),
                        "supervised_executions says",
                    ),
                    &text(value),
                ));
            }
        }
    }
    Ok(())
}

struct Entry<'a> {
    at: usize,
    value: &'a Value,
}

impl Entry<'_> {
    fn place(&self, field: &str) -> String {
        format!("{ENTRIES}[{}].{field}", self.at)
    }

    fn finding(&self, field: &str, problem: &str) -> Finding {
        Finding::new(RULE, self.place(field), problem)
    }

    fn text(&self, field: &str) -> &str {
        self.value
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    fn number(&self, field: &str) -> Option<f64> {
        self.value.get(field).and_then(Value::as_number)
    }

    fn check_figures(&self, outcome: &Outcome, protocol: &Protocol) -> Result<(), Finding> {
        let charged = self.value.get("charged").and_then(Value::as_bool);
        if let Some(charged) = charged.filter(|charged| *charged != outcome.charged()) {
            return Err(Finding::differs(
                RULE,
                self.place("charged"),
                (&outcome.charged().to_string(), "its outcome makes it"),
                &charged.to_string(),
            ));
        }
        let budget = protocol.max_method_seconds();
        if let Some(found) = self
            .number("budget_seconds")
            .filter(|found| *found != budget)
        {
            return Err(Finding::differs(
                RULE,
                self.place("budget_seconds"),
                (&float_text(budget), "the protocol says"),
                &float_text(found),
            ));
        }
        Ok(())
    }

    /// A method that completed has no failed row; one that answers for its failure has one.
    fn check_rows(&self, outcome: &Outcome, rows: Rows) -> Result<(), Finding> {
        let said = outcome.kind();
        let problem = match outcome {
            Outcome::Completed if rows.failed => "but rows of the method failed",
            Outcome::NotApplicable(_) if rows.applicable => "but datasets apply to the method",
            Outcome::Completed | Outcome::NotApplicable(_) => return Ok(()),
            _ if outcome.charged() && !rows.failed => "but no row of the method failed",
            _ => return Ok(()),
        };
        Err(self.finding("outcome", &format!("is {said}, {problem}")))
    }

    /// The failure that is listed for a method is the one its outcome tells, and there is none when it tells none.
    fn check_failure(
        &self,
        outcome: &Outcome,
        protocol: &Protocol,
        listed: Option<(usize, &Value)>,
    ) -> Result<(), Finding> {
        let expected = outcome.error_text(protocol.max_method_seconds());
        let (expected, (at, failure)) = match (expected, listed) {
            (None, None) => return Ok(()),
            (Some(expected), Some(listed)) => (expected, listed),
            (Some(expected), None) => {
                let name = self.text("algorithm_id");
                let why = format!("has no entry of method {name}, whose outcome gives");
                let mut finding = Finding::new(RULE, FAILURES, format!("{why} {expected:?}"));
                finding.expected = Some(expected);
                return Err(finding);
            }
            (None, Some((at, _))) => {
                let problem = format!("is of a method whose outcome is {}", outcome.kind());
                return Err(Finding::new(RULE, format!("{FAILURES}[{at}]"), problem));
            }
        };
        let error = failure.get("error").and_then(Value::as_str);
        // The words of the worker may follow what happened.
        let tells = |error: &str| {
            error
                .strip_prefix(expected.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(';'))
        };
        if !error.is_some_and(tells) {
            return Err(Finding::differs(
                RULE,
                format!("{FAILURES}[{at}].error"),
                (&format!("{expected:?}"), "the outcome of the method gives"),
                &format!("{:?}", error.unwrap_or_default()),
            ));
        }
        let elapsed = failure.get("elapsed_seconds").and_then(Value::as_number);
        let wall = self.number("wall_seconds").unwrap_or(0.0);
        if elapsed != Some(wall) {
            return Err(Finding::differs(
                RULE,
                format!("{FAILURES}[{at}].elapsed_seconds"),
                (&float_text(wall), "supervised_executions says"),
                &elapsed.map_or("missing".to_owned(), float_text),
            ));
        }
        Ok(())
    }
}
