//! What a method declares, before any run, not to apply to it (specs/matheel.md section c).

use proctor_wire::Family;

use crate::canonical::{Object, Value, py_strip};
use crate::coerce;
use crate::input::{Refusal, member};

/// Why `configuration` declares that it does not apply to a dataset; `None` when it applies. An exclusion of the dataset
/// by name has precedence over one of its family.
///
/// # Errors
/// A declaration in the configuration that is malformed.
pub fn exclusion_reason(
    configuration: &Value,
    dataset_name: &str,
    family: Family,
) -> Result<Option<String>, Refusal> {
    let given = |key: &str| configuration.get(key).unwrap_or(&Value::Null);
    let exclusions = dataset_exclusions(given("dataset_exclusions"), "dataset_exclusions")?;
    if let Some(reason) = exclusions.get(dataset_name) {
        return Ok(reason.as_str().map(str::to_owned));
    }
    let eligibility = task_eligibility(given("task_eligibility"), "task_eligibility")?;
    let declared = eligibility.get(family.name());
    let excluded = declared
        .and_then(|declared| declared.get("status"))
        .and_then(Value::as_str)
        == Some("not_applicable");
    Ok(declared
        .filter(|_| excluded)
        .and_then(|declared| declared.get("reason"))
        .and_then(Value::as_str)
        .map(str::to_owned))
}

/// The names of the datasets that `configuration` excludes.
///
/// # Errors
/// As [`exclusion_reason`].
pub fn excluded_datasets(configuration: &Value) -> Result<Vec<String>, Refusal> {
    let given = configuration
        .get("dataset_exclusions")
        .unwrap_or(&Value::Null);
    let exclusions = dataset_exclusions(given, "dataset_exclusions")?;
    Ok(exclusions.keys().map(str::to_owned).collect())
}

/// `pair`/`retrieval` -> `{status, reason?}` with the reason stripped.
pub(super) fn task_eligibility(value: &Value, field: &str) -> Result<Object, Refusal> {
    let mut result = Object::new();
    for (task, declaration) in members(value, field, "an object with pair and/or retrieval")? {
        let field = member(field, task);
        if task != "pair" && task != "retrieval" {
            return Err(Refusal::new(
                field,
                "is not a task family; use pair or retrieval",
            ));
        }
        let form = "an object {\"status\": \"eligible\" | \"not_applicable\", \"reason\": text}";
        let mut status = None;
        let mut reason = String::new();
        for (key, given) in members(declaration, &field, form)? {
            match key {
                "status" => status = given.as_str(),
                "reason" if given.truthy() => {
                    let text = coerce::text(given)
                        .ok_or_else(|| Refusal::new(member(&field, key), "must be a text"))?;
                    py_strip(&text).clone_into(&mut reason);
                }
                "reason" => {}
                _ => {
                    return Err(Refusal::new(
                        member(&field, key),
                        format!("is not known here; a declaration is {form}"),
                    ));
                }
            }
        }
        let status = status
            .filter(|status| matches!(*status, "eligible" | "not_applicable"))
            .ok_or_else(|| {
                Refusal::new(
                    member(&field, "status"),
                    "must be eligible or not_applicable",
                )
            })?;
        if status == "not_applicable" && reason.is_empty() {
            return Err(Refusal::new(
                member(&field, "reason"),
                "is missing; not_applicable is published with its reason",
            ));
        }
        let mut declared = Object::new();
        declared.insert("status", status);
        if !reason.is_empty() {
            declared.insert("reason", reason);
        }
        result.insert(task, declared);
    }
    Ok(result)
}

/// Dataset name -> reason, both stripped.
pub(super) fn dataset_exclusions(value: &Value, field: &str) -> Result<Object, Refusal> {
    let mut result = Object::new();
    for (name, reason) in members(value, field, "an object of dataset names and reasons")? {
        let field = member(field, name);
        let reason = reason.as_str().map(py_strip).unwrap_or_default();
        if py_strip(name).is_empty() || reason.is_empty() {
            return Err(Refusal::new(
                field,
                "needs the name of a dataset and a reason, both texts",
            ));
        }
        if result.insert(py_strip(name), reason).is_some() {
            return Err(Refusal::new(
                field,
                "names a dataset that is already excluded; keep one",
            ));
        }
    }
    Ok(result)
}

/// The members of an object; none for null.
fn members<'a>(
    value: &'a Value,
    field: &str,
    form: &str,
) -> Result<impl Iterator<Item = (&'a str, &'a Value)>, Refusal> {
    if !value.is_null() && value.as_object().is_none() {
        return Err(Refusal::new(
            field,
            format!("is {}; it must be {form}", value.type_name()),
        ));
    }
    Ok(value.as_object().into_iter().flat_map(Object::iter))
}
