//! `proctor doctor`

use crate::cli::Doctor;
use crate::error::{Error, Exit};
use crate::render::progress::ranges;
use crate::render::table::{Align, Table};
use crate::render::{output, plain};
use crate::room::{self, Guard, remedy};
use crate::run::taint::{self, Mark};
use crate::run::{host, scratch, worker};
use proctor_protocol::canonical::Value;
use proctor_protocol::object;
use std::fmt::Write;

pub(super) fn execute(args: &Doctor) -> Result<Exit, Error> {
    // Without a place for scratch directories no room can be tried, and that would say nothing of the machine.
    scratch::usable().map_err(Error::input)?;
    let probe = room::probe();
    let cores = host::usable_cores().unwrap_or_default();
    let worker = worker::find(None);
    let machine = host::machine();
    if args.report.json {
        let (path, problem) = match &worker {
            Ok(path) => (Some(path.display().to_string()), None),
            Err(error) => (None, Some(error.to_string())),
        };
        output::print_json(&object! {
            "machine" => machine.to_value(),
            "cores" => cores,
            "worker" => object! { "path" => path, "problem" => problem },
            "rooms" => probe.to_value(),
            "tainted" => tainted(),
            "remedies" => remedies(&probe)
                .into_iter()
                .map(|(name, reason, remedy)| {
                    object! { "name" => name, "reason" => reason, "remedy" => remedy }
                })
                .collect::<Vec<Value>>(),
        })?;
        return Ok(verdict(&probe));
    }
    let mut table = Table::new([
        ("rung", Align::Left),
        ("what it is", Align::Left),
        ("here", Align::Left),
    ]);
    for (rung, guard) in &probe.rungs {
        let here = match guard {
            Guard::Enforced(_) => "yes".to_owned(),
            Guard::Unavailable(reason) => format!("no: {reason}"),
            Guard::Off | Guard::Unknown => "not tried".to_owned(),
        };
        table.row([rung.name().to_owned(), rung.meaning().to_owned(), here]);
    }
    let best = probe.best().map_or_else(
        || "no room that can be emptied for sure; runs are refused here".to_owned(),
        |rung| format!("{rung} ({})", rung.meaning()),
    );
    let mut missing = String::new();
    for (name, reason, remedy) in remedies(&probe) {
        let _ = write!(
            missing,
            "\n{name} is missing: {reason}\n  to get it: {remedy}\n"
        );
    }
    for text in tainted() {
        let _ = write!(missing, "\n{}\n", plain(&text));
    }
    let worker = match worker {
        Ok(path) => path.display().to_string(),
        Err(error) => error.to_string(),
    };
    output::print(&format!(
        "machine: {} {} {}, {}\ncores: {}\nworker: {worker}\nrooms on this machine, best first:\n\n{}{}\nused for runs: {best}\n{missing}",
        machine.system,
        machine.release,
        machine.architecture,
        machine.processor,
        ranges(&cores),
        table.text(),
        protections(&probe.isolation),
    ))?;
    Ok(verdict(&probe))
}

/// What a room on the best rung protects, by what means, or why not; nothing when there is no room.
fn protections(isolation: &room::Isolation) -> String {
    let Some(rung) = isolation.containment else {
        return String::new();
    };
    let mut table = Table::new([
        ("protection", Align::Left),
        ("here", Align::Left),
        ("by what means, or why not", Align::Left),
    ]);
    for (name, guard) in &isolation.guards {
        let (state, why) = match guard {
            Guard::Enforced(by) => ("enforced", by.as_str()),
            Guard::Unavailable(reason) => ("unavailable", reason.as_str()),
            Guard::Off => ("off", ""),
            Guard::Unknown => ("unknown", ""),
        };
        table.row([(*name).to_owned(), state.to_owned(), why.to_owned()]);
    }
    format!("\nprotections of a room on {rung}:\n\n{}", table.text())
}

/// What is missing here, why, and what would give it: rungs, then protections of the rung that is used.
fn remedies(probe: &room::Probe) -> Vec<(String, String, String)> {
    let mut missing = Vec::new();
    for (rung, guard) in &probe.rungs {
        if let Guard::Unavailable(reason) = guard {
            let remedy = remedy::for_rung(*rung);
            missing.push((rung.name().to_owned(), reason.clone(), remedy));
        }
    }
    for (name, guard) in &probe.isolation.guards {
        let reason = match guard {
            Guard::Unavailable(reason) => reason.clone(),
            Guard::Enforced(by) if by.starts_with("RLIMIT_AS") => {
                format!("only by {by}, which an official run does not accept")
            }
            _ => continue,
        };
        if let Some(remedy) = remedy::for_guard(name) {
            missing.push(((*name).to_owned(), reason, remedy));
        }
    }
    missing
}

/// What says that processes which could not be killed are still there.
fn tainted() -> Vec<String> {
    let holds = |mark| match mark {
        Mark::Holds(text) => Some(text),
        Mark::Over(_) => None,
    };
    taint::marks(false).into_iter().filter_map(holds).collect()
}

fn verdict(probe: &room::Probe) -> Exit {
    match probe.best() {
        Some(_) => Exit::Success,
        None => Exit::Negative,
    }
}
