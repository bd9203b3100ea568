//! Asking the built-in worker, before anything starts, whether it is there and can score what the plan asks of it. It is
//! asked in a real room, with a conversation of no datasets.

use super::{scratch, worker};
use crate::attempt::{self, Control, Exam};
use crate::error::Error;
use crate::render::brief;
use crate::render::sentence::tail;
use crate::room::{self, RoomSpec, Rung};
use proctor_protocol::method::Method;
use proctor_protocol::outcome::Outcome;
use proctor_wire::{BlindDataset, PROTOCOL_VERSION, ToWorker};
use std::io;
use std::path::Path;
use std::time::Duration;

/// A worker that says nothing in this time is not there.
const PATIENCE: Duration = Duration::from_secs(10);

struct Greeting<'a> {
    method: &'a Method,
    cores: u32,
}

impl Exam for Greeting<'_> {
    fn count(&self) -> u32 {
        0
    }

    fn hello(&self) -> ToWorker {
        ToWorker::Hello {
            protocol: PROTOCOL_VERSION,
            datasets: 0,
            cores: self.cores,
            method: self.method.wire_value(),
        }
    }

    fn open(&mut self, _: u32) -> io::Result<BlindDataset> {
        Err(io::Error::other("a greeting has no datasets"))
    }

    fn checkpoint(&mut self, _: u32, _: Vec<f64>, _: f64) -> io::Result<()> {
        Err(io::Error::other("a greeting has no datasets"))
    }

    fn failed(&mut self, _: u32, _: &str, _: f64) -> io::Result<()> {
        Err(io::Error::other("a greeting has no datasets"))
    }
}

/// Greets the worker on behalf of one method, in a room of this rung.
///
/// # Errors
/// It does not answer, or says that it cannot score the method.
pub fn greet(
    program: &Path,
    method: &Method,
    cores: &[usize],
    rung: Option<Rung>,
) -> Result<(), Error> {
    let trouble =
        |error: io::Error| Error::Infrastructure(format!("cannot try the worker: {error}"));
    let folder = tempfile::Builder::new()
        .prefix(&scratch::prefix())
        .tempdir_in(scratch::root())
        .map_err(trouble)?;
    let scratch = folder.path().join("scratch");
    let log = folder.path().join("stderr");
    let room = RoomSpec {
        env: room::environment(&scratch, &[]),
        cores: cores.to_vec(),
        containment: rung,
        ..RoomSpec::new(
            worker::command(method, Some(program)),
            scratch,
            log.clone(),
            "greeting",
        )
    };
    let mut greeting = Greeting {
        method,
        cores: cores.len() as u32,
    };
    let control = Control::new().map_err(trouble)?;
    let ending = attempt::run(&room, PATIENCE, &mut greeting, &control);
    if ending.outcome == Outcome::Completed {
        return Ok(());
    }
    let stranger =
        ending.worker.is_empty() && !matches!(ending.outcome, Outcome::Infrastructure(_));
    let said = ending
        .facts
        .worker_error
        .unwrap_or_else(|| ending.outcome.to_string());
    let name = brief(&program.display().to_string());
    let mut text = if stranger {
        format!(
            "nothing was started: {name} is not a proctor worker: it did not say hello ({said})"
        )
    } else {
        format!(
            "nothing was started: the worker {name} cannot run {}: {said}",
            method.name
        )
    };
    for line in tail(&log, super::STDERR_LINES) {
        text.push_str("\n  stderr: ");
        text.push_str(&line);
    }
    Err(match ending.outcome {
        Outcome::Infrastructure(_) => Error::Infrastructure(text),
        _ => Error::Input(text),
    })
}
