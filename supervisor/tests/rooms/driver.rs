//! A supervisor in a process of its own: one attempt, told as one line of JSON.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_protocol::canonical;
use proctor_supervisor::attempt::{self, Control, Exam};
use proctor_supervisor::room::{RoomSpec, Rung};
use proctor_wire::blind::BlindItems;
use proctor_wire::{BlindDataset, ToWorker};

use crate::oracle::MARK;
use crate::workers;

/// First argument of a driver.
pub(crate) const WORD: &str = "--driver";

/// Two datasets: two pairs, and one query with three documents.
#[derive(Default)]
pub(crate) struct TwoDatasets {
    /// What was stored, by dataset.
    pub(crate) stored: Vec<(u32, Vec<f64>)>,
}

impl Exam for TwoDatasets {
    fn count(&self) -> u32 {
        2
    }

    fn hello(&self) -> ToWorker {
        ToWorker::Hello {
            protocol: proctor_wire::PROTOCOL_VERSION,
            datasets: 2,
            cores: 1,
            method: serde_json::json!({}),
        }
    }

    fn open(&mut self, dataset: u32) -> io::Result<BlindDataset> {
        let items = if dataset == 0 {
            BlindItems::Pairs {
                left: vec![0, 1],
                right: vec![2, 3],
            }
        } else {
            BlindItems::Matrix { queries: 1 }
        };
        Ok(BlindDataset {
            texts: vec!["text".into(); 4],
            items,
            code_language: None,
        })
    }

    fn checkpoint(&mut self, dataset: u32, scores: Vec<f64>, elapsed: f64) -> io::Result<()> {
        assert!((0.0..60.0).contains(&elapsed), "{elapsed}");
        self.stored.push((dataset, scores));
        Ok(())
    }

    fn failed(&mut self, _dataset: u32, _error: &str, _elapsed: f64) -> io::Result<()> {
        Ok(())
    }
}

/// A room for one of the test workers.
pub(crate) fn spec(rung: Option<Rung>, worker: &str, directory: &Path) -> RoomSpec {
    let exe = std::env::current_exe().unwrap();
    let mut spec = RoomSpec::new(
        vec![exe.into(), workers::WORD.into(), worker.into()],
        directory.join("scratch"),
        directory.join("stderr"),
        "test-run",
    );
    spec.containment = rung;
    spec.env = vec![("SUPERVISOR".into(), std::process::id().to_string().into())];
    if let Some(mark) = std::env::var_os(MARK) {
        spec.env.push((MARK.into(), mark));
    }
    spec
}

/// `--driver RUNG BUDGET_MS GRACE_MS DIRECTORY WORKER...`: runs one attempt for each worker named, at the same time,
/// and prints a line for each.
pub(crate) fn main(arguments: &[String]) {
    let [rung, budget, grace, directory, workers @ ..] = arguments else {
        panic!("a driver takes rung, budget, grace, directory and workers");
    };
    let rung: Rung = rung.parse().unwrap();
    let millis = |text: &str| Duration::from_millis(text.parse().unwrap());
    let threads: Vec<_> = workers
        .iter()
        .enumerate()
        .map(|(number, worker)| {
            let directory = PathBuf::from(directory).join(number.to_string());
            std::fs::create_dir_all(&directory).unwrap();
            let mut spec = spec(Some(rung), worker, &directory);
            spec.grace = millis(grace);
            let budget = millis(budget);
            std::thread::spawn(move || {
                let mut exam = TwoDatasets::default();
                let ending = attempt::run(&spec, budget, &mut exam, &Control::new().unwrap());
                print(&ending, &exam);
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// CPU time of this process alone, in seconds.
fn own_cpu() -> f64 {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
}

fn print(ending: &attempt::Ending, exam: &TwoDatasets) {
    let value = |value| {
        let text = canonical::canonical(&value);
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|text| text.trim().strip_suffix(" kB"))
        .and_then(|text| text.trim().parse().ok())
        .unwrap();
    println!(
        "{}",
        serde_json::json!({
            "outcome": ending.outcome.to_string(),
            "facts": value(ending.facts.to_value()),
            "isolation": value(ending.isolation.to_value()),
            "wall_seconds": ending.wall_seconds,
            "cpu_seconds": ending.cpu_seconds,
            "cpu_exact": ending.cpu_exact,
            "status": ending.wait_status.map(|status| value(status.to_value())),
            "stored": exam.stored,
            "peak_kib": peak,
            "own_cpu_seconds": own_cpu(),
        })
    );
}
