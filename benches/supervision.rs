//! What supervising a worker that does nothing costs over starting the same worker with `posix_spawn` and holding the
//! same conversation with it. Both are measured in turn; medians count.
#![allow(clippy::print_stdout, reason = "printing is its job")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use proctor_supervisor::attempt::{self, Control, Exam};
use proctor_supervisor::room::{self, RoomSpec, Rung};
use proctor_wire::{BlindDataset, PROTOCOL_VERSION, ToWorker};

const ROUNDS: usize = 300;

/// An exam without questions.
struct Nothing;

impl Exam for Nothing {
    fn count(&self) -> u32 {
        0
    }

    fn hello(&self) -> ToWorker {
        ToWorker::Hello {
            protocol: PROTOCOL_VERSION,
            datasets: 0,
            cores: 1,
            method: serde_json::json!({}),
        }
    }

    fn open(&mut self, _: u32) -> std::io::Result<BlindDataset> {
        unreachable!("there is no dataset")
    }

    fn checkpoint(&mut self, _: u32, _: Vec<f64>, _: f64) -> std::io::Result<()> {
        unreachable!("there is no dataset")
    }

    fn failed(&mut self, _: u32, _: &str, _: f64) -> std::io::Result<()> {
        unreachable!("there is no dataset")
    }
}

fn main() {
    room::stage::main_if_stage();
    let worker = Path::new(env!("CARGO_BIN_EXE_rogue-good"));
    // The stage of a real run is the big program, if it was built.
    let proctor = worker.with_file_name("proctor");
    if proctor.is_file() {
        room::use_stage_program(&proctor);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    // As a run does: what the machine gives is tried out once, before the first attempt.
    let best = room::probe().best();
    let mut bare = Vec::new();
    let mut supervised = Vec::new();
    let mut isolation = String::new();
    for _ in 0..ROUNDS {
        bare.push(spawn_alone(worker));
        let (wall, rung) = spawn_in_a_room(worker, folder.path(), best);
        supervised.push(wall);
        isolation = rung;
    }
    let (bare, supervised) = (median(bare), median(supervised));
    let milliseconds = |wall: Duration| wall.as_secs_f64() * 1e3;
    println!(
        "median of {ROUNDS}: alone {:.2} ms, in a room of rung {isolation} {:.2} ms, more by {:.2} ms (goal: at most 3)",
        milliseconds(bare),
        milliseconds(supervised),
        milliseconds(supervised) - milliseconds(bare),
    );
}

fn spawn_alone(worker: &Path) -> Duration {
    let started = Instant::now();
    let mut child = Command::new(worker)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the worker starts");
    let mut input = child.stdin.take().expect("a pipe");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    for message in [Nothing.hello(), ToWorker::Finish {}] {
        let line = serde_json::to_string(&message).expect("a message");
        writeln!(input, "{line}").expect("the worker reads");
        output.next().expect("an answer").expect("an answer");
    }
    assert!(child.wait().expect("the worker ends").success());
    started.elapsed()
}

fn spawn_in_a_room(worker: &Path, folder: &Path, best: Option<Rung>) -> (Duration, String) {
    let scratch = folder.join("scratch");
    let spec = RoomSpec {
        env: room::environment(&scratch, &[]),
        containment: best,
        ..RoomSpec::new(vec![worker.into()], scratch, folder.join("stderr"), "bench")
    };
    let control = Control::new().expect("a control");
    let started = Instant::now();
    let ending = attempt::run(&spec, Duration::from_secs(10), &mut Nothing, &control);
    let wall = started.elapsed();
    assert!(ending.outcome.succeeded(), "{:?}", ending.outcome);
    let rung = ending
        .isolation
        .containment
        .map_or("none", |rung| rung.name());
    (wall, rung.to_owned())
}

fn median(mut walls: Vec<Duration>) -> Duration {
    walls.sort_unstable();
    walls[walls.len() / 2]
}
