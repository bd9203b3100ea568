//! `proctor`: the command line.

use clap::Parser;
use proctor_supervisor::cli::Cli;
use proctor_supervisor::render::{message, output};
use proctor_supervisor::{command, room};
use std::process::ExitCode;

fn main() -> ExitCode {
    room::stage::main_if_stage();
    let cli = Cli::parse();
    match command::execute(&cli.command) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => {
            let mut lines = error.to_string();
            lines.insert_str(0, "error: ");
            for line in lines.lines() {
                output::tell(&message(line));
            }
            ExitCode::from(error.exit().code())
        }
    }
}
