//! `proctor protocol export`

use super::target;
use crate::cli::{ProtocolCommand, ProtocolExport};
use crate::error::{Error, Exit};
use crate::render::{output, plain};
use crate::rundir::durable;
use proctor_protocol::frozen::Protocol;

pub(super) fn execute(command: &ProtocolCommand) -> Result<Exit, Error> {
    match command {
        ProtocolCommand::Export(args) => export(args),
    }
}

fn export(args: &ProtocolExport) -> Result<Exit, Error> {
    if let Some(file) = &args.output {
        target::file(file, &[&args.protocol])?;
    }
    let text = Protocol::load(&args.protocol)?.export();
    if let Some(file) = &args.output {
        durable::write_file(file, text.as_bytes())?;
        output::tell(&format!(
            "written to: {}",
            plain(&file.display().to_string())
        ));
    } else {
        output::print(&(text + "\n"))?;
    }
    Ok(Exit::Success)
}
