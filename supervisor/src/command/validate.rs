//! `proctor validate`

use crate::bundle::{self, Evidence, open};
use crate::cli::Validate;
use crate::error::{Error, Exit};
use crate::render::{brief, output, plain};
use proctor_protocol::bundle::{
    Backing, Directory, Document, Finding, Payload, Validation, Verdict, check_directory, validate,
};
use proctor_protocol::canonical::Value;
use proctor_protocol::frozen::{DatasetEntry, LoadedEntry, Protocol};
use proctor_protocol::object;
use std::fmt::Write;
use std::path::Path;

pub(super) fn execute(args: &Validate) -> Result<Exit, Error> {
    let protocol = args.protocol.as_deref().map(Protocol::load).transpose()?;
    let opened = open(&args.bundle)?;
    opened.check()?;
    if let Some(folder) = args.scores.as_deref().filter(|folder| !folder.is_dir()) {
        return Err(Error::input(format!(
            "--scores {}: there is no such folder",
            brief(&folder.display().to_string())
        )));
    }
    let scores = args.scores.clone().or(opened.scores);
    let root = match opened
        .dir
        .as_deref()
        .map(bundle::check_inventory)
        .transpose()
    {
        Ok(root) => root,
        Err(problem) => {
            let finding = Finding {
                rule: "inventory",
                at: String::new(),
                problem: problem.to_string(),
                expected: None,
                found: None,
            };
            return refused(args, &finding);
        }
    };
    let data = match &protocol {
        Some(protocol) if scores.is_some() || opened.dir.is_some() => data_at_hand(protocol)?,
        _ => None,
    };
    let validation = Validation {
        protocol: protocol.as_ref(),
        scores: scores.as_deref(),
        data: data.as_deref(),
    };
    match judge(
        opened.payload,
        opened.dir.as_deref(),
        &opened.about,
        &validation,
    ) {
        Err(finding) => refused(args, &finding),
        Ok((verdict, backing)) => {
            let seen = Seen {
                root,
                backing,
                data: data.is_some(),
            };
            positive(args, &verdict, &seen)?;
            Ok(Exit::Success)
        }
    }
}

/// Judges a payload, and what lies around it when it is in a directory of ours.
fn judge(
    payload: Payload,
    dir: Option<&Path>,
    about: &Value,
    validation: &Validation<'_>,
) -> Result<(Verdict, Option<Backing>), Finding> {
    let Some(root) = dir else {
        return Ok((validate(&payload, validation)?, None));
    };
    let (document, verdict) = Document::accept(payload, validation)?;
    let backing = check_directory(&Directory {
        root,
        about,
        document: &document,
        protocol: validation.protocol,
        data: validation.data,
        version: env!("CARGO_PKG_VERSION"),
    })?;
    Ok((verdict, Some(backing)))
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
    /// Nothing of a bare payload.
    backing: Option<Backing>,
    data: bool,
}

impl Seen {
    fn evidence(&self) -> Evidence {
        self.backing
            .map_or(Evidence::None, |backing| backing.evidence)
    }
}

fn positive(args: &Validate, verdict: &Verdict, seen: &Seen) -> Result<(), Error> {
    if args.report.json {
        let mut value = verdict.to_value();
        if let Value::Object(object) = &mut value {
            object.insert("root_sha256", seen.root.clone());
            object.insert("evidence", seen.evidence().name());
            let backing = seen.backing;
            object.insert("pages_compared", backing.map(|seen| seen.pages_compared));
            object.insert("thresholds", backing.map(|seen| seen.thresholds));
            let again = backing.map(|seen| seen.recomputed_thresholds);
            object.insert("recomputed_thresholds", again);
            object.insert("compared_with_data", seen.data);
        }
        return output::print_json(&value);
    }
    let mut text = String::new();
    if verdict.incomplete {
        text.push_str("INCOMPLETE: some methods are owed another attempt\n");
    }
    let _ = writeln!(text, "valid: {}", brief(&verdict.benchmark_id));
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
    if let Some(backing) = &seen.backing {
        if backing.thresholds > 0 {
            let _ = writeln!(
                text,
                "thresholds: {}, computed again from validation scores: {}",
                backing.thresholds, backing.recomputed_thresholds
            );
        }
        if !backing.pages_compared {
            text.push_str("pages: made by another version of proctor, so not compared\n");
        }
    }
    let _ = writeln!(text, "evidence: {}", seen.evidence().name());
    output::print(&text)
}

fn refused(args: &Validate, finding: &Finding) -> Result<Exit, Error> {
    if args.report.json {
        output::print_json(&object! {
            "valid" => false,
            "rule" => finding.rule,
            "at" => finding.at.as_str(),
            "problem" => finding.problem.as_str(),
            "expected" => finding.expected.clone(),
            "found" => finding.found.clone(),
        })?;
    } else {
        output::print(&format!("not valid: {}\n", plain(&finding.to_string())))?;
    }
    Ok(Exit::Negative)
}
