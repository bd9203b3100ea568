//! `proctor`: the command line.

use clap::Parser;
use proctor_supervisor::cli::Cli;
use proctor_supervisor::render::{output, plain};
use proctor_supervisor::{command, room};
use std::process::ExitCode;

/// The most characters of one line of an error. Input that is echoed can be of any length.
const LINE: usize = 1000;

fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE) {
        Some((end, _)) => plain(&line[..end]) + "...",
        None => plain(line),
    }
}

fn main() -> ExitCode {
    room::stage::main_if_stage();
    let cli = Cli::parse();
    match command::execute(&cli.command) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => {
            let mut lines = error.to_string();
            lines.insert_str(0, "error: ");
            for line in lines.lines() {
                output::tell(&cut(line));
            }
            ExitCode::from(error.exit().code())
        }
    }
}
