//! `proctor validate`

use crate::bundle::{self, Evidence, open};
use crate::cli::Validate;
use crate::error::{Error, Exit};
use crate::render::{output, plain};
use proctor_protocol::bundle::{Validation, Verdict, validate};
use proctor_protocol::canonical::Value;
use proctor_protocol::frozen::{DatasetEntry, LoadedEntry, Protocol};
use proctor_protocol::object;
use std::fmt::Write;
use std::path::Path;

pub(super) fn execute(args: &Validate) -> Result<Exit, Error> {
    let protocol = args.protocol.as_deref().map(Protocol::load).transpose()?;
    let opened = open(&args.bundle)?;
    let scores = args.scores.clone().or(opened.scores);
    let root = match opened
        .dir
        .as_deref()
        .map(bundle::check_inventory)
        .transpose()
    {
        Ok(root) => root,
        Err(problem) => return negative(args, "inventory", "", &problem.to_string()),
    };
    let data = match &protocol {
        Some(protocol) if scores.is_some() => data_at_hand(protocol)?,
        _ => None,
    };
    let validation = Validation {
        protocol: protocol.as_ref(),
        scores: scores.as_deref(),
        data: data.as_deref(),
    };
    match validate(&opened.payload, &validation) {
        Err(finding) => negative(args, finding.rule, &finding.at, &finding.problem),
        Ok(verdict) => {
            let seen = Seen {
                root,
                evidence: opened.evidence,
                data: data.is_some(),
            };
            positive(args, &verdict, &seen)?;
            Ok(Exit::Success)
        }
    }
}

/// The data of a protocol, checked against it; `None` when it has no paths or nothing lies there.
fn data_at_hand(protocol: &Protocol) -> Result<Option<Vec<LoadedEntry>>, Error> {
    let there = |entry: &DatasetEntry| entry.path.as_deref().is_some_and(Path::is_dir);
    if protocol.datasets().iter().all(there) {
        Ok(Some(protocol.verify_data()?))
    } else {
        Ok(None)
    }
}

/// What a positive verdict rests on beyond the payload.
struct Seen {
    root: Option<String>,
    evidence: Evidence,
    data: bool,
}

fn positive(args: &Validate, verdict: &Verdict, seen: &Seen) -> Result<(), Error> {
    if args.report.json {
        let mut value = verdict.to_value();
        if let Value::Object(object) = &mut value {
            object.insert("root_sha256", seen.root.clone());
            object.insert("evidence", seen.evidence.name());
            object.insert("compared_with_data", seen.data);
        }
        return output::print_json(&value);
    }
    let mut text = String::new();
    if verdict.incomplete {
        text.push_str("INCOMPLETE: some methods are owed another attempt\n");
    }
    let _ = writeln!(text, "valid: {}", plain(&verdict.benchmark_id));
    let _ = writeln!(text, "protocol id: {}", verdict.protocol_id);
    let _ = writeln!(
        text,
        "methods: {}, ranked rows: {}",
        verdict.methods, verdict.eligible_rows
    );
    let _ = writeln!(
        text,
        "rows with a score: {}, computed again from score files: {}{}",
        verdict.scored_rows,
        verdict.recomputed_rows,
        if seen.data {
            ", which hold the frozen data"
        } else {
            ""
        }
    );
    if let Some(root) = &seen.root {
        let _ = writeln!(text, "root digest: {root}");
    }
    let _ = writeln!(text, "evidence: {}", seen.evidence.name());
    output::print(&text)
}

fn negative(args: &Validate, rule: &str, at: &str, problem: &str) -> Result<Exit, Error> {
    if args.report.json {
        output::print_json(&object! {
            "valid" => false,
            "rule" => rule,
            "at" => at,
            "problem" => problem,
        })?;
    } else {
        let place = if at.is_empty() {
            String::new()
        } else {
            format!("{at}: ")
        };
        output::print(&format!(
            "not valid: {}\n",
            plain(&format!("{place}{problem}"))
        ))?;
    }
    Ok(Exit::Negative)
}
