//! The commands, one file each. A command reads its options, asks the library, and renders the answer.

mod client;
mod completions;
mod daemon;
mod dataset;
mod doctor;
mod freeze;
mod merge;
mod methods;
mod protocol;
mod resume;
mod run;
mod session;
mod status;
mod target;
mod validate;

use crate::bundle::file_stem;
use crate::cli::Command;
use crate::error::{Error, Exit};
use crate::render::{brief, output};

/// Checks a base name, and says so when the file names begin otherwise.
fn tell_stem(basename: &str) -> Result<(), Error> {
    let stem = file_stem(basename)?;
    if stem != basename {
        output::tell(&format!(
            "the files of the bundle are named {stem}, for --basename {}",
            brief(basename)
        ));
    }
    Ok(())
}

/// Does what the command line asks.
///
/// # Errors
/// Why it could not be done.
pub fn execute(command: &Command) -> Result<Exit, Error> {
    match command {
        Command::Freeze(args) => freeze::execute(args),
        Command::Protocol(command) => protocol::execute(command),
        Command::Dataset(command) => dataset::execute(command),
        Command::Methods(args) => methods::execute(args),
        Command::Run(args) => run::execute(args),
        Command::Resume(args) => resume::execute(args),
        Command::Status(args) => status::execute(args),
        Command::Merge(args) => merge::execute(args),
        Command::Validate(args) => validate::execute(args),
        Command::Daemon(args) => daemon::execute(args),
        Command::Submit(args) => client::submit(args),
        Command::Ls(args) => client::ls(args),
        Command::Show(args) => client::show(args),
        Command::Watch(args) => client::watch(args),
        Command::Logs(args) => client::logs(args),
        Command::Cancel(args) => client::cancel(args),
        Command::Fetch(args) => client::fetch(args),
        Command::Doctor(args) => doctor::execute(args),
        Command::Completions(args) => completions::execute(args),
    }
}
