//! Whether somebody else drives a run.

use super::host;
use crate::error::Error;
use crate::render::brief;
use crate::rundir::RunDir;
use crate::rundir::session::{Liveness, Session as Record};
use std::time::{Duration, Instant};

/// A session whose process cannot be seen must have given no sign of life for so long before it counts as lost. It gives
/// one every two seconds.
const SILENCE: Duration = Duration::from_secs(20);

/// Refuses to go on while somebody else does.
///
/// # Errors
/// Somebody does.
pub(super) fn refuse_if_alive(run: &RunDir, last: &Record) -> Result<(), Error> {
    match last.liveness(&host::machine().host, &host::boot_id()) {
        Liveness::Over { .. } => Ok(()),
        Liveness::Alive => Err(in_use(run, Some(last))),
        Liveness::Hidden => {
            if gives_a_sign(last, SILENCE) {
                Err(in_use(run, Some(last)))
            } else {
                Ok(())
            }
        }
    }
}

/// Whether a session gives a sign of life within so long.
fn gives_a_sign(session: &Record, within: Duration) -> bool {
    let before = session.beat();
    let until = Instant::now() + within;
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(250));
        if session.beat() != before {
            return true;
        }
    }
    false
}

/// The refusal, with who it is.
pub(super) fn in_use(run: &RunDir, by: Option<&Record>) -> Error {
    let who = by.map_or_else(String::new, |by| {
        format!(
            " (process {} on {}, since {})",
            by.supervisor.pid,
            brief(&by.host),
            by.created_utc
        )
    });
    Error::input(format!(
        "nothing was started: {} is being run by somebody else{who}; wait until that ends, or end that process",
        brief(&run.root().display().to_string())
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rundir::Supervisor;
    use crate::rundir::session::{Mode, Request};

    #[test]
    fn a_session_that_cannot_be_seen_is_heard() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::new(folder.path());
        let this = Supervisor::this();
        let request = Request {
            run_id: "r".into(),
            nonce: "n".into(),
            created_utc: "2026-01-01T00:00:00Z".into(),
            host: "elsewhere".into(),
            boot_id: "b".into(),
            supervisor: this,
            version: "0".into(),
            binary_sha256: "00".into(),
            mode: Mode::Run,
            retry_failed: false,
            core_sets: vec![vec![0]],
            methods: Vec::new(),
        };
        run.claim_session(1, &request).unwrap();
        run.beat_session(1, 1).unwrap();
        let session = || run.sessions().unwrap().remove(0);
        assert!(!gives_a_sign(&session(), Duration::from_millis(300)));
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for beat in 2.. {
                    if over.load(std::sync::atomic::Ordering::SeqCst) {
                        break;
                    }
                    run.beat_session(1, beat).unwrap();
                }
            });
            let heard = gives_a_sign(&session(), Duration::from_mins(1));
            over.store(true, std::sync::atomic::Ordering::SeqCst);
            assert!(heard);
        });
        run.end_session(1, "2026-01-01T00:00:01Z").unwrap();
        assert!(refuse_if_alive(&run, &session()).is_ok());
    }
}
