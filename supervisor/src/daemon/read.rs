//! Views of a run from its files: the same reading as `proctor status`, at any time, also while the run goes on.

use super::queue::Known;
use super::remark;
use super::view::{
    AttemptView, BundleView, FileView, MachineView, MethodState, MethodView, OutcomeView, RunState,
    RunView,
};
use crate::bundle::BUNDLE_FILE;
use crate::error::Error;
use crate::measure::texts;
use crate::render::sentence::{Numbers, sentence, tail};
use crate::render::{plain, seconds};
use crate::run::{STDERR_LINES, host};
use crate::rundir::plan::{Plan, datasets, not_applicable, parts};
use crate::rundir::state::{self, Attempt, Heartbeat};
use crate::rundir::{Part, RunDir, Supervisor, regular};
use proctor_protocol::canonical::{Value, read};
use proctor_protocol::method::Method;
use proctor_protocol::outcome::Outcome;
use std::path::{Path, PathBuf};

/// The most files of a bundle that are listed.
const MOST_FILES: usize = 20_000;

/// A run in full.
///
/// # Errors
/// A record is there but cannot be used.
pub fn run_view(known: Known, run_dir: &Path, plan: &Plan) -> Result<RunView, Error> {
    let run = RunDir::new(run_dir);
    let session = own_session(&run);
    let mut degraded = plan.policy.degraded.clone();
    let methods = plan.methods.iter().enumerate();
    let methods = methods.map(|(at, method)| {
        let attempts = state::attempts(&run, &method.id)?;
        remark::add_missing(&attempts, &mut degraded);
        let mut view = method_view(plan, method, known.summary.state, session, &attempts);
        let unwanted = known.summary.cancelled || known.cancelled.contains(&method.id);
        if view.state == MethodState::Queued && unwanted {
            view.sentence = "was cancelled and will not be run".into();
        }
        // Fresher than the files.
        if let Some(pace) = known
            .paces
            .get(&at)
            .filter(|_| view.state == MethodState::Running)
        {
            view.elapsed_seconds = pace.elapsed_seconds;
            view.eta_seconds = pace.eta_seconds;
        }
        Ok::<_, Error>(view)
    });
    let methods = methods.collect::<Result<_, _>>()?;
    Ok(RunView {
        run_id: plan.run_id.clone(),
        run_dir: run_dir.display().to_string(),
        budget_seconds: plan.policy.budget_seconds,
        cores: known.cores,
        degraded,
        methods,
        bundle: bundle_view(run_dir),
        summary: known.summary,
    })
}

/// The number of the newest session of a run, when it is one of this process.
fn own_session(run: &RunDir) -> Option<u32> {
    let newest = run.sessions().ok()?.pop()?;
    (newest.supervisor == Supervisor::this()).then_some(newest.number)
}

/// One method of a run that is in this state, with all its attempts. `session` is the one of this process.
fn method_view(
    plan: &Plan,
    method: &Method,
    run: RunState,
    session: Option<u32>,
    attempts: &[Attempt],
) -> MethodView {
    let newest = state::counting(attempts);
    let parts = parts(&plan.protocol, method);
    let budget = plan.policy.budget_seconds;
    let numbers = Numbers::of(newest, &parts, budget);
    let beat = newest.and_then(|attempt| Heartbeat::read(&attempt.dir));
    // What an earlier process began does not go on, whatever it left.
    let ours = newest.is_some_and(|attempt| session == Some(attempt.id.submission));
    let outcome = match newest {
        Some(attempt) => attempt
            .terminal
            .as_ref()
            .map(|terminal| terminal.outcome.clone()),
        None => not_applicable(&plan.protocol, method).map(Outcome::NotApplicable),
    };
    let state = match (run, &outcome) {
        (_, Some(outcome)) if outcome.charged() => MethodState::Ended,
        (_, Some(Outcome::Cancelled | Outcome::Unresolved)) | (RunState::Ended, _) => {
            MethodState::Ended
        }
        (RunState::Running, None) if ours => MethodState::Running,
        // One session makes one attempt.
        (RunState::Running, Some(Outcome::Infrastructure(_))) if ours => MethodState::Ended,
        // What is ours is made good by the next session.
        _ => MethodState::Queued,
    };
    let shown = outcome.as_ref().filter(|_| state == MethodState::Ended);
    let running = beat.as_ref().filter(|_| state == MethodState::Running);
    let place = running.and_then(|beat| {
        let open = newest?
            .asked(&parts)
            .nth(usize::try_from(beat.part).ok()?)?;
        parts.iter().position(|part| *part == open)
    });
    let earlier = newest.map_or(0.0, Attempt::earlier_seconds);
    MethodView {
        name: method.name.clone(),
        id: method.id.clone(),
        state,
        outcome: shown.map(|outcome| outcome_view(outcome, numbers)),
        elapsed_seconds: running
            .map_or(numbers.wall_seconds, |beat| earlier + beat.elapsed_seconds),
        sentence: describe(
            state,
            shown,
            numbers,
            running.map(|beat| (beat, earlier)),
            place.map_or(&[][..], |place| &parts[..=place]),
        ),
        budget_seconds: budget,
        eta_seconds: None,
        dataset: place.map(|place| plan.protocol.datasets()[parts[place].dataset].name.clone()),
        datasets_done: numbers.done as u64,
        datasets_total: numbers.total as u64,
        items_done: running.map_or(0, |beat| beat.items),
        items_total: running.map_or(0, |beat| beat.total),
        cores: newest
            .and_then(|attempt| attempt.started.as_ref())
            .map_or_else(Vec::new, |started| started.cores.clone()),
        stderr: newest.map_or_else(Vec::new, |attempt| {
            tail(&attempt.stderr_log(), STDERR_LINES)
        }),
        attempts: attempts
            .iter()
            .map(|attempt| attempt_view(attempt, &parts, budget, newest))
            .collect(),
    }
}

fn outcome_view(outcome: &Outcome, numbers: Numbers) -> OutcomeView {
    OutcomeView {
        kind: outcome.kind().to_owned(),
        sentence: sentence(outcome, numbers),
        succeeded: outcome.succeeded(),
        charged: outcome.charged(),
    }
}

fn attempt_view(
    attempt: &Attempt,
    parts: &[Part],
    budget: f64,
    newest: Option<&Attempt>,
) -> AttemptView {
    let numbers = Numbers::of(Some(attempt), parts, budget);
    let terminal = attempt.terminal.as_ref();
    let so_far = || Heartbeat::read(&attempt.dir).map_or(0.0, |beat| beat.elapsed_seconds);
    AttemptView {
        id: attempt.id.to_string(),
        started_utc: attempt
            .started
            .as_ref()
            .map(|started| started.started_utc.clone()),
        ended_utc: terminal.map(|terminal| terminal.ended_utc.clone()),
        seconds: terminal.map_or_else(so_far, |terminal| terminal.wall_seconds),
        outcome: terminal.map(|terminal| outcome_view(&terminal.outcome, numbers)),
        counts: newest.is_some_and(|newest| newest.id == attempt.id),
        cores: attempt
            .started
            .as_ref()
            .map_or_else(Vec::new, |started| started.cores.clone()),
        pauses: remark::pauses(attempt),
        remarks: remark::remarks(attempt),
    }
}

fn describe(
    state: MethodState,
    outcome: Option<&Outcome>,
    numbers: Numbers,
    beat: Option<(&Heartbeat, f64)>,
    so_far: &[Part],
) -> String {
    match (state, outcome, beat) {
        (_, Some(outcome), _) => sentence(outcome, numbers),
        (MethodState::Queued, ..) => "waits for its turn".into(),
        (MethodState::Running, _, None) => "has started".into(),
        (MethodState::Running, _, Some((beat, earlier))) => format!(
            "at {} of {}: {} of {} items of dataset {} of {}",
            seconds(earlier + beat.elapsed_seconds),
            seconds(numbers.budget_seconds),
            beat.items,
            beat.total,
            datasets(so_far),
            numbers.total,
        ),
        (MethodState::Ended, None, _) => "has no result: it was not run to an end".into(),
    }
}

/// The newest bundle of a run.
fn bundle_view(run_dir: &Path) -> Option<BundleView> {
    let link = std::fs::read_link(RunDir::new(run_dir).bundle_link()).ok()?;
    let number = link.file_name()?.to_str()?.to_owned();
    let path = bundle_dir(run_dir, &number)?;
    let index = read(&regular::read(&path.join(BUNDLE_FILE)).ok()?).ok()?;
    let payload = index.get("payload").and_then(Value::as_str)?;
    let page = format!("{}.html", payload.strip_suffix(".json")?);
    let files = files_below(&path);
    Some(BundleView {
        page: Some(page).filter(|page| files.iter().any(|file| file.path == *page)),
        path: path.display().to_string(),
        number,
        files,
    })
}

/// Where the bundle of a number lies.
pub fn bundle_dir(run_dir: &Path, number: &str) -> Option<PathBuf> {
    let plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| RunDir::new(run_dir).merged_dir().join(number))
}

/// The regular files below a directory, without following links, in order of their paths.
fn files_below(root: &Path) -> Vec<FileView> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(root.join(&folder));
        for entry in entries.into_iter().flatten().flatten() {
            let path = folder.join(entry.file_name());
            let Ok(found) = entry.metadata() else {
                continue;
            };
            if found.is_dir() {
                folders.push(path);
            } else if found.is_file()
                && files.len() < MOST_FILES
                && let Some(path) = path.to_str()
            {
                files.push(FileView {
                    path: path.to_owned(),
                    bytes: found.len(),
                });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// The machine, with the cores a daemon gives out and those that are free.
pub fn machine_view(cores: &[usize], free: Vec<usize>) -> MachineView {
    let text = |path| std::fs::read_to_string(path).unwrap_or_default();
    let memory = text("/proc/meminfo");
    MachineView {
        host: plain(&host::machine().host),
        cores: cores.to_vec(),
        free_cores: free,
        load: texts::load_average(&text("/proc/loadavg")).unwrap_or_default(),
        cpu_pressure: texts::pressure(&text("/proc/pressure/cpu"))
            .ok()
            .map(|cpu| cpu.some),
        memory_total_bytes: texts::memory(&memory, "MemTotal").unwrap_or_default(),
        memory_available_bytes: texts::memory(&memory, "MemAvailable").unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::tests as written;

    #[test]
    fn seconds_of_earlier_attempts_are_counted_once() {
        let run = written::run(r#"["Levenshtein"]"#, "manifest.json");
        let plan = &run.plan;
        let method = &plan.methods[0];
        let asked = parts(&plan.protocol, method);
        run.attempt(method, 1, 1, None);
        run.attempt_after(method, 2, 1, &asked[1..], Some(Outcome::Completed));
        let attempts = state::attempts(&run.dir(), &method.id).unwrap();
        let view = method_view(plan, method, RunState::Ended, None, &attempts);
        // Half a second to the checkpoint of the first attempt, and the whole of the second.
        assert_eq!(view.elapsed_seconds, 0.5 + 3.25);
        assert_eq!(view.sentence, "completed in 3.750 s");
        let seconds: Vec<f64> = view.attempts.iter().map(|one| one.seconds).collect();
        assert_eq!(seconds, [0.0, 3.25]);
    }

    #[test]
    fn only_what_this_process_conducts_runs() {
        let run = written::run(r#"["Levenshtein"]"#, "manifest.json");
        let method = &run.plan.methods[0];
        let state = |outcome: Option<Outcome>, session| {
            run.attempt(method, 1, 0, outcome);
            let attempts = state::attempts(&run.dir(), &method.id).unwrap();
            std::fs::remove_dir_all(run.dir().attempts_dir(&method.id)).unwrap();
            method_view(&run.plan, method, RunState::Running, session, &attempts).state
        };
        assert_eq!(state(None, Some(1)), MethodState::Running);
        // It was cut off with another process, and waits to go on.
        assert_eq!(state(None, Some(2)), MethodState::Queued);
        assert_eq!(state(None, None), MethodState::Queued);
        let ours = || Some(Outcome::Infrastructure("no space".into()));
        assert_eq!(state(ours(), Some(1)), MethodState::Ended);
        assert_eq!(state(ours(), Some(2)), MethodState::Queued);
        // Nobody makes another attempt of these.
        for outcome in [Outcome::Cancelled, Outcome::Unresolved] {
            assert_eq!(state(Some(outcome), Some(2)), MethodState::Ended);
        }
    }

    #[test]
    fn the_machine_has_memory() {
        let machine = machine_view(&[0, 1], vec![1]);
        assert!(machine.memory_total_bytes > machine.memory_available_bytes);
        assert!(machine.memory_available_bytes > 1 << 20);
        assert_eq!(machine.free_cores, [1]);
    }

    #[test]
    fn files_are_listed_without_following_links() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("b/c")).unwrap();
        std::fs::write(folder.path().join("b/c/d"), "123").unwrap();
        std::fs::write(folder.path().join("a"), "").unwrap();
        std::os::unix::fs::symlink("/etc", folder.path().join("link")).unwrap();
        let files = files_below(folder.path());
        let found: Vec<(&str, u64)> = files
            .iter()
            .map(|file| (file.path.as_str(), file.bytes))
            .collect();
        assert_eq!(found, [("a", 0), ("b/c/d", 3)]);
    }

    #[test]
    fn a_bundle_is_named_by_digits_alone() {
        let run = Path::new("/run");
        assert_eq!(
            bundle_dir(run, "0001"),
            Some(PathBuf::from("/run/merged/0001"))
        );
        for bad in ["", "..", "0001/..", "a"] {
            assert_eq!(bundle_dir(run, bad), None);
        }
    }
}
