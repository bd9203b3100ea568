//! `proctor doctor`

use crate::cli::Doctor;
use crate::error::{Error, Exit};
use crate::render::output;
use crate::render::progress::ranges;
use crate::render::table::{Align, Table};
use crate::room::{self, Guard};
use crate::run::{host, worker};
use proctor_protocol::object;

pub(super) fn execute(args: &Doctor) -> Result<Exit, Error> {
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
    let worker = match worker {
        Ok(path) => path.display().to_string(),
        Err(error) => error.to_string(),
    };
    output::print(&format!(
        "machine: {} {} {}, {}\ncores: {}\nworker: {worker}\nrooms on this machine, best first:\n\n{}\nused for runs: {best}\n",
        machine.system,
        machine.release,
        machine.architecture,
        machine.processor,
        ranges(&cores),
        table.text(),
    ))?;
    Ok(verdict(&probe))
}

fn verdict(probe: &room::Probe) -> Exit {
    match probe.best() {
        Some(_) => Exit::Success,
        None => Exit::Negative,
    }
}
