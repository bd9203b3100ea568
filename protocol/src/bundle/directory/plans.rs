//! The plans and protocols kept as evidence must be those the payload was made under.

use std::path::PathBuf;

use super::{Directory, below};
use crate::bundle::Finding;
use crate::canonical::{Limits, Value, canonical, float_text};
use crate::frozen::Protocol;
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
