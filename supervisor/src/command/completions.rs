//! `proctor completions`

use crate::cli::{Cli, Completions};
use crate::error::{Error, Exit};
use crate::render::output;
use clap::CommandFactory;

pub(super) fn execute(args: &Completions) -> Result<Exit, Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "proctor", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success)
}
