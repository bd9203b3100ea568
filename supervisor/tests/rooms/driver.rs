//! A supervisor in a process of its own: one attempt, told as one line of JSON.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_protocol::canonical;
use proctor_supervisor::attempt::{self, Control, Exam};
use proctor_supervisor::room::{self, Confinement, Limits, Means, RoomSpec, Rung};
use proctor_wire::blind::BlindItems;
use proctor_wire::{BlindDataset, ToWorker};
use serde_json::Value;

use crate::lies;
use crate::oracle::MARK;
use crate::workers;

/// First argument of a driver.
pub(crate) const WORD: &str = "--driver";

/// The variable with the options of the rooms, in JSON.
pub(crate) const OPTIONS: &str = "PROCTOR_TEST_OPTIONS";

/// Gives a room what the options ask for.
fn apply(options: &Value, spec: &mut RoomSpec) {
    let paths = |name: &str| -> Vec<PathBuf> {
        let list = options[name].as_array().into_iter().flatten();
        list.map(|path| path.as_str().unwrap().into()).collect()
    };
    spec.hidden = paths("hidden");
    spec.visible = paths("visible");
    if options["off"] == true {
        spec.confinement = Confinement {
            network: false,
            file_system: false,
            system_calls: false,
            user: false,
        };
        spec.limits = Limits {
            memory_bytes: None,
            processes: None,
            scratch_bytes: None,
            output_bytes: None,
        };
    }
    spec.confinement.file_system &= options["no_files"] != true;
    let number = |name: &str| options[name].as_u64();
    let limits = &mut spec.limits;
    limits.memory_bytes = number("memory").or(limits.memory_bytes);
    limits.processes = number("processes").map(|n| n as u32).or(limits.processes);
    limits.scratch_bytes = number("scratch").or(limits.scratch_bytes);
    limits.output_bytes = number("output").or(limits.output_bytes);
    let cores = options["cores"].as_array().into_iter().flatten();
    spec.cores = cores.map(|core| core.as_u64().unwrap() as usize).collect();
    if let Some(lie) = options["lie"].as_str() {
        spec.kernel = lies::kernel(lie);
    }
    if !options["targets"].is_null() {
        let mut targets = options["targets"].clone();
        targets["other_core"] = 1.into();
        let targets = targets.to_string();
        spec.env
            .push((crate::rogue::TARGETS.into(), targets.into()));
    }
}

fn mask(options: &Value) {
    let names = options["mask"].as_array().into_iter().flatten();
    let means: Vec<Means> = names
        .map(|name| {
            let known = Means::ALL.into_iter().find(|means| *name == means.name());
            known.unwrap_or_else(|| panic!("no means is called {name}"))
        })
        .collect();
    room::mask(&means);
}

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
    let options =
        std::env::var(OPTIONS).map_or(Value::Null, |text| serde_json::from_str(&text).unwrap());
    mask(&options);
    let millis = |text: &str| Duration::from_millis(text.parse().unwrap());
    let threads: Vec<_> = workers
        .iter()
        .enumerate()
        .map(|(number, worker)| {
            let directory = PathBuf::from(directory).join(number.to_string());
            std::fs::create_dir_all(&directory).unwrap();
            let mut spec = spec(Some(rung), worker, &directory);
            spec.grace = millis(grace);
            apply(&options, &mut spec);
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
        serde_json::from_str::<Value>(&text).unwrap()
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
            "peak_memory_bytes": ending.peak_memory_bytes,
            "cores": ending.cores,
            "status": ending.wait_status.map(|status| value(status.to_value())),
            "stored": exam.stored,
            "peak_kib": peak,
            "own_cpu_seconds": own_cpu(),
            "unkillable": ending.unkillable.iter().map(|left| left.pid).collect::<Vec<_>>(),
        })
    );
}
