//! `proctor resume`: goes on with a run from its records alone.

use super::session::{carry_out, sweep, tell_unset};
use crate::cli::Resume;
use crate::error::{Error, Exit};
use crate::render::counted;
use crate::run::preflight::refuse_degraded;
use crate::run::{How, Session, Stop, signals};
use crate::rundir::ancestry::Reason;
use crate::rundir::session::Mode;

pub(super) fn execute(args: &Resume) -> Result<Exit, Error> {
    let stop = Stop::new();
    signals::listen(&stop)
        .map_err(|error| Error::Infrastructure(format!("cannot listen to signals: {error}")))?;
    let how = How {
        mode: if args.restart {
            Mode::Restart
        } else {
            Mode::Continue
        },
        retry_failed: args.retry_failed,
        retries: args.retries,
    };
    let session = Session::open(&args.run_dir, how)?;
    let cores = session.own_cores()?;
    let plan = session.plan();
    let owed = plan.methods.iter().enumerate();
    let owed = owed.filter(|(at, _)| session.assignment(*at).is_some());
    tell_unset(owed.map(|(_, method)| method));
    stop.begin();
    if stop.asked() {
        return Ok(Exit::Interrupted);
    }
    let left = sweep();
    if plan.policy.official && plan.policy.degraded.is_empty() {
        refuse_degraded(&left)?;
    }
    carry_out(
        &session,
        &cores,
        &stop,
        outlook(&session),
        args.on_finish.as_ref(),
        args.report.json,
    )
}

/// What the session will do, in a line for each method that has attempts already.
fn outlook(session: &Session) -> Vec<String> {
    if session.is_settled() {
        return vec!["every method has its result; nothing is run again".into()];
    }
    let methods = session.plan().methods.iter().enumerate();
    methods
        .filter_map(|(at, method)| {
            let assignment = session.assignment(at)?;
            let ancestry = &assignment.ancestry;
            let name = &method.name;
            Some(match (&assignment.verdict, ancestry.inherited.len()) {
                (Some(outcome), _) => format!("{name}: {outcome}, known without a worker"),
                (None, 0) if ancestry.reason == Reason::First => return None,
                (None, 0) if ancestry.earlier_seconds <= 0.0 => {
                    format!("{name}: starts anew ({})", ancestry.reason.name())
                }
                (None, kept) => format!(
                    "{name}: goes on ({}), {} kept, {:.3} s of its budget used",
                    ancestry.reason.name(),
                    counted(kept as u64, "answer"),
                    ancestry.earlier_seconds
                ),
            })
        })
        .collect()
}
