//! Step 12: the aggregate.

use std::collections::BTreeMap;

use crate::bundle::Finding;
use crate::bundle::cells::RawAggregate;
use crate::canonical::{Object, Value};
use crate::report::AggregateRow;

/// Domain, family, method id and metric.
type Key<'a> = [&'a str; 4];

/// The aggregate rows of one key: computed ones, and the reported one with its position.
#[derive(Default)]
struct Pairing<'a> {
    computed: Vec<&'a AggregateRow>,
    reported: Option<(usize, &'a Object)>,
}

/// Compares the reported aggregate with the computed one.
pub(super) fn check_aggregate(
    computed: &[AggregateRow],
    reported: &RawAggregate<'_>,
    rows_have_status: bool,
) -> Result<(), Finding> {
    let required = [
        "domain",
        "task_family",
        "algorithm_id",
        "metric",
        "eligible",
        "complete_coverage",
        "mean_score",
        "median_score",
        "rank",
        "dataset_count",
        "expected_dataset_count",
        "coverage",
        "sample_count",
        "elapsed_seconds",
    ];
    if let Some(missing) = required.into_iter().find(|column| !reported.has(column)) {
        let problem = format!("no row has the column {missing}");
        return Err(Finding::new("aggregate", "aggregate", problem));
    }
    let mut pairings: BTreeMap<Key<'_>, Pairing<'_>> = BTreeMap::new();
    for (at, row) in reported.rows.iter().copied().enumerate() {
        let key = ["domain", "task_family", "algorithm_id", "metric"]
            .map(|column| row.get(column).and_then(Value::as_str).unwrap_or_default());
        let pairing = pairings.entry(key).or_default();
        if let Some((first, _)) = pairing.reported.replace((at, row)) {
            let problem =
                format!("is for the same method, family and metric as aggregate[{first}]");
            return Err(Finding::new(
                "aggregate",
                format!("aggregate[{at}]"),
                problem,
            ));
        }
    }
    for row in computed {
        let key = [
            &*row.domain,
            row.family.name(),
            &*row.algorithm_id,
            &*row.metric,
        ];
        pairings.entry(key).or_default().computed.push(row);
    }
    // Tables of writers that do not speak of status are not asked for it.
    let checks_status =
        ["status", "not_applicable_reason"].map(|column| rows_have_status && reported.has(column));
    for (key, pairing) in &pairings {
        let Some((at, row)) = pairing.reported else {
            let [_, family, id, metric] = key;
            let problem = format!("has no row for method {id}, {family} {metric}");
            return Err(Finding::new("aggregate_eligible", "aggregate", problem));
        };
        if pairing.computed.is_empty() {
            let problem = "is for a method, family or metric that has no rows in per_dataset";
            return Err(Finding::new(
                "aggregate_eligible",
                format!("aggregate[{at}]"),
                problem,
            ));
        }
        for computed in &pairing.computed {
            compare(computed, row, checks_status).map_err(|(rule, column, problem)| {
                Finding::new(rule, format!("aggregate[{at}].{column}"), problem)
            })?;
        }
    }
    Ok(())
}

/// Rule, column and problem.
type Difference = (&'static str, &'static str, String);

fn compare(
    computed: &AggregateRow,
    reported: &Object,
    checks_status: [bool; 2],
) -> Result<(), Difference> {
    let cell = |column: &str| reported.get(column).unwrap_or(&Value::Null);
    for (column, expected) in [
        ("eligible", computed.eligible),
        ("complete_coverage", computed.complete_coverage),
    ] {
        if cell(column).as_bool() != Some(expected) {
            let problem = format!(
                "must be {expected}: {} of {} datasets have a score",
                computed.dataset_count, computed.expected_dataset_count
            );
            return Err(("aggregate_eligible", column, problem));
        }
    }
    let count = |count: u64| Some(count as f64);
    for (column, expected) in [
        ("mean_score", computed.mean_score),
        ("median_score", computed.median_score),
        ("rank", computed.rank.map(|rank| rank as f64)),
        ("dataset_count", count(computed.dataset_count)),
        (
            "expected_dataset_count",
            count(computed.expected_dataset_count),
        ),
        ("coverage", Some(computed.coverage)),
        ("sample_count", count(computed.sample_count)),
        ("elapsed_seconds", Some(computed.elapsed_seconds)),
    ] {
        if !is_close(cell(column), expected) {
            let expected = expected.map_or("null".to_owned(), crate::canonical::float_text);
            let problem = format!("must be {expected}, as the rows of per_dataset give");
            return Err(("aggregate_values", column, problem));
        }
    }
    for (checked, column, expected) in [
        (checks_status[0], "status", Some(computed.status.name())),
        (
            checks_status[1],
            "not_applicable_reason",
            computed.not_applicable_reason.as_deref(),
        ),
    ] {
        let same = match cell(column) {
            Value::Null => expected.is_none(),
            Value::String(text) => Some(&**text) == expected,
            _ => false,
        };
        if checked && !same {
            let problem = format!("must be {}", expected.unwrap_or("null"));
            return Err(("aggregate_status", column, problem));
        }
    }
    Ok(())
}

/// Equal within a relative 1e-10 or an absolute 1e-12; null only equals null.
fn is_close(value: &Value, expected: Option<f64>) -> bool {
    let Some(expected) = expected else {
        return value.is_null();
    };
    value.as_number().is_some_and(|value| {
        let largest = value.abs().max(expected.abs());
        value == expected || (value - expected).abs() <= (1e-10 * largest).max(1e-12)
    })
}
