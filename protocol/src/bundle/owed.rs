//! Whether a bundle owes some method another attempt. One function decides it, for everybody who asks.

use crate::canonical::{Object, Value};
use crate::outcome::Outcome;
use crate::report::{NOT_CHARGED, Row};

/// True when some method is owed another attempt: one of its rows failed through no fault of its own, or its entry in
/// `execution_failures` or `supervised_executions` says that nobody is charged. A method can have all its rows and be
/// owed one all the same, when it is not known how it ended.
pub(super) fn is_incomplete(metadata: &Object, rows: &[Row]) -> bool {
    let list = |key: &str| {
        let list = metadata.get(key).and_then(Value::as_array);
        list.unwrap_or_default()
    };
    let single = metadata.get("supervised_execution");
    rows.iter().any(Row::not_charged)
        || list("execution_failures").iter().any(failure_is_ours)
        || list("supervised_executions")
            .iter()
            .chain(single)
            .filter_map(Value::as_object)
            .any(execution_is_ours)
}

fn failure_is_ours(failure: &Value) -> bool {
    let error = failure.get("error").and_then(Value::as_str);
    error.is_some_and(|error| error.starts_with(NOT_CHARGED))
}

/// An execution that says so, or whose outcome is one of ours whatever it says.
pub(super) fn execution_is_ours(execution: &Object) -> bool {
    let outcome = execution.get("outcome").and_then(Outcome::from_value);
    execution.get("charged").and_then(Value::as_bool) == Some(false)
        || outcome.is_some_and(|outcome| !outcome.charged())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    fn metadata(key: &str, entry: Value) -> Object {
        let mut metadata = Object::new();
        metadata.insert(key, Value::Array(vec![entry]));
        metadata
    }

    #[test]
    fn a_failure_or_an_execution_that_is_ours_makes_it_incomplete_although_no_row_failed() {
        let ours = [
            metadata(
                "execution_failures",
                object! { "error" => "NotCharged: the run was interrupted" },
            ),
            metadata("supervised_executions", object! { "charged" => false }),
            metadata(
                "supervised_executions",
                object! { "charged" => true, "outcome" => Outcome::Interrupted.to_value() },
            ),
            [(
                "supervised_execution",
                object! { "outcome" => Outcome::Unresolved.to_value() },
            )]
            .into_iter()
            .collect(),
        ];
        for metadata in ours {
            assert!(is_incomplete(&metadata, &[]), "{metadata:?}");
        }
        let theirs = [
            Object::new(),
            metadata(
                "execution_failures",
                object! { "error" => "TimeoutError: NotCharged: x" },
            ),
            metadata(
                "supervised_executions",
                object! { "charged" => true, "outcome" => Outcome::Timeout.to_value() },
            ),
            metadata(
                "supervised_executions",
                object! { "outcome" => "completed" },
            ),
        ];
        for metadata in theirs {
            assert!(!is_incomplete(&metadata, &[]), "{metadata:?}");
        }
    }
}
