//! `proctor protocol export`

use super::target;
use crate::cli::{ProtocolCommand, ProtocolExport};
use crate::error::{Error, Exit};
use crate::render::{output, plain};
use crate::rundir::durable;
use proctor_protocol::frozen::Protocol;
use proctor_protocol::object;

pub(super) fn execute(command: &ProtocolCommand) -> Result<Exit, Error> {
    match command {
        ProtocolCommand::Export(args) => export(args),
    }
}

fn export(args: &ProtocolExport) -> Result<Exit, Error> {
    if let Some(file) = &args.output {
        target::file(file, &[&args.protocol])?;
    }
    let protocol = Protocol::load(&args.protocol)?;
    let text = protocol.export();
    if let Some(file) = &args.output {
        durable::write_file(file, text.as_bytes())?;
        let file = file.display().to_string();
        if args.report.json {
            output::print_json(&object! {
                "benchmark_id" => protocol.benchmark_id(),
                "output" => file,
                "protocol_id" => protocol.id(),
            })?;
        } else {
            output::tell(&format!("written to: {}", plain(&file)));
        }
    } else {
        output::print(&(text + "\n"))?;
    }
    Ok(Exit::Success)
}
