//! What a million scores cost on the wire, in CPU seconds of both sides: written as a worker writes them, cut into lines
//! and read as the supervisor reads them.
#![allow(clippy::print_stdout, reason = "printing is its job")]

use std::io::{Read, Write};
use std::time::Instant;

use proctor_wire::FromWorker;
use proctor_wire::limits::SCORE_BATCH;
use proctor_wire::line::LineBuffer;

const SCORES: usize = 1_000_000;

fn main() {
    // Cosines of a walk around the circle: doubles with all their digits.
    let scores: Vec<f64> = (0..SCORES).map(|i| (i as f64).cos().abs()).collect();
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let started = cpu_seconds();
        let wall = Instant::now();
        let received = through_a_pipe(&scores);
        let cost = cpu_seconds() - started;
        assert_eq!(received, scores, "every bit arrives");
        best = best.min(cost);
        println!(
            "{SCORES} scores: {cost:.3} s CPU, {:.3} s wall",
            wall.elapsed().as_secs_f64()
        );
    }
    println!("best: {best:.3} s CPU of both sides (goal: at most 0.25)");
}

fn through_a_pipe(scores: &[f64]) -> Vec<f64> {
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut writer = std::io::BufWriter::with_capacity(1 << 16, writer);
            for (batch, values) in scores.chunks(SCORE_BATCH).enumerate() {
                let message = FromWorker::Scores {
                    start: (batch * SCORE_BATCH) as u64,
                    values: values.to_vec(),
                };
                serde_json::to_writer(&mut writer, &message).expect("the reader is there");
                writer.write_all(b"\n").expect("the reader is there");
            }
        });
        let mut received = Vec::with_capacity(scores.len());
        let mut lines = LineBuffer::new();
        let mut bytes = vec![0; 1 << 16];
        loop {
            let count = reader.read(&mut bytes).expect("the pipe can be read");
            if count == 0 {
                break received;
            }
            lines.push(&bytes[..count]);
            while let Some(line) = lines.next_line().expect("lines are short") {
                match FromWorker::parse(line).expect("a message") {
                    FromWorker::Scores { values, .. } => received.extend(values),
                    other => panic!("unexpected {other:?}"),
                }
            }
        }
    })
}

/// User and system time of this process.
fn cpu_seconds() -> f64 {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("usage can be read");
    let microseconds =
        usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    microseconds as f64 / 1e6
}
