//! What `run` and `resume` have in common: conducting a session in the foreground and telling what came of it.

use crate::error::{Error, Exit};
use crate::render::progress::Progress;
use crate::render::results::{self, Place};
use crate::render::{output, plain};
use crate::run::on_finish::{OnFinish, Told};
use crate::run::{Session, Stop, sweep as rooms, worker};
use crate::rundir::reserve::Reserve;
use proctor_protocol::method::Method;
use std::path::Path;

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

/// Conducts a session, publishes the bundle, reports, and tells whoever wants to know. `outlook` is what is told when it
/// is sure that nobody else drives the run.
pub(super) fn carry_out(
    session: &Session,
    cores: &[Vec<usize>],
    stop: &Stop,
    outlook: Vec<String>,
    on_finish: Option<&OnFinish>,
    json: bool,
) -> Result<Exit, Error> {
    let mut progress = Progress::of(session, outlook);
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
    let published = match session.publish() {
        Ok(published) => published,
        Err(error) => {
            let exit = if summary.trouble.is_some() {
                Exit::Infrastructure
            } else {
                error.exit()
            };
            let line = format!("no bundle could be made: {error}");
            finish(on_finish, session, &line, None, exit);
            if summary.trouble.is_none() {
                return Err(error);
            }
            output::tell(&plain(&format!("error: {line}")));
            return Ok(exit);
        }
    };
    let place = Place {
        bundle: &published.bundle,
        page: &published.page,
    };
    let reported = results::report(
        session.plan(),
        &published.document,
        &published.methods,
        &place,
        json,
    );
    let exit = if summary.stopped {
        Exit::Interrupted
    } else if let Some(error) = &summary.trouble {
        error.exit()
    } else {
        published.exit()
    };
    let bundle = &published.bundle.path;
    // Also when nobody reads what is printed any more: then it is the only one to tell.
    finish(on_finish, session, &published.line(), Some(bundle), exit);
    reported?;
    Ok(exit)
}

/// Runs the command for the end of a run; that it fails is a warning and changes nothing.
fn finish(
    on_finish: Option<&OnFinish>,
    session: &Session,
    line: &str,
    bundle: Option<&Path>,
    exit: Exit,
) {
    let told = Told {
        line,
        bundle,
        run_dir: session.run_dir().root(),
        exit,
    };
    if let Some(Err(problem)) = on_finish.map(|command| command.tell(&told)) {
        output::tell(&format!("warning: --on-finish: {problem}"));
    }
}
