//! What `run` and `resume` have in common: conducting a session in the foreground and telling what came of it.

use crate::error::{Error, Exit};
use crate::render::progress::Progress;
use crate::render::results::{self, Place};
use crate::render::{output, plain};
use crate::run::{Session, Stop, sweep as rooms, worker};
use crate::rundir::reserve::Reserve;
use proctor_protocol::method::Method;

/// Empties the rooms that killed supervisors left behind, and says so. What could not be taken away.
pub(super) fn sweep() -> Vec<String> {
    let swept = rooms::sweep();
    for note in &swept.notes {
        output::tell(note);
    }
    swept.left
}

/// Warns of environment variables that a program asks for and that are not set: it is run without them.
pub(super) fn tell_unset<'a>(methods: impl Iterator<Item = &'a Method>) {
    for method in methods {
        let unset = worker::passed_on(method)
            .iter()
            .filter(|name| std::env::var_os(name).is_none());
        for name in unset {
            output::tell(&plain(&format!(
                "warning: {} asks for the environment variable {name}, which is not set; it is run without it",
                method.name
            )));
        }
    }
}

/// Conducts a session, publishes the bundle and reports.
pub(super) fn carry_out(
    session: &Session,
    cores: &[Vec<usize>],
    stop: &Stop,
    json: bool,
) -> Result<Exit, Error> {
    let mut progress = Progress::of(session);
    let summary = session.conduct(cores, stop, &mut progress)?;
    Reserve::of(session.run_dir().root()).give_back();
    // First, before anything that may only follow from it.
    if let Some(error) = &summary.trouble {
        output::tell(&format!("error: {}", plain(&error.to_string())));
    }
    if stop.at_once() {
        return Ok(Exit::Interrupted);
    }
    // Also when our side failed: what is finished is published, marked incomplete.
    let published = match (session.publish(), &summary.trouble) {
        (Ok(published), _) => published,
        (Err(error), None) => return Err(error),
        (Err(error), Some(_)) => {
            output::tell(&plain(&format!("error: no bundle could be made: {error}")));
            return Ok(Exit::Infrastructure);
        }
    };
    let place = Place {
        bundle: &published.bundle,
        page: &published.page,
    };
    results::report(
        session.plan(),
        &published.document,
        &published.methods,
        &place,
        json,
    )?;
    Ok(if summary.stopped {
        Exit::Interrupted
    } else if let Some(error) = &summary.trouble {
        error.exit()
    } else {
        published.exit()
    })
}
