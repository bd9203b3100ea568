//! The words and options of the daemon, and of the commands that ask it.

use super::{Limits, Load, Output, jobs};
use crate::daemon::client::run_number;
use crate::room::Rung;
use crate::run::on_finish::OnFinish;
use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

/// `proctor daemon`
#[derive(Debug, Args)]
pub struct Daemon {
    /// Where the queue and the run directories are kept; `proctor` in `$XDG_STATE_HOME` or ~/.local/state without it.
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// The Unix socket to listen on. Without it: `$PROCTOR_SOCKET`, or `proctor.sock` in the directory of --state,
    /// in `$XDG_RUNTIME_DIR`, or in the usual state directory.
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// The file mode of the socket. Whoever may write to it may do everything.
    #[arg(long, value_name = "OCTAL", default_value = "600", value_parser = socket_mode)]
    pub socket_mode: u32,
    /// Listen on this address too: `127.0.0.1:PORT` or `[::1]:PORT`. Others are refused.
    #[arg(long, value_name = "ADDRESS", requires = "token_file")]
    pub listen: Option<SocketAddr>,
    /// The file of the token that requests over TCP must bring; readable by its owner alone.
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub token_file: Option<PathBuf>,
    /// A folder that protocols, methods and data of submissions may lie in; may be repeated. The current folder without it.
    #[arg(long, value_name = "DIR")]
    pub root: Vec<PathBuf>,
    /// The worker for built-in methods; otherwise `$PROCTOR_WORKER`, or `proctor-worker` beside this program.
    #[arg(long, value_name = "FILE")]
    pub worker: Option<PathBuf>,
    /// How long running methods may finish after SIGTERM before they are interrupted. They go on with the next daemon.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(0..=86400))]
    pub stop_grace: u64,
    /// Run this command when a run is over, as `run --on-finish` does. The next run does not wait for it.
    #[arg(long, value_name = "COMMAND", value_parser = OnFinish::parse)]
    pub on_finish: Option<OnFinish>,
    /// Requests a second that are answered, on the socket and on TCP each.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_requests: u32,
}

/// Where a client looks for the daemon.
#[derive(Debug, Args)]
pub struct ToDaemon {
    /// The daemon's socket. Without it: `$PROCTOR_SOCKET`, or `proctor.sock` in `$XDG_RUNTIME_DIR` or in the usual state
    /// directory.
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
}

/// `proctor submit`
#[derive(Debug, Args)]
pub struct Submit {
    /// The protocol file.
    pub protocol: PathBuf,
    /// The methods file.
    pub methods: PathBuf,
    /// Runs of higher priority go first; those of one priority go in the order they came.
    #[arg(long, default_value_t = 0, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1000..=1000))]
    pub priority: i32,
    /// Run nothing else beside it.
    #[arg(long)]
    pub exclusive: bool,
    /// Cores for the run. Without it, all that the daemon has, or as many as --jobs and --cpus need.
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub cores: Option<u32>,
    /// Methods to run at a time, each on its own cores.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = jobs)]
    pub jobs: u32,
    /// Run only the method of this name; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Base name of the bundle's files.
    #[arg(long, default_value = "leaderboard", value_name = "NAME")]
    pub basename: String,
    /// The containment rung of the rooms, as for `run`.
    #[arg(long, value_name = "RUNG")]
    pub containment: Option<Rung>,
    /// Refuse unless the daemon's machine gives what results for others demand.
    #[arg(long)]
    pub official: bool,
    /// Run all the same, and say in the bundle what was missing.
    #[arg(long, requires = "official")]
    pub allow_degraded: bool,
    /// What is asked of the machine before a method starts.
    #[command(flatten)]
    pub load: Load,
    /// What a method may use, where that is less than the protocol allows.
    #[command(flatten)]
    pub limits: Limits,
    /// Where the daemon is.
    #[command(flatten)]
    pub daemon: ToDaemon,
    /// The form of the report.
    #[command(flatten)]
    pub report: Output,
}

/// `proctor ls`
#[derive(Debug, Args)]
pub struct Ls {
    /// Only runs in this state.
    #[arg(long, value_name = "STATE")]
    pub state: Option<RunStateName>,
    /// How many runs, newest first.
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200))]
    pub limit: u32,
    /// Only runs with lower numbers than this.
    #[arg(long, value_name = "RUN", value_parser = run_number)]
    pub before: Option<u64>,
    /// Where the daemon is.
    #[command(flatten)]
    pub daemon: ToDaemon,
    /// The form of the report.
    #[command(flatten)]
    pub report: Output,
}

/// A state of a run on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum RunStateName {
    /// It waits for its turn.
    Queued,
    /// It goes on.
    Running,
    /// It is over.
    Ended,
}

/// `proctor show`
#[derive(Debug, Args)]
pub struct Show {
    /// The number of the run.
    #[arg(value_parser = run_number)]
    pub run: u64,
    /// Where the daemon is.
    #[command(flatten)]
    pub daemon: ToDaemon,
    /// The form of the report.
    #[command(flatten)]
    pub report: Output,
}

/// `proctor watch`
#[derive(Debug, Args)]
pub struct Watch {
    /// The number of the run.
    #[arg(value_parser = run_number)]
    pub run: u64,
    /// How long to wait for a daemon that does not answer, because it is started again.
    #[arg(long, default_value_t = 600, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=604_800))]
    pub patience: u64,
    /// Where the daemon is.
    #[command(flatten)]
    pub daemon: ToDaemon,
    /// The form of the report at the end.
    #[command(flatten)]
    pub report: Output,
}

/// `proctor logs`
#[derive(Debug, Args)]
pub struct Logs {
    /// The number of the run.
    #[arg(value_parser = run_number)]
    pub run: u64,
    /// Name or id of the method.
    pub method: String,
    /// The attempt, as `show --json` names it; the newest without it.
    #[arg(long, value_name = "ATTEMPT")]
    pub attempt: Option<String>,
    /// Go on until the attempt has ended.
    #[arg(short, long)]
    pub follow: bool,
    /// Where the daemon is.
    #[command(flatten)]
    pub daemon: ToDaemon,
}

/// `proctor cancel`
#[derive(Debug, Args)]
pub struct Cancel {
    /// The number of the run.
    #[arg(value_parser = run_number)]
    pub run: u64,
    /// Names or ids of methods; the whole run without any.
    pub methods: Vec<String>,
    /// Where the daemon is.
    #[command(flatten)]
    pub daemon: ToDaemon,
    /// The form of the report.
    #[command(flatten)]
    pub report: Output,
}

/// `proctor fetch`
#[derive(Debug, Args)]
pub struct Fetch {
    /// The number of the run.
    #[arg(value_parser = run_number)]
    pub run: u64,
    /// The bundle directory to make; it must be empty or absent.
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Where the daemon is.
    #[command(flatten)]
    pub daemon: ToDaemon,
    /// The form of the report.
    #[command(flatten)]
    pub report: Output,
}

fn socket_mode(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode & !0o666 == 0 && mode & 0o600 == 0o600 => Ok(mode),
        _ => Err("it must be 600, 660 or 666, or something between".into()),
    }
}
