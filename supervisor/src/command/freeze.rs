//! `proctor freeze`

use super::target;
use crate::cli::Freeze;
use crate::error::{Error, Exit};
use crate::render::{brief, output, plain};
use crate::rundir::durable;
use proctor_protocol::canonical::Limits;
use proctor_protocol::freeze::{freeze, notices};
use proctor_protocol::input::read_named_json;
use proctor_protocol::object;

pub(super) fn execute(args: &Freeze) -> Result<Exit, Error> {
    target::file(&args.output, &[&args.manifest])?;
    let manifest = read_named_json(&args.manifest, Limits::default())?;
    let base = durable::parent(&args.manifest);
    let base = std::path::absolute(base)
        .map_err(|error| Error::input(format!("{}: {error}", base.display())))?;
    let protocol = freeze(&manifest, &base, args.benchmark_id.as_deref())
        .map_err(|error| error.in_file(&args.manifest))?;
    for entry in protocol.datasets() {
        for folder in [&entry.path, &entry.validation_path].into_iter().flatten() {
            target::not_of_dataset(&args.output, folder)?;
        }
    }
    let notices = notices(&manifest);
    for notice in &notices {
        let text = format!("note: {}: {notice}", args.manifest.display());
        output::tell(&plain(&text));
    }
    durable::write_file(&args.output, protocol.file_text().as_bytes())?;
    let file = args.output.display().to_string();
    if args.report.json {
        output::print_json(&object! {
            "benchmark_id" => protocol.benchmark_id(),
            "output" => file,
            "protocol_id" => protocol.id(),
            "notices" => notices.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })?;
    } else {
        output::print(&format!(
            "froze {} with {} datasets\nprotocol id: {}\nwritten to: {}\n",
            brief(protocol.benchmark_id()),
            protocol.datasets().len(),
            protocol.id(),
            plain(&file),
        ))?;
    }
    Ok(Exit::Success)
}
