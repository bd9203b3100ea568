//! `proctor daemon`

use crate::cli::Daemon;
use crate::daemon::listen::notify;
use crate::daemon::places;
use crate::daemon::serve::{Config, serve};
use crate::error::{Error, Exit};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) fn execute(args: &Daemon) -> Result<Exit, Error> {
    let result = serve(&Config {
        state: places::state(args.state.as_deref())?,
        socket: places::daemon_socket(args.socket.as_deref(), args.state.as_deref())?,
        socket_mode: args.socket_mode,
        listen: args.listen.zip(args.token_file.clone()),
        roots: roots(&args.root)?,
        worker: args.worker.clone(),
        stop_grace: Duration::from_secs(args.stop_grace),
        on_finish: args.on_finish.clone(),
        requests_per_second: args.max_requests,
    });
    if let Err(error) = &result {
        notify(&format!("STATUS={}", error.to_string().replace('\n', " ")));
    }
    result
}

/// The folder the daemon was started in, where none is named.
fn roots(named: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    let here = std::env::current_dir()
        .map_err(|error| Error::input(format!("--root: the current folder: {error}")))?;
    if here == Path::new("/") {
        return Err(Error::input(
            "--root DIR: name the folders that protocols, methods and data may lie in; the daemon was started in /",
        ));
    }
    Ok(vec![here])
}
