//! What a room costs: a worker with nothing to do, under each rung, paired with the same worker started by `posix_spawn`.
//!
//! `cargo bench -p proctor-supervisor --bench rooms [-- ROUNDS]`. Variants take turns within one process, so that a busy
//! machine hits all alike; medians are told.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::io::{self, BufRead, Read, Write, stdin, stdout};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use proctor_protocol::outcome::Outcome;
use proctor_supervisor::attempt::{self, Control, Exam};
use proctor_supervisor::room::{Confinement, Limits, RoomSpec, Rung, stage};
use proctor_wire::blind::BlindItems;
use proctor_wire::limits::SCORE_BATCH;
use proctor_wire::{BlindDataset, FromWorker, PROTOCOL_VERSION, ToWorker};

const WORKER: &str = "--worker";
const HELLO: &str = "{\"type\":\"hello\",\"protocol\":1,\"worker\":\"no-op\"}\n";
const DONE: &str = "{\"type\":\"done\"}\n";

/// No dataset at all: hello, finish, done.
struct Nothing;

impl Exam for Nothing {
    fn count(&self) -> u32 {
        0
    }

    fn hello(&self) -> ToWorker {
        ToWorker::Hello {
            protocol: PROTOCOL_VERSION,
            datasets: self.count(),
            cores: 1,
            method: serde_json::json!({}),
        }
    }

    fn open(&mut self, _: u32) -> io::Result<BlindDataset> {
        unreachable!("there is no dataset")
    }

    fn checkpoint(&mut self, _: u32, _: Vec<f64>, _: f64) -> io::Result<()> {
        Ok(())
    }

    fn failed(&mut self, _: u32, _: &str, _: f64) -> io::Result<()> {
        Ok(())
    }
}

fn worker() {
    let mut lines = stdin().lock().lines();
    let mut next = || lines.next().map(Result::unwrap);
    next();
    stdout().write_all(HELLO.as_bytes()).unwrap();
    stdout().flush().unwrap();
    if next().is_some() {
        stdout().write_all(DONE.as_bytes()).unwrap();
    }
}

/// The same conversation with nothing around it.
fn bare() -> Duration {
    let begun = Instant::now();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg(WORKER)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"{\"type\":\"hello\"}\n").unwrap();
    input.write_all(b"{\"type\":\"finish\"}\n").unwrap();
    drop(input);
    let mut said = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(child.wait().unwrap().success());
    begun.elapsed()
}

/// One protection alone, by the place in this list; the first has none, the last all of them.
const PROTECTIONS: [&str; 7] = [
    "nothing",
    "network",
    "file system",
    "system calls",
    "own user",
    "limits",
    "everything",
];

fn protect(spec: &mut RoomSpec, which: usize) {
    let all = which == PROTECTIONS.len() - 1;
    spec.confinement = Confinement {
        network: all || which == 1,
        file_system: all || which == 2,
        system_calls: all || which == 3,
        user: all || which == 4,
    };
    let limited = all || which == 5;
    spec.limits = Limits {
        memory_bytes: limited.then_some(1 << 30),
        processes: limited.then_some(1000),
        scratch_bytes: (all || which == 2).then_some(1 << 30),
        output_bytes: limited.then_some(1 << 30),
    };
}

fn supervised(rung: Rung, which: usize, directory: &std::path::Path) -> (Duration, Duration) {
    let exe = std::env::current_exe().unwrap();
    let mut spec = RoomSpec::new(
        vec![exe.into(), WORKER.into()],
        directory.join("scratch"),
        directory.join("stderr"),
        "bench",
    );
    spec.containment = Some(rung);
    protect(&mut spec, which);
    let control = Control::new().unwrap();
    let begun = Instant::now();
    let ending = attempt::run(&spec, Duration::from_mins(1), &mut Nothing, &control);
    let took = begun.elapsed();
    assert_eq!(ending.outcome, Outcome::Completed);
    (took, Duration::from_secs_f64(ending.wall_seconds))
}

/// A worker that says a million scores, as fast as it can.
fn talker() {
    let mut lines = stdin().lock().lines();
    let mut out = io::BufWriter::new(stdout().lock());
    out.write_all(HELLO.as_bytes()).unwrap();
    out.flush().unwrap();
    while let Some(line) = lines.next().map(Result::unwrap) {
        if line.contains("\"type\":\"finish\"") {
            out.write_all(DONE.as_bytes()).unwrap();
            return out.flush().unwrap();
        }
        if !line.contains("\"type\":\"score\"") {
            continue;
        }
        for start in (0..SCORES).step_by(SCORE_BATCH) {
            let end = (start + SCORE_BATCH).min(SCORES);
            let message = FromWorker::Scores {
                start: start as u64,
                values: (start..end).map(|item| 1.0 / (item + 3) as f64).collect(),
            };
            serde_json::to_writer(&mut out, &message).unwrap();
            out.write_all(b"\n").unwrap();
        }
        out.write_all(b"{\"type\":\"dataset_done\",\"dataset\":0}\n")
            .unwrap();
        out.flush().unwrap();
    }
}

const TALKER: &str = "--talker";
const SCORES: usize = 1_000_000;

/// One dataset of a million pairs over two texts.
struct Million;

impl Exam for Million {
    fn count(&self) -> u32 {
        1
    }

    fn hello(&self) -> ToWorker {
        Nothing.hello()
    }

    fn open(&mut self, _: u32) -> io::Result<BlindDataset> {
        Ok(BlindDataset {
            texts: vec!["text".into(); 2],
            items: BlindItems::Pairs {
                left: vec![0; SCORES],
                right: vec![1; SCORES],
            },
            code_language: None,
        })
    }

    fn checkpoint(&mut self, _: u32, scores: Vec<f64>, _: f64) -> io::Result<()> {
        assert_eq!(scores.len(), SCORES);
        assert_eq!(scores[1], 0.25);
        Ok(())
    }

    fn failed(&mut self, _: u32, _: &str, _: f64) -> io::Result<()> {
        Ok(())
    }
}

/// CPU seconds of this process.
fn own_cpu() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let total = usage.user_time() + usage.system_time();
    total.num_microseconds() as f64 / 1e6
}

fn million(rung: Rung, directory: &std::path::Path) {
    let exe = std::env::current_exe().unwrap();
    let mut spec = RoomSpec::new(
        vec![exe.into(), TALKER.into()],
        directory.join("scratch"),
        directory.join("stderr"),
        "bench",
    );
    spec.containment = Some(rung);
    let control = Control::new().unwrap();
    let before = own_cpu();
    let ending = attempt::run(&spec, Duration::from_mins(1), &mut Million, &control);
    let own = own_cpu() - before;
    assert_eq!(ending.outcome, Outcome::Completed);
    println!(
        "a million scores: supervisor {own:.3} s CPU, room {:.3} s CPU, {:.3} s from spawn to verdict",
        ending.cpu_seconds.unwrap_or(f64::NAN),
        ending.wall_seconds
    );
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

fn main() {
    stage::main_if_stage();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == WORKER) {
        return worker();
    }
    if arguments.first().is_some_and(|word| word == TALKER) {
        return talker();
    }
    let rounds = arguments
        .iter()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(200);
    let directory = tempfile::tempdir().unwrap();
    let probe = proctor_supervisor::room::probe();
    let rungs: Vec<Rung> = Rung::ALL
        .into_iter()
        .filter(|rung| probe.missing(*rung).is_none())
        .collect();
    let mut spawn = Vec::new();
    let mut whole: Vec<Vec<Duration>> = vec![Vec::new(); rungs.len()];
    let mut verdict: Vec<Vec<Duration>> = vec![Vec::new(); rungs.len()];
    let mut parts: Vec<Vec<Duration>> = vec![Vec::new(); PROTECTIONS.len()];
    for _ in 0..rounds {
        spawn.push(bare());
        for (which, times) in parts.iter_mut().enumerate() {
            times.push(supervised(rungs[0], which, directory.path()).0);
        }
        for (at, rung) in rungs.iter().enumerate() {
            let everything = PROTECTIONS.len() - 1;
            let (took, until_verdict) = supervised(*rung, everything, directory.path());
            whole[at].push(took);
            verdict[at].push(until_verdict);
        }
    }
    let base = median(&mut spawn);
    println!("posix_spawn: {base:.3} ms (median of {rounds})");
    for (at, rung) in rungs.iter().enumerate() {
        let took = median(&mut whole[at]);
        println!(
            "{rung}: {took:.3} ms, added {:.3} ms; from spawn to verdict {:.3} ms",
            took - base,
            median(&mut verdict[at])
        );
    }
    for (which, times) in parts.iter_mut().enumerate() {
        println!(
            "{} with {}: added {:.3} ms",
            rungs[0],
            PROTECTIONS[which],
            median(times) - base
        );
    }
    for _ in 0..3 {
        million(rungs[0], directory.path());
    }
}
