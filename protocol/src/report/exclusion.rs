//! What a method configuration declares not to apply to (specs/matheel.md section c).

use proctor_wire::Family;

use crate::canonical::{Object, Value, py_strip};

/// A declaration of another shape than the rules allow; what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct ExclusionError {
    /// The field of the configuration.
    pub field: String,
    /// What it must be.
    pub problem: &'static str,
}

fn refuse(field: impl Into<String>, problem: &'static str) -> ExclusionError {
    ExclusionError {
        field: field.into(),
        problem,
    }
}

fn object<'a>(
    configuration: &'a Value,
    field: &str,
    problem: &'static str,
) -> Result<Option<&'a Object>, ExclusionError> {
    match configuration.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(refuse(field, problem)),
    }
}

/// The datasets a configuration excludes by name, with the reason; both stripped.
///
/// # Errors
/// `dataset_exclusions` is not an object of non-empty names and reasons.
pub fn excluded_datasets(configuration: &Value) -> Result<Vec<(&str, &str)>, ExclusionError> {
    const PROBLEM: &str = "must map dataset names to non-empty reasons";
    let Some(exclusions) = object(configuration, "dataset_exclusions", PROBLEM)? else {
        return Ok(Vec::new());
    };
    exclusions
        .iter()
        .map(|(name, reason)| {
            let (name, reason) = (
                py_strip(name),
                py_strip(reason.as_str().unwrap_or_default()),
            );
            if name.is_empty() || reason.is_empty() {
                Err(refuse("dataset_exclusions", PROBLEM))
            } else {
                Ok((name, reason))
            }
        })
        .collect()
}

/// The reason declared for a task family.
fn ineligible(configuration: &Value, family: Family) -> Result<Option<&str>, ExclusionError> {
    const FIELD: &str = "task_eligibility";
    let problem = "must map pair or retrieval to eligibility declarations";
    let Some(declarations) = object(configuration, FIELD, problem)? else {
        return Ok(None);
    };
    let mut found = None;
    for (task, declaration) in declarations.iter() {
        let field = format!("{FIELD}.{task}");
        if ![Family::Pair, Family::Retrieval]
            .iter()
            .any(|one| one.name() == task)
        {
            return Err(refuse(field, "only pair and retrieval can be declared"));
        }
        let Some(declaration) = declaration.as_object() else {
            return Err(refuse(
                field,
                "must be an object with status and, optionally, reason",
            ));
        };
        if declaration
            .keys()
            .any(|key| !["status", "reason"].contains(&key))
        {
            return Err(refuse(field, "must hold only status and reason"));
        }
        let reason = declaration.get("reason").and_then(Value::as_str);
        let reason = py_strip(reason.unwrap_or_default());
        match declaration.get("status").and_then(Value::as_str) {
            Some("eligible") => {}
            Some("not_applicable") if reason.is_empty() => {
                return Err(refuse(field, "not_applicable needs a reason"));
            }
            Some("not_applicable") => {
                if task == family.name() {
                    found = Some(reason);
                }
            }
            _ => return Err(refuse(field, "status must be eligible or not_applicable")),
        }
    }
    Ok(found)
}

/// Why a method with this effective configuration does not apply to a dataset; `None` when it applies. An exclusion by
/// name beats one by family.
///
/// # Errors
/// The configuration declares it in a shape that is not allowed.
pub fn exclusion(
    configuration: &Value,
    dataset_name: &str,
    family: Family,
) -> Result<Option<String>, ExclusionError> {
    let by_name = excluded_datasets(configuration)?;
    let by_family = ineligible(configuration, family)?;
    // Names that are equal once stripped: the last one stands.
    let named = by_name.iter().rev().find(|(name, _)| *name == dataset_name);
    Ok(named
        .map(|(_, reason)| *reason)
        .or(by_family)
        .map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    #[test]
    fn an_exclusion_by_name_beats_one_by_family() {
        let configuration = object! {
            "dataset_exclusions" => object! { " a " => " too long " },
            "task_eligibility" => object! {
                "pair" => object! { "status" => "not_applicable", "reason" => "ranks only" },
                "retrieval" => object! { "status" => "eligible" },
            },
        };
        let reason = |name, family| exclusion(&configuration, name, family).unwrap();
        assert_eq!(reason("a", Family::Pair).as_deref(), Some("too long"));
        assert_eq!(reason("b", Family::Pair).as_deref(), Some("ranks only"));
        assert_eq!(reason("b", Family::Retrieval), None);
    }

    #[test]
    fn other_shapes_are_refused_by_field() {
        for (configuration, field) in [
            (
                object! { "dataset_exclusions" => "x" },
                "dataset_exclusions",
            ),
            (
                object! { "task_eligibility" => object! { "pair" => object! { "status" => "not_applicable" } } },
                "task_eligibility.pair",
            ),
            (
                object! { "task_eligibility" => object! { "stem" => object! {} } },
                "task_eligibility.stem",
            ),
        ] {
            let error = exclusion(&configuration, "a", Family::Pair).unwrap_err();
            assert_eq!(error.field, field);
        }
    }
}
