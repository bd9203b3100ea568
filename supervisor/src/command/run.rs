//! `proctor run`

use super::tell_stem;
use crate::cli::Run;
use crate::error::{Error, Exit};
use crate::merge::merge_run;
use crate::render::progress::ranges;
use crate::render::results::{self, Place};
use crate::render::table::{Align, Table};
use crate::render::{brief, output, plain, seconds};
use crate::room::sweep_stale_rooms;
use crate::run::preflight::refuse_degraded;
use crate::run::signals::{self, Stop};
use crate::run::taint::{self, Mark};
use crate::run::{Prepared, Request, freeze_plan, prepare, run_methods};
use crate::run::{limits, scratch, worker};
use crate::rundir::plan::{not_applicable, parts};
use crate::rundir::reserve::Reserve;
use proctor_protocol::canonical::Value;
use proctor_protocol::method::MethodKind;
use proctor_protocol::object;
use std::sync::Arc;

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
        only: args.only.clone(),
        basename: args.basename.clone(),
        worker: args.worker.clone(),
        limits: args.limits.asked(),
        containment: args.containment,
        official: args.official,
        allow_degraded: args.allow_degraded,
    })?;
    tell_stem(&args.basename)?;
    tell_unset(&prepared);
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
    run(&prepared, &stop, args.report.json)
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

/// Warns of environment variables that a program asks for and that are not set: it is run without them.
fn tell_unset(prepared: &Prepared) {
    for method in &prepared.methods {
        let unset = worker::passed_on(method)
            .iter()
            .filter(|name| std::env::var_os(name).is_none());
        for name in unset {
            output::tell(&plain(&format!(
                "warning: {} asks for the environment variable {name}, which is not set; it is run without it",
                method.name
            )));
        }
    }
}

/// Empties the rooms that supervisors which were killed left behind: what still runs in them would disturb the run.
/// What could not be taken away.
fn sweep() -> Vec<String> {
    let mut left = Vec::new();
    for mark in taint::marks(true) {
        output::tell(&plain(&match mark {
            Mark::Holds(text) => format!("warning: {text}"),
            Mark::Over(text) => text,
        }));
    }
    for room in sweep_stale_rooms() {
        if !room.removed {
            left.push(format!(
                "clean machine: the room {} of an earlier run could not be removed; end its processes as root, or restart the machine",
                plain(&room.name)
            ));
        }
        if room.survivors > 0 {
            output::tell(&format!(
                "ended {} processes that a supervisor which was killed left behind (run {})",
                room.survivors,
                plain(&room.run_id)
            ));
        }
    }
    for (path, removed) in scratch::sweep(&scratch::root()) {
        let path = plain(&path.display().to_string());
        output::tell(&match removed {
            Ok(()) => format!("removed {path}, which a supervisor that was killed left behind"),
            Err(why) => format!(
                "{path}, which a supervisor that was killed left behind, cannot be removed: {}",
                plain(&why)
            ),
        });
    }
    left
}

fn run(prepared: &Prepared, stop: &Arc<Stop>, json: bool) -> Result<Exit, Error> {
    let command_line = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let plan = freeze_plan(prepared, command_line.collect())?;
    let ran = run_methods(prepared, &plan, stop);
    Reserve::of(prepared.run.root()).give_back();
    // First, before anything that may only follow from it.
    if let Err(error) = &ran {
        output::tell(&format!("error: {}", plain(&error.to_string())));
    }
    if stop.at_once() {
        return Ok(Exit::Interrupted);
    }
    // Also when our side failed: what is finished is published, marked incomplete.
    let merged_dir = prepared.run.merged_dir();
    let merged = merge_run(
        &prepared.run,
        &plan,
        &prepared.loaded,
        &plan.basename,
        &merged_dir,
    );
    let merged = match (merged, &ran) {
        (Ok(merged), _) => merged,
        (Err(error), Ok(())) => return Err(error),
        (Err(error), Err(_)) => {
            output::tell(&plain(&format!("error: no bundle could be made: {error}")));
            return Ok(Exit::Infrastructure);
        }
    };
    let published = prepared.run.publish(merged.bundle)?;
    let place = Place {
        bundle: &published,
        page: &merged.page,
    };
    results::report(&plan, &merged.document, &merged.methods, &place, json)?;
    Ok(if stop.asked() {
        Exit::Interrupted
    } else if let Err(error) = &ran {
        error.exit()
    } else if merged.standing.withdrawn {
        // What was asked for is not what there is, and nobody's method is to blame.
        Exit::Infrastructure
    } else {
        results::exit(merged.methods.iter().map(|record| &record.outcome))
    })
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
