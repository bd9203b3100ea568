//! The files that prove how the scores came about: the plan, every attempt, validation scores, and how to run it again.

use super::public;
use super::records::{MethodRecord, attempt_evidence};
use super::standing::Standing;
use crate::bundle::{Builder, EVIDENCE, Evidence};
use crate::error::Error;
use crate::load::Rule;
use crate::run::limits;
use crate::rundir::plan::Plan;
use crate::rundir::state;
use proctor_protocol::canonical::Value;
use proctor_protocol::frozen::Limit;
use proctor_protocol::method::Method;
use proctor_protocol::object;
use proctor_protocol::outcome::Outcome;
use std::fmt::Write;

/// Writes the evidence of a run. Nothing in it is a path of this machine.
pub(super) fn write(
    builder: &mut Builder,
    plan: &Plan,
    standing: &Standing,
    methods: &[MethodRecord<'_>],
) -> Result<(), Error> {
    builder.json(
        &format!("{EVIDENCE}/plan.json"),
        &plan_evidence(plan, standing),
    )?;
    builder.json(
        &format!("{EVIDENCE}/protocol.json"),
        &plan.protocol.public_value(),
    )?;
    let entries = plan
        .methods
        .iter()
        .map(|method| method.manifest_entry.clone());
    let entries: Vec<Value> = entries.collect();
    builder.json(&format!("{EVIDENCE}/methods.json"), &Value::Array(entries))?;
    for record in methods {
        let newest = state::counting(&record.attempts).map(|attempt| attempt.id.clone());
        for attempt in &record.attempts {
            let path = format!(
                "{EVIDENCE}/attempts/{}/{}.json",
                record.method.id, attempt.id
            );
            let counts = newest.as_ref() == Some(&attempt.id);
            builder.json(
                &path,
                &attempt_evidence(attempt, counts, plan.policy.budget_seconds),
            )?;
        }
    }
    Ok(())
}

/// How much the records prove: everything when each method that had to run has an attempt that ended.
pub(super) fn level(methods: &[MethodRecord<'_>]) -> Evidence {
    let ended = |record: &&MethodRecord<'_>| {
        matches!(record.outcome, Outcome::NotApplicable(_))
            || record
                .counting()
                .is_some_and(|attempt| attempt.terminal.is_some())
    };
    let all = methods.iter().filter(ended).count() == methods.len();
    let any = methods.iter().any(|record| !record.attempts.is_empty());
    match (all, any) {
        (true, _) => Evidence::Full,
        (false, true) => Evidence::Partial,
        (false, false) => Evidence::None,
    }
}

/// The limits that the command line made stricter than the protocol has them.
pub(super) fn stricter(plan: &Plan) -> Vec<&'static str> {
    limits::stricter(plan.protocol.limits(), &plan.policy.limits)
}

fn plan_evidence(plan: &Plan, standing: &Standing) -> Value {
    let method = |method: &Method| {
        object! { "name" => method.name.as_str(), "id" => method.id.as_str() }
    };
    object! {
        "schema" => "proctor.plan/1",
        "run_id" => plan.run_id.as_str(),
        "created_utc" => plan.created_utc.as_str(),
        "proctor" => object! {
            "version" => plan.version.as_str(),
            "sha256" => plan.binary_sha256.as_str(),
            "worker_sha256" => plan.policy.worker.sha256.as_str(),
        },
        "protocol_id" => plan.protocol.id(),
        "methods" => plan.methods.iter().map(method).collect::<Vec<Value>>(),
        "policy" => object! {
            "budget_seconds" => plan.policy.budget_seconds,
            "grace_seconds" => limits::grace(&plan.policy.limits).as_secs_f64(),
            "limits" => plan.policy.limits.to_value(),
            "stricter_than_protocol" => stricter(plan),
            "mode" => standing.mode,
            "degraded" => standing.degraded.clone(),
            "jobs" => plan.policy.jobs,
            "core_sets" => plan.policy.core_sets.clone(),
            "load" => plan.policy.load.map(Rule::to_value),
        },
        "machine" => public::value(&plan.machine.to_value()),
        "command_line" => plan.command_line.iter().map(|word| public_word(word)).collect::<Vec<_>>(),
        "run_again" => vec![
            "proctor dataset check DIR    # for each dataset named in protocol.json".to_owned(),
            format!(
                "proctor run PROTOCOL methods.json -o RUN_DIR --jobs {}{}    # PROTOCOL: protocol.json with the path of each dataset added",
                plan.policy.jobs,
                options(plan)
            ),
        ],
    }
}

/// The options that decide what a method is given, as they are to be given again.
fn options(plan: &Plan) -> String {
    let policy = &plan.policy;
    let mut options = String::new();
    for limit in Limit::ALL {
        if let Some(value) = policy.limits.get(limit)
            && stricter(plan).contains(&limit.key())
        {
            let _ = write!(options, " {} {value}", limits::option(limit));
        }
    }
    if let Some(rung) = policy.containment {
        let _ = write!(options, " --containment {rung}");
    }
    if let Some(rule) = policy.load {
        let (most, wait) = (rule.max_load, rule.max_wait_seconds);
        let _ = write!(options, " --max-load {most} --max-load-wait {wait}");
    }
    if policy.official {
        options.push_str(" --official");
        if !policy.degraded.is_empty() {
            options.push_str(" --allow-degraded");
        }
    }
    options
}

/// A word of the command line without the folders of this machine, relative ones included.
fn public_word(word: &str) -> String {
    let (option, path) = match word.split_once('=') {
        Some((option, path)) if option.starts_with('-') => (&word[..=option.len()], path),
        _ => ("", word),
    };
    let last = path.rsplit('/').find(|part| !part.is_empty());
    public::text(&format!("{option}{}", last.unwrap_or("")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_this_machine_are_not_published() {
        assert_eq!(public_word("/home/me/p.json"), "p.json");
        assert_eq!(public_word("runs/r1/"), "r1");
        assert_eq!(public_word("--output=/srv/runs/r1"), "--output=r1");
        assert_eq!(public_word("--jobs"), "--jobs");
        assert_eq!(public_word("/"), "");
    }
}
