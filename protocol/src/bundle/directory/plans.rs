//! The plans and protocols kept as evidence must be those the payload was made under.

use std::path::PathBuf;

use super::{Directory, below};
use crate::bundle::Finding;
use crate::canonical::{Limits, Value, canonical, float_text};
use crate::frozen::{ExecutionLimits, Limit, Protocol};
use crate::input::read_json;

const RULE: &str = "evidence";

/// Compares every plan and protocol. Gives the run of the plan in each folder, where there is one.
pub(super) fn check(
    directory: &Directory<'_>,
    protocol: &Protocol,
    folders: &[PathBuf],
) -> Result<Vec<Option<String>>, Finding> {
    let mut runs = Vec::with_capacity(folders.len());
    for folder in folders {
        let mut run = None;
        let read = |name: &str| {
            let path = folder.join(name);
            if !path.exists() {
                return Ok(None);
            }
            let shown = below(directory.root, &path).into_owned();
            match read_json(&path, Limits::default()) {
                Ok(value) => Ok(Some((shown, value))),
                Err(error) => Err(Finding::new(RULE, shown, error.to_string())),
            }
        };
        if let Some((shown, plan)) = read("plan.json")? {
            let id = plan.get("run_id").and_then(Value::as_str);
            let id = id.ok_or_else(|| Finding::new(RULE, &shown, "has no run_id"))?;
            run = Some(id.to_owned());
            limits(&shown, &plan, protocol)?;
            let budget = protocol.max_method_seconds();
            let budget = (Value::from(budget), float_text(budget));
            let id = (Value::from(protocol.id()), protocol.id().to_owned());
            for (path, (expected, text)) in [
                (&["protocol_id"][..], id),
                (&["policy", "budget_seconds"], budget),
            ] {
                let found = path.iter().try_fold(&plan, |value, key| value.get(key));
                let found = found.unwrap_or(&Value::Null);
                if *found != expected {
                    let at = format!("{shown}: {}", path.join("."));
                    let why = "the protocol says";
                    return Err(Finding::differs(RULE, at, (&text, why), &canonical(found)));
                }
            }
        }
        if let Some((shown, kept)) = read("protocol.json")?
            && kept != protocol.public_value()
        {
            let problem = "is not the protocol that the payload was made under";
            return Err(Finding::new(RULE, shown, problem));
        }
        runs.push(run);
    }
    Ok(runs)
}

/// The limits of a run may be stricter than those of the protocol, and nothing else. Plans of earlier versions name none.
fn limits(shown: &str, plan: &Value, protocol: &Protocol) -> Result<(), Finding> {
    let policy = plan.get("policy").and_then(|policy| policy.get("limits"));
    let Some(found) = policy.and_then(Value::as_object) else {
        return Ok(());
    };
    let at = |key: &str| format!("{shown}: policy.limits.{key}");
    let found = ExecutionLimits::read(found, "policy.limits")
        .map_err(|error| Finding::new(RULE, shown, error.to_string()))?;
    for limit in Limit::ALL {
        let Some(allowed) = protocol.limits().get(limit) else {
            continue;
        };
        if found.get(limit).is_none_or(|value| value > allowed) {
            let problem = format!("is not within the {allowed} of the protocol");
            return Err(Finding::new(RULE, at(limit.key()), problem));
        }
    }
    Ok(())
}
