//! `proctor validate`

use crate::bundle::{self, open};
use crate::cli::Validate;
use crate::error::{Error, Exit};
use crate::render::{output, plain};
use proctor_protocol::bundle::{Validation, validate};
use proctor_protocol::canonical::Value;
use proctor_protocol::frozen::Protocol;
use proctor_protocol::object;

pub(super) fn execute(args: &Validate) -> Result<Exit, Error> {
    let protocol = args.protocol.as_deref().map(Protocol::load).transpose()?;
    let opened = open(&args.bundle)?;
    let validation = Validation {
        protocol: protocol.as_ref(),
        ..Validation::default()
    };
    let root = match opened
        .dir
        .as_deref()
        .map(bundle::check_inventory)
        .transpose()
    {
        Ok(root) => root,
        Err(problem) => return negative(args, "inventory", "", &problem.to_string()),
    };
    match validate(&opened.payload, &validation) {
        Err(finding) => negative(args, finding.rule, &finding.at, &finding.problem),
        Ok(verdict) => {
            if args.report.json {
                let mut value = verdict.to_value();
                if let Value::Object(object) = &mut value {
                    object.insert("root_sha256", root);
                    object.insert("evidence", opened.evidence.is_some());
                }
                output::print_json(&value)?;
            } else {
                let mut text = format!(
                    "valid: {}\nprotocol id: {}\nmethods: {}\nranked rows: {}\n",
                    plain(&verdict.benchmark_id),
                    verdict.protocol_id,
                    verdict.methods,
                    verdict.eligible_rows
                );
                if verdict.incomplete {
                    text.insert_str(0, "INCOMPLETE: some methods are owed another attempt\n");
                }
                if let Some(root) = root {
                    text.push_str(&format!("root digest: {root}\n"));
                }
                if opened.evidence.is_none() {
                    text.push_str("evidence: none\n");
                }
                output::print(&text)?;
            }
            Ok(Exit::Success)
        }
    }
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
