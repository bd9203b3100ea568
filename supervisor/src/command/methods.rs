//! `proctor methods`

use crate::cli::Methods;
use crate::error::{Error, Exit};
use crate::render::output;
use crate::render::table::{Align, Table};
use crate::rundir::plan::not_applicable;
use proctor_protocol::canonical::Value;
use proctor_protocol::frozen::Protocol;
use proctor_protocol::method::{Method, MethodKind, load_methods};
use proctor_protocol::object;

pub(super) fn execute(args: &Methods) -> Result<Exit, Error> {
    let methods = load_methods(&args.methods)?;
    let protocol = args.protocol.as_deref().map(Protocol::load).transpose()?;
    if let Some(protocol) = &protocol {
        for method in &methods {
            method
                .check_against(protocol)
                .map_err(|error| error.in_file(&args.methods))?;
        }
    }
    if args.report.json {
        let rows: Vec<Value> = methods
            .iter()
            .map(|method| row(method, protocol.as_ref()))
            .collect();
        output::print_json(&object! { "methods" => rows })?;
    } else {
        let mut table = Table::new([
            ("method", Align::Left),
            ("id", Align::Left),
            ("run by", Align::Left),
        ]);
        for method in &methods {
            let (by, why) = runs_as(method);
            let excluded = protocol
                .as_ref()
                .and_then(|protocol| not_applicable(protocol, method));
            let by = match (excluded, why) {
                (Some(reason), _) => format!("nothing: not applicable, {reason}"),
                (None, Some(why)) => format!("nothing here: {why}"),
                (None, None) => by.to_owned(),
            };
            table.row([method.name.clone(), method.id.clone(), by]);
        }
        output::print(&table.text())?;
    }
    Ok(Exit::Success)
}

fn runs_as(method: &Method) -> (&'static str, Option<&str>) {
    match &method.kind {
        MethodKind::Builtin => ("builtin", None),
        MethodKind::Program(_) => ("program", None),
        MethodKind::Unsupported(reason) => ("unsupported", Some(reason)),
    }
}

fn row(method: &Method, protocol: Option<&Protocol>) -> Value {
    let (kind, why) = runs_as(method);
    let excluded = protocol.map(|protocol| {
        let entries = protocol.datasets().iter();
        let excluded =
            entries.filter_map(|entry| Some((entry.name.as_str(), method.exclusion(entry)?)));
        Value::Object(excluded.collect())
    });
    object! {
        "name" => method.name.as_str(),
        "id" => method.id.as_str(),
        "configuration" => method.configuration.clone(),
        "runs_as" => kind,
        "unsupported" => why,
        "not_applicable" => excluded,
    }
}
