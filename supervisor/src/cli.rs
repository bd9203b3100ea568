//! The command line: words and options. What they do is in `command`.

mod daemon;

pub use daemon::{Cancel, Daemon, Fetch, Logs, Ls, RunStateName, Show, Submit, ToDaemon, Watch};

use crate::load::{DEFAULT_WAIT_SECONDS, Rule};
use crate::room::Rung;
use crate::run::RETRIES;
use crate::run::on_finish::OnFinish;
use clap::{Args, Parser, Subcommand, ValueEnum};
use proctor_protocol::frozen::{ExecutionLimits, Limit};
use std::path::PathBuf;

/// Runs the methods of a frozen benchmark, each alone and against the clock, and publishes who finished, who did not,
/// and why.
#[derive(Debug, Parser)]
#[command(
    name = "proctor",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Freeze a manifest and its datasets into a protocol.
    Freeze(Freeze),
    /// Work with protocols.
    #[command(subcommand)]
    Protocol(ProtocolCommand),
    /// Work with datasets.
    #[command(subcommand)]
    Dataset(DatasetCommand),
    /// Show the ids and effective configurations of the methods of a file.
    Methods(Methods),
    /// Run every method of a file under a protocol and publish a bundle.
    Run(Run),
    /// Go on with a run that was stopped, cut off or failed, from its records alone.
    Resume(Resume),
    /// Show how far a run is.
    Status(Status),
    /// Make a bundle from a run directory, or from several bundles.
    Merge(Merge),
    /// Check a bundle: recompute everything it claims.
    Validate(Validate),
    /// Keep a queue of runs, and run them.
    Daemon(Daemon),
    /// Hand a run to the daemon.
    Submit(Submit),
    /// List the runs of the daemon.
    Ls(Ls),
    /// Show a run of the daemon with its methods.
    Show(Show),
    /// Follow a run of the daemon to its end.
    Watch(Watch),
    /// Show what a method wrote to stderr.
    Logs(Logs),
    /// Cancel a run of the daemon, or some of its methods.
    Cancel(Cancel),
    /// Fetch the bundle of a run of the daemon.
    Fetch(Fetch),
    /// Show what isolation this machine gives.
    Doctor(Doctor),
    /// Print a completion script for a shell.
    Completions(Completions),
}

/// The form of a report on stdout.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct Output {
    /// Print one JSON document instead of text.
    #[arg(long)]
    pub json: bool,
}

/// `proctor freeze`
#[derive(Debug, Args)]
pub struct Freeze {
    /// The manifest, a JSON file.
    pub manifest: PathBuf,
    /// The protocol file to write.
    #[arg(short, long, value_name = "PROTOCOL")]
    pub output: PathBuf,
    /// Name of the benchmark; part of the protocol id.
    #[arg(long, value_name = "ID")]
    pub benchmark_id: Option<String>,
    /// The form of the report.
    #[command(flatten)]
    pub report: Output,
}

/// `proctor protocol ...`
#[derive(Debug, Subcommand)]
pub enum ProtocolCommand {
    /// Write the portable form of a protocol: local paths removed, same id.
    Export(ProtocolExport),
}

/// `proctor protocol export`
#[derive(Debug, Args)]
pub struct ProtocolExport {
    /// The protocol file.
    pub protocol: PathBuf,
    /// The file to write; stdout without it.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The form of the report on what was written. Without --output the protocol itself is the report.
    #[command(flatten)]
    pub report: Output,
}

/// `proctor dataset ...`
#[derive(Debug, Subcommand)]
pub enum DatasetCommand {
    /// Check a normalized dataset and show its fingerprint.
    Check(DatasetCheck),
}

/// `proctor dataset check`
#[derive(Debug, Args)]
pub struct DatasetCheck {
    /// The dataset's folder.
    pub dir: PathBuf,
    /// The task family; found from the files without it.
    #[arg(long)]
    pub family: Option<FamilyName>,
    /// The form of the report.
    #[command(flatten)]
    pub report: Output,
}

/// A task family on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum FamilyName {
    /// Labelled pairs.
    Pair,
    /// Queries, documents and judgments.
    Retrieval,
}

/// `proctor methods`
#[derive(Debug, Args)]
pub struct Methods {
    /// The methods file.
    pub methods: PathBuf,
    /// Also check the methods against this protocol.
    #[arg(long, value_name = "PROTOCOL")]
    pub protocol: Option<PathBuf>,
    /// The form of the report.
    #[command(flatten)]
    pub report: Output,
}

/// `proctor run`
#[derive(Debug, Args)]
pub struct Run {
    /// The protocol file.
    pub protocol: PathBuf,
    /// The methods file.
    pub methods: PathBuf,
    /// The run directory to make; it must be empty or absent.
    #[arg(short, long, value_name = "RUN_DIR")]
    pub output: PathBuf,
    /// Methods to run at a time, each on its own cores.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = jobs)]
    pub jobs: u32,
    /// Run only the method of this name; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Base name of the bundle's files.
    #[arg(long, default_value = "leaderboard", value_name = "NAME")]
    pub basename: String,
    /// Check everything, say what would be run, start nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// The worker for built-in methods; otherwise `$PROCTOR_WORKER`, or `proctor-worker` beside this program.
    #[arg(long, value_name = "FILE")]
    pub worker: Option<PathBuf>,
    /// The containment rung of the rooms: K4, K3a, K3b, K1 or K0. The best one of this machine without it; K0, from which
    /// processes can escape, only by this option.
    #[arg(long, value_name = "RUNG")]
    pub containment: Option<Rung>,
    /// Refuse to run unless this machine gives what results for others demand; says what is missing and how to get it.
    #[arg(long)]
    pub official: bool,
    /// Run all the same, and say in the bundle what was missing.
    #[arg(long, requires = "official")]
    pub allow_degraded: bool,
    /// Run this command when the run is over, with the result in one line and the bundle's path as its last arguments.
    /// Words and quotes as in a shell, nothing else of one; it may take a minute, and changes nothing.
    #[arg(long, value_name = "COMMAND", value_parser = OnFinish::parse)]
    pub on_finish: Option<OnFinish>,
    /// What is asked of the machine before a method starts.
    #[command(flatten)]
    pub load: Load,
    /// What a method may use, where that is less than the protocol allows.
    #[command(flatten)]
    pub limits: Limits,
    /// The form of the report.
    #[command(flatten)]
    pub report: Output,
}

/// The load gate of `proctor run`.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Other load")]
pub struct Load {
    /// Start no method while other processes use more than this part of the cores, above 0 and at most 1; 0.1 is a tenth.
    #[arg(long, value_name = "FRACTION", value_parser = fraction)]
    pub max_load: Option<f64>,
    /// Wait at most so long for that, for each method. Then it starts all the same and the bundle says so; an official
    /// run does not start it.
    #[arg(long, value_name = "SECONDS", requires = "max_load", default_value_t = DEFAULT_WAIT_SECONDS, value_parser = wait)]
    pub max_load_wait: f64,
}

impl Load {
    /// As the supervisor has it.
    pub fn rule(self, refuse: bool) -> Option<Rule> {
        self.max_load.map(|max_load| Rule {
            max_load,
            max_wait_seconds: self.max_load_wait,
            refuse,
        })
    }
}

fn fraction(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    number
        .filter(|number| *number > 0.0 && *number <= 1.0)
        .ok_or_else(|| "it must be a number above 0 and at most 1".into())
}

fn wait(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    number
        .filter(|number: &f64| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| "it must be a number of seconds, 0 or more".into())
}

/// Limits of `proctor run`. They can only be stricter than the protocol, and the bundle says so.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Limits, stricter than the protocol's")]
pub struct Limits {
    /// Memory of a method with everything it starts, in bytes; 512M or 2G are understood.
    #[arg(long, value_name = "BYTES", value_parser = bytes(Limit::Memory))]
    pub max_memory: Option<u64>,
    /// Processes and threads of a method at the same time.
    #[arg(long, value_name = "N", value_parser = whole(Limit::Processes))]
    pub max_processes: Option<u64>,
    /// What a method may write to disk, in bytes.
    #[arg(long, value_name = "BYTES", value_parser = bytes(Limit::Scratch))]
    pub max_scratch: Option<u64>,
    /// Standard output and standard error of a method together, in bytes.
    #[arg(long, value_name = "BYTES", value_parser = bytes(Limit::Output))]
    pub max_output: Option<u64>,
    /// Seconds between SIGTERM and SIGKILL at the deadline.
    #[arg(long, value_name = "SECONDS", value_parser = whole(Limit::Grace))]
    pub grace: Option<u64>,
    /// Cores of a method.
    #[arg(long, value_name = "N", value_parser = whole(Limit::Cpus))]
    pub cpus: Option<u64>,
}

impl Limits {
    /// As the supervisor has them.
    pub fn asked(&self) -> ExecutionLimits {
        let mut asked = ExecutionLimits::default();
        for (limit, value) in [
            (Limit::Memory, self.max_memory),
            (Limit::Processes, self.max_processes),
            (Limit::Scratch, self.max_scratch),
            (Limit::Output, self.max_output),
            (Limit::Grace, self.grace),
            (Limit::Cpus, self.cpus),
        ] {
            asked.set(limit, value);
        }
        asked
    }
}

/// Reads a number of bytes, with `K`, `M`, `G` or `T` behind it for powers of 1024.
fn bytes(limit: Limit) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| {
        let power = |unit| "KMGT".find(unit).map(|at| 10 * (at + 1));
        let (digits, shift) = match text.chars().next_back().and_then(power) {
            Some(shift) => (&text[..text.len() - 1], shift),
            None => (text, 0),
        };
        let number = digits.parse::<u64>().ok();
        within(
            limit,
            number.and_then(|number| number.checked_mul(1 << shift)),
        )
    }
}

/// Reads a whole number.
fn whole(limit: Limit) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| within(limit, text.parse().ok())
}

fn within(limit: Limit, number: Option<u64>) -> Result<u64, String> {
    let (least, most) = limit.range();
    number
        .filter(|number| limit.allows(*number))
        .ok_or_else(|| format!("it must be a whole number from {least} to {most}"))
}

fn jobs(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("it must be a whole number, 1 or more".into()),
        Ok(jobs) => Ok(jobs),
    }
}

/// `proctor resume`
#[derive(Debug, Args)]
pub struct Resume {
    /// The run directory.
    pub run_dir: PathBuf,
    /// Let methods that were cut off begin anew, with the whole budget. Without it they go on from their checkpoints, and
    /// what those took counts against the budget.
    #[arg(long)]
    pub restart: bool,
    /// Give methods that failed by their own fault, or were set aside, one more attempt. The newest attempt counts, never
    /// the best, and the bundle shows them all.
    #[arg(long)]
    pub retry_failed: bool,
    /// Set a method aside as unresolved when so many attempts in a row failed on our side without a new checkpoint.
    #[arg(long, default_value_t = RETRIES, value_name = "N", value_parser = jobs)]
    pub retries: u32,
    /// Run this command when the run is over, with the result in one line and the bundle's path as its last arguments.
    /// Words and quotes as in a shell, nothing else of one; it may take a minute, and changes nothing.
    #[arg(long, value_name = "COMMAND", value_parser = OnFinish::parse)]
    pub on_finish: Option<OnFinish>,
    /// The form of the report.
    #[command(flatten)]
    pub report: Output,
}

/// `proctor status`
#[derive(Debug, Args)]
pub struct Status {
    /// The run directory.
    pub run_dir: PathBuf,
    /// The form of the report.
    #[command(flatten)]
    pub report: Output,
}

/// `proctor merge`
#[derive(Debug, Args)]
pub struct Merge {
    /// One run directory, or bundles (directories or payload files).
    #[arg(required = true, value_name = "RUN_DIR_OR_BUNDLE")]
    pub inputs: Vec<PathBuf>,
    /// The bundle directory to make; it must be empty or absent. A run directory may do without: the bundle is then
    /// put into the run directory itself.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Base name of the bundle's files; that of the run or of the first bundle without it.
    #[arg(long, value_name = "NAME")]
    pub basename: Option<String>,
    /// Merge bundles under this protocol instead of the one in the first bundle.
    #[arg(long, value_name = "PROTOCOL")]
    pub protocol: Option<PathBuf>,
    /// The form of the report.
    #[command(flatten)]
    pub report: Output,
}

/// `proctor validate`
#[derive(Debug, Args)]
pub struct Validate {
    /// The bundle: a directory or a payload file.
    pub bundle: PathBuf,
    /// Judge against this protocol instead of the one inside the bundle. With its data at hand and score files, the
    /// score files are also checked against the data.
    #[arg(long, value_name = "PROTOCOL")]
    pub protocol: Option<PathBuf>,
    /// The folder of the score files; `scores` of a bundle directory without it.
    #[arg(long, value_name = "DIR")]
    pub scores: Option<PathBuf>,
    /// The form of the report.
    #[command(flatten)]
    pub report: Output,
}

/// `proctor doctor`
#[derive(Debug, Args)]
pub struct Doctor {
    /// The form of the report.
    #[command(flatten)]
    pub report: Output,
}

/// `proctor completions`
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell.
    pub shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn sizes_are_read_with_their_unit() {
        let read = bytes(Limit::Memory);
        assert_eq!(read("512M"), Ok(512 << 20));
        assert_eq!(read("2G"), Ok(2 << 30));
        assert_eq!(read("1048576"), Ok(1 << 20));
        for wrong in [
            "",
            "M",
            "1",
            "-1",
            "1.5G",
            "2GB",
            "99999999T",
            "18446744073709551615K",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(whole(Limit::Grace)("0"), Ok(0));
        assert!(whole(Limit::Cpus)("2K").is_err());
    }

    #[test]
    fn the_definitions_are_sound() {
        Cli::command().debug_assert();
    }
}
