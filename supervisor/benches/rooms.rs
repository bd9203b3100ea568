//! What a room costs and how fast it ends.
//!
//! A worker with nothing to do, under each rung and with each protection, paired with the same worker started by
//! `posix_spawn`; how late the kill at a deadline is; how long a tree of 200 processes takes to be gone; what floods do to
//! the supervisor and to a good worker beside them.
//!
//! `cargo bench -p proctor-supervisor --bench rooms [-- [--stage PROGRAM] [ROUNDS]]`. The stage is `proctor`, as in a run,
//! unless another one is named. Variants take turns within one process, so that a busy machine hits all alike; medians are
//! told. `chrt -f 10` in front keeps other programs out.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::io::{self, BufRead, Read, Write, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use proctor_protocol::outcome::Outcome;
use proctor_supervisor::attempt::{self, Control, Exam};
use proctor_supervisor::room::{self, Confinement, Limits, RoomSpec, Rung};
use proctor_wire::blind::BlindItems;
use proctor_wire::limits::SCORE_BATCH;
use proctor_wire::{BlindDataset, FromWorker, PROTOCOL_VERSION, ToWorker};

const WORKER: &str = "--worker";
const SLEEPER: &str = "--sleeper";
const TREE_WORD: &str = "--tree";
const FLOOD_STDOUT: &str = "--flood-stdout";
const FLOOD_STDERR: &str = "--flood-stderr";
/// Processes of a tree.
const TREE: usize = 200;
/// Deadlines that are looked at.
const DEADLINES: usize = 200;
/// Floods at a time.
const FLOODS: usize = 8;
/// What a supervisor has to itself between two rooms; records that are made durable take as long.
const IDLE: Duration = Duration::from_millis(5);
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

fn supervised(rung: Rung, which: usize, directory: &Path) -> (Duration, Duration) {
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

/// Sleeps for ever.
fn sleeper() {
    loop {
        std::thread::park();
    }
}

/// Starts so many processes that sleep, and sleeps as well.
#[expect(clippy::zombie_processes, reason = "they live as long as the room")]
fn tree() {
    for _ in 0..TREE {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let _ = child.arg(SLEEPER).stdout(Stdio::null()).spawn().unwrap();
    }
    println!("grown");
    sleeper();
}

/// Writes a gigabyte without a line end.
fn flood(to: &mut dyn Write) {
    let block = vec![b'x'; 1 << 20];
    for _ in 0..1 << 10 {
        if to.write_all(&block).is_err() {
            return;
        }
    }
}

/// A room for this program, started with this word, with every protection.
fn room(word: &str, directory: &Path) -> RoomSpec {
    let exe = std::env::current_exe().unwrap();
    let mut spec = RoomSpec::new(
        vec![exe.into(), word.into()],
        directory.join("scratch"),
        directory.join("stderr"),
        "bench",
    );
    spec.limits = Limits {
        memory_bytes: Some(1 << 30),
        processes: Some(1000),
        scratch_bytes: Some(1 << 30),
        output_bytes: None,
    };
    spec
}

/// Seconds from the deadline to the kill, of workers that sleep; the machine is as it is.
fn deadlines(rung: Rung, directory: &Path) {
    let mut delays: Vec<f64> = (0..DEADLINES)
        .map(|_| {
            let mut spec = room(SLEEPER, directory);
            spec.containment = Some(rung);
            let control = Control::new().unwrap();
            let ending = attempt::run(&spec, Duration::from_millis(20), &mut Nothing, &control);
            assert_eq!(ending.outcome, Outcome::Timeout);
            ending.facts.kill_delay_seconds.unwrap() * 1e3
        })
        .collect();
    delays.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| delays[((delays.len() - 1) as f64 * share) as usize];
    println!(
        "{rung}: from the deadline to the kill: median {:.3} ms, p99 {:.3} ms, most {:.3} ms of {DEADLINES} (goal: p99 20)",
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

/// How long after the deadline a tree is gone.
fn trees(rung: Rung, directory: &Path) {
    let mut gone: Vec<Duration> = (0..10)
        .map(|_| {
            let mut spec = room(TREE_WORD, directory);
            spec.containment = Some(rung);
            let control = Control::new().unwrap();
            let ending = attempt::run(&spec, Duration::from_secs(1), &mut Nothing, &control);
            // It says no hello, only that the tree is grown; that is one broken line.
            assert!(
                matches!(ending.outcome, Outcome::ProtocolError(_)),
                "{:?}",
                ending.outcome
            );
            assert!(ending.facts.room_empty);
            Duration::from_secs_f64(ending.facts.emptying_seconds.unwrap())
        })
        .collect();
    let most = gone.iter().max().unwrap().as_secs_f64() * 1e3;
    println!(
        "{rung}: {TREE} processes gone after {:.1} ms, at most {most:.1} ms of 10 (goal: 150)",
        median(&mut gone)
    );
}

/// Eight floods at a time and a good worker beside them, on a core of its own where there are two.
fn floods(rung: Rung, directory: &Path) {
    let cores: Vec<usize> = (0..std::thread::available_parallelism().unwrap().get()).collect();
    let (last, others) = cores.split_last().unwrap();
    let others = if others.is_empty() {
        cores.clone()
    } else {
        others.to_vec()
    };
    let attempt = |word: &str, cores: &[usize], name: &str, exam: &mut dyn Exam| {
        let directory = directory.join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let mut spec = room(word, &directory);
        spec.containment = Some(rung);
        spec.cores = cores.to_vec();
        attempt::run(
            &spec,
            Duration::from_mins(2),
            exam,
            &Control::new().unwrap(),
        )
    };
    let good = || {
        let ending = attempt(TALKER, &[*last], "good", &mut Million);
        assert_eq!(ending.outcome, Outcome::Completed);
        ending.wall_seconds
    };
    good();
    let solo = (0..5).map(|_| good()).fold(f64::INFINITY, f64::min);
    for word in [FLOOD_STDOUT, FLOOD_STDERR] {
        // Once more, so that what the allocator keeps is there.
        let before = peak_kib();
        let (beside, bytes) = std::thread::scope(|scope| {
            let floods: Vec<_> = (0..FLOODS)
                .map(|number| {
                    let (attempt, others) = (&attempt, &others);
                    scope.spawn(move || {
                        let name = format!("flood-{number}");
                        let facts = attempt(word, others, &name, &mut Nothing).facts;
                        facts.stdout_bytes + facts.stderr_bytes
                    })
                })
                .collect();
            let beside = good();
            let bytes: u64 = floods.into_iter().map(|flood| flood.join().unwrap()).sum();
            (beside, bytes)
        });
        println!(
            "{rung}: {FLOODS} floods ({word}), {} MiB read: the supervisor grew by {:.1} MiB (goal: 8); a good worker took {:.2} times its time alone (goal: 2)",
            bytes >> 20,
            (peak_kib() - before) as f64 / 1024.0,
            beside / solo
        );
    }
}

/// The most memory this process had so far, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.unwrap().split_whitespace().next().unwrap();
    number.parse().unwrap()
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

fn main() {
    room::stage::main_if_stage();
    let mut arguments = std::env::args().skip(1).filter(|word| word != "--bench");
    let mut stage: PathBuf = env!("CARGO_BIN_EXE_proctor").into();
    let mut rounds = 100;
    while let Some(word) = arguments.next() {
        match word.as_str() {
            WORKER => return worker(),
            TALKER => return talker(),
            SLEEPER => return sleeper(),
            TREE_WORD => return tree(),
            FLOOD_STDOUT => return flood(&mut stdout().lock()),
            FLOOD_STDERR => return flood(&mut io::stderr().lock()),
            "--stage" => stage = arguments.next().expect("a program").into(),
            number => rounds = number.parse().expect("a number of rounds"),
        }
    }
    room::use_stage_program(&stage);
    println!("stage: {}", stage.display());
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path();
    let probe = room::probe();
    let rungs: Vec<Rung> = Rung::ALL
        .into_iter()
        .filter(|rung| probe.missing(*rung).is_none())
        .collect();
    costs(&rungs, rounds, directory);
    // K0 promises nothing.
    for rung in rungs.into_iter().filter(|rung| *rung != Rung::K0) {
        deadlines(rung, directory);
        trees(rung, directory);
    }
    floods(probe.best().expect("a rung"), directory);
}

/// The cost of a worker that does nothing. Each is measured as in a run of several methods: a room was there before, and
/// the supervisor had a moment for itself.
fn costs(rungs: &[Rung], rounds: usize, directory: &Path) {
    let everything = PROTECTIONS.len() - 1;
    let mut spawn = Vec::new();
    let mut whole: Vec<Vec<Duration>> = vec![Vec::new(); rungs.len()];
    let mut verdict: Vec<Vec<Duration>> = vec![Vec::new(); rungs.len()];
    let mut parts: Vec<Vec<Duration>> = vec![Vec::new(); PROTECTIONS.len()];
    let mut unprepared = Vec::new();
    let measured = |rung, which| {
        supervised(rung, which, directory);
        std::thread::sleep(IDLE);
        supervised(rung, which, directory)
    };
    for _ in 0..rounds {
        std::thread::sleep(IDLE);
        spawn.push(bare());
        for (which, times) in parts.iter_mut().enumerate() {
            times.push(measured(rungs[0], which).0);
        }
        for (at, rung) in rungs.iter().enumerate() {
            let (took, until_verdict) = measured(*rung, everything);
            whole[at].push(took);
            verdict[at].push(until_verdict);
        }
        // A room of another kind was there before, so nothing fits.
        supervised(rungs[0], 0, directory);
        std::thread::sleep(IDLE);
        unprepared.push(supervised(rungs[0], everything, directory).0);
    }
    let base = median(&mut spawn);
    println!("posix_spawn: {base:.3} ms (median of {rounds})");
    for (at, rung) in rungs.iter().enumerate() {
        let took = median(&mut whole[at]);
        println!(
            "{rung} with everything: {took:.3} ms, added {:.3} ms; from spawn to verdict {:.3} ms",
            took - base,
            median(&mut verdict[at])
        );
    }
    println!(
        "{} with everything and no stage prepared: added {:.3} ms",
        rungs[0],
        median(&mut unprepared) - base
    );
    for (which, times) in parts.iter_mut().enumerate() {
        println!(
            "{} with {}: added {:.3} ms",
            rungs[0],
            PROTECTIONS[which],
            median(times) - base
        );
    }
}
