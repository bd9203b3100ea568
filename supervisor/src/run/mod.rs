//! Running the methods of a plan. Everything here is a library: it prints nothing, ends no process and keeps no state beside
//! the run directory, so that several sessions can go on in one process, on cores that do not overlap.
//!
//! ```text
//! prepare(&request)          everything that can be refused, before anything is written
//! create(&prepared, words)   the frozen plan; from here on the directory is a run, and can wait as long as it likes
//! Session::first(prepared, plan), or Session::open(run_dir, how)
//! session.conduct(cores, &stop, &mut observer)
//! session.publish()          the bundle of what the records say
//! ```

mod alive;
pub mod attempt;
mod conduct;
pub mod exam;
pub mod handshake;
pub mod host;
pub mod limits;
pub mod live;
pub mod observe;
pub mod official;
pub mod on_finish;
mod owed;
pub mod preflight;
mod publication;
pub mod scratch;
mod session;
pub mod signals;
mod stop;
pub mod sweep;
pub mod taint;
pub mod unchanged;
pub mod work;
pub mod worker;

pub use conduct::Summary;
pub use observe::{Ended, Entry, Observer, Starting};
pub use preflight::{Prepared, Request, prepare};
pub use publication::Publication;
pub use session::Session;
pub use stop::Stop;
pub use work::{Assignment, How, RETRIES};

use crate::error::Error;
use crate::rundir::durable;
use crate::rundir::plan::Plan;
use std::io::ErrorKind;

/// So many lines of a failed method's stderr are shown.
pub const STDERR_LINES: usize = 5;

/// Writes the plan. From here on the directory is a run.
///
/// # Errors
/// Another run was made there meanwhile, or the system refused.
pub fn create(prepared: &Prepared, command_line: Vec<String>) -> Result<Plan, Error> {
    let random = |bytes| {
        host::random_hex(bytes)
            .map_err(|error| Error::Infrastructure(format!("no randomness: {error}")))
    };
    let own = host::own_sha256();
    let plan = Plan {
        run_id: random(6)?,
        nonce: random(16)?,
        created_utc: host::now_utc(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        binary_sha256: own.map_err(|error| {
            Error::Infrastructure(format!("this program cannot read its own file: {error}"))
        })?,
        command_line,
        inputs: prepared.inputs.clone(),
        basename: prepared.basename.clone(),
        protocol: prepared.protocol.clone(),
        methods: prepared.methods.clone(),
        policy: prepared.policy.clone(),
        machine: host::machine(),
    };
    durable::create_dir_all(prepared.run.root())?;
    durable::sweep(prepared.run.root());
    match plan.write(&prepared.run) {
        Err(error) if error.source.kind() == ErrorKind::AlreadyExists => {
            Err(Error::input(format!(
                "--output {}: another run is using it; name another directory",
                prepared.run.root().display()
            )))
        }
        written => Ok(written.map(|()| plan)?),
    }
}
