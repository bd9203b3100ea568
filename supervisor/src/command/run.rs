//! `proctor run`

use super::session::{carry_out, sweep, tell_unset};
use super::tell_stem;
use crate::cli::Run;
use crate::error::{Error, Exit};
use crate::render::progress::ranges;
use crate::render::table::{Align, Table};
use crate::render::{brief, output, plain, seconds};
use crate::run::preflight::refuse_degraded;
use crate::run::{Prepared, Request, Session, Stop, create, limits, prepare, signals};
use crate::rundir::plan::{not_applicable, parts};
use proctor_protocol::canonical::Value;
use proctor_protocol::method::MethodKind;
use proctor_protocol::object;

pub(super) fn execute(args: &Run) -> Result<Exit, Error> {
    let stop = Stop::new();
    if !args.dry_run {
        signals::listen(&stop)
            .map_err(|error| Error::Infrastructure(format!("cannot listen to signals: {error}")))?;
    }
    let mut prepared = prepare(&Request {
        protocol: args.protocol.clone(),
        methods: args.methods.clone(),
        output: args.output.clone(),
        jobs: args.jobs as usize,
        cores: None,
        only: args.only.clone(),
        basename: args.basename.clone(),
        worker: args.worker.clone(),
        limits: args.limits.asked(),
        containment: args.containment,
        official: args.official,
        allow_degraded: args.allow_degraded,
        load: args.load.rule(args.official && !args.allow_degraded),
    })?;
    tell_stem(&args.basename)?;
    tell_unset(prepared.methods.iter());
    tell_stricter(&prepared);
    if args.dry_run {
        dry_run(&prepared, args.report.json)?;
        return Ok(Exit::Success);
    }
    stop.begin();
    if stop.asked() {
        return Ok(Exit::Interrupted);
    }
    let left = sweep();
    if args.official {
        if !args.allow_degraded {
            refuse_degraded(&left)?;
        }
        prepared.policy.degraded.extend(left);
    }
    for lacking in &prepared.policy.degraded {
        output::tell(&plain(&format!(
            "warning: not as an official run must be: {lacking}"
        )));
    }
    let command_line = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let plan = create(&prepared, command_line.collect())?;
    let cores = plan.policy.core_sets.clone();
    let session = Session::first(prepared, plan);
    carry_out(
        &session,
        &cores,
        &stop,
        Vec::new(),
        args.on_finish.as_ref(),
        args.report.json,
    )
}

/// Says which limits are not those of the protocol: the results are not comparable with others then.
fn tell_stricter(prepared: &Prepared) {
    let limits = &prepared.policy.limits;
    let stricter = limits::stricter(prepared.protocol.limits(), limits);
    if !stricter.is_empty() {
        output::tell(&format!(
            "note: stricter than the protocol: {}; the bundle says so",
            stricter.join(", ")
        ));
    }
}

fn dry_run(prepared: &Prepared, json: bool) -> Result<(), Error> {
    let protocol = &prepared.protocol;
    let rung = prepared.rung.name();
    if json {
        let methods: Vec<Value> = prepared
            .methods
            .iter()
            .map(|method| {
                object! {
                    "name" => method.name.as_str(),
                    "id" => method.id.as_str(),
                    "not_applicable" => not_applicable(protocol, method),
                    "datasets" => parts(protocol, method).len(),
                }
            })
            .collect();
        return output::print_json(&object! {
            "dry_run" => true,
            "protocol_id" => protocol.id(),
            "methods" => methods,
            "budget_seconds" => prepared.policy.budget_seconds,
            "core_sets" => prepared.policy.core_sets.clone(),
            "containment" => rung,
            "mode" => prepared.policy.mode(),
            "degraded" => prepared.policy.degraded.clone(),
            "output" => prepared.run.root().display().to_string(),
        });
    }
    let mut table = Table::new([
        ("method", Align::Left),
        ("run by", Align::Left),
        ("datasets", Align::Right),
    ]);
    for method in &prepared.methods {
        let by = match (&method.kind, not_applicable(protocol, method)) {
            (_, Some(reason)) => format!("nothing: {reason}"),
            (MethodKind::Program(program), None) => program.executable.display().to_string(),
            _ => "the built-in worker".into(),
        };
        table.row([
            method.name.clone(),
            by,
            parts(protocol, method).len().to_string(),
        ]);
    }
    let sets: Vec<String> = prepared
        .policy
        .core_sets
        .iter()
        .map(|set| ranges(set))
        .collect();
    output::print(&format!(
        "everything is in order; nothing was started\nprotocol: {} ({})\nbudget: {} for each method, at most {} in all\nat a time: {} (cores {})\nroom: {rung}\nrun directory: {}\n\n{}",
        brief(protocol.benchmark_id()),
        protocol.id(),
        seconds(prepared.policy.budget_seconds),
        seconds(
            prepared.policy.budget_seconds
                * prepared.methods.len().div_ceil(prepared.policy.jobs) as f64
        ),
        prepared.policy.jobs,
        sets.join(" | "),
        plain(&prepared.run.root().display().to_string()),
        table.text(),
    ))
}
