//! Sessions as a library: created runs wait, several go on in one process, methods are cancelled one by one.

#![allow(clippy::print_stderr, clippy::unwrap_used)] // A test that skips says so.

use proctor_protocol::outcome::Outcome;
use proctor_supervisor::room::use_stage_program;
use proctor_supervisor::run::{
    Ended, How, Observer, RETRIES, Request, Session, Starting, Stop, create, prepare,
};
use proctor_supervisor::rundir::Plan;
use proctor_supervisor::rundir::session::Mode;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const HOW: How = How {
    mode: Mode::Continue,
    retry_failed: false,
    retries: RETRIES,
};

/// A place with a frozen benchmark, whose runs take as long as they are let.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        use_stage_program(Path::new(env!("CARGO_BIN_EXE_proctor")));
        let folder = tempfile::tempdir().unwrap();
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
        let fixtures = std::path::absolute(fixtures).unwrap();
        let limits = proctor_protocol::canonical::Limits::default();
        let manifest = fixtures.join("manifest.json");
        let mut manifest = proctor_protocol::input::read_json(&manifest, limits).unwrap();
        let policy = manifest.as_object_mut().unwrap();
        let policy = policy.get_mut("execution_policy").unwrap();
        policy
            .as_object_mut()
            .unwrap()
            .insert("max_method_seconds", 60.0);
        let protocol = proctor_protocol::freeze::freeze(&manifest, &fixtures, None).unwrap();
        std::fs::write(folder.path().join("protocol.json"), protocol.file_text()).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Creates a run of programs that say nothing for a minute; `None` where no room can be made.
    fn create(&self, name: &str, methods: usize) -> Option<Plan> {
        let list: Vec<String> = (0..methods)
            .map(|at| format!(r#"{{"name": "sleeper {at}", "command": ["sleep", "60{at}"]}}"#))
            .collect();
        std::fs::write(self.path("methods.json"), format!("[{}]", list.join(","))).unwrap();
        let prepared = prepare(&Request {
            protocol: self.path("protocol.json"),
            methods: self.path("methods.json"),
            output: self.path(name),
            jobs: 1,
            cores: None,
            only: Vec::new(),
            basename: "board".into(),
            worker: None,
            limits: proctor_protocol::frozen::ExecutionLimits::default(),
            containment: None,
            official: false,
            allow_degraded: false,
            load: None,
        });
        match prepared {
            Ok(prepared) => Some(create(&prepared, Vec::new()).unwrap()),
            Err(error) if error.to_string().contains("no room") => {
                eprintln!("skipped: {name}: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Does something when a method starts, and keeps what ended.
struct Watcher<F: FnMut(usize)> {
    on_start: F,
    started: Vec<usize>,
    ended: Vec<(usize, Outcome)>,
}

impl<F: FnMut(usize)> Watcher<F> {
    fn new(on_start: F) -> Self {
        Self {
            on_start,
            started: Vec::new(),
            ended: Vec::new(),
        }
    }
}

impl<F: FnMut(usize)> Observer for Watcher<F> {
    fn started(&mut self, starting: Starting<'_>) {
        self.started.push(starting.method);
        (self.on_start)(starting.method);
    }

    fn ended(&mut self, ended: Ended<'_>) {
        self.ended.push((ended.method, ended.outcome.clone()));
    }
}

#[test]
fn methods_are_cancelled_one_by_one_whether_they_run_or_wait() {
    let place = Place::new();
    let Some(plan) = place.create("run", 3) else {
        return;
    };
    // A created run can wait, and says so.
    let session = Session::open(&place.path("run"), HOW).unwrap();
    assert_eq!(session.number(), 1);
    assert!(
        !place.path("run/submissions").exists(),
        "opening wrote something"
    );
    let stop = Stop::new();
    let cancel = Arc::clone(&stop);
    let mut watcher = Watcher::new(move |method| {
        // The one that runs, and the last one, which waits. Then the run is stopped at the one in between.
        if method == 0 {
            cancel.cancel(2);
            cancel.cancel(0);
        } else {
            cancel.interrupt();
        }
    });
    let cores = session.own_cores().unwrap();
    let summary = session.conduct(&cores, &stop, &mut watcher).unwrap();
    assert!(summary.stopped && summary.trouble.is_none());
    assert_eq!(watcher.started, [0, 1]);
    watcher.ended.sort_by_key(|(method, _)| *method);
    assert_eq!(
        watcher.ended,
        [
            (0, Outcome::Cancelled),
            (1, Outcome::Interrupted),
            (2, Outcome::Cancelled)
        ]
    );
    let published = session.publish().unwrap();
    assert_eq!(published.exit().code(), 130);
    let outcomes: Vec<&Outcome> = published.methods.iter().map(|one| &one.outcome).collect();
    assert_eq!(
        outcomes,
        [
            &Outcome::Cancelled,
            &Outcome::Interrupted,
            &Outcome::Cancelled
        ]
    );
    // All of them are owed another attempt.
    let again = Session::open(&place.path("run"), HOW).unwrap();
    assert_eq!(again.number(), 2);
    assert!((0..plan.methods.len()).all(|method| again.assignment(method).is_some()));
    // Nobody can conduct the first session again.
    let error = session.conduct(&cores, &Stop::new(), &mut ()).unwrap_err();
    assert_eq!(error.exit().code(), 2);
}

#[test]
fn several_sessions_go_on_in_one_process_and_each_is_stopped_by_its_own() {
    let place = Place::new();
    if place.create("one", 1).is_none() {
        return;
    }
    place.create("other", 1).unwrap();
    let open = |name: &str| Session::open(&place.path(name), HOW).unwrap();
    let (one, other) = (open("one"), open("other"));
    // Sets of the planned size; where there is only one core they share it, which no result is made from here.
    let cores = one.own_cores().unwrap();
    let (stop_one, stop_other) = (Stop::new(), Stop::new());
    let (first, second) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let mut watcher = Watcher::new(|_| first.send(()).unwrap());
            let summary = other.conduct(&cores, &stop_other, &mut watcher).unwrap();
            (summary.stopped, watcher.ended)
        });
        second.recv().unwrap();
        // The other goes on while this one is opened a second time, refused, run and stopped.
        let error = Session::open(&place.path("other"), HOW).unwrap_err();
        assert!(error.to_string().contains("by somebody else"), "{error}");
        let stop = Arc::clone(&stop_one);
        let mut watcher = Watcher::new(move |_| stop.cancel_all());
        one.conduct(&cores, &stop_one, &mut watcher).unwrap();
        assert_eq!(watcher.ended, [(0, Outcome::Cancelled)]);
        assert!(!stop_other.asked());
        stop_other.kill();
        let (stopped, ended) = running.join().unwrap();
        assert!(stopped);
        assert_eq!(ended, [(0, Outcome::Interrupted)]);
    });
}

#[test]
fn core_sets_of_another_size_are_refused_before_anything_is_written() {
    let place = Place::new();
    let Some(plan) = place.create("run", 1) else {
        return;
    };
    let session = Session::open(&place.path("run"), HOW).unwrap();
    let wrong = [vec![0; plan.cores_each() + 1]];
    for cores in [&wrong[..], &[]] {
        let error = session.conduct(cores, &Stop::new(), &mut ()).unwrap_err();
        assert_eq!(error.exit().code(), 2);
    }
    assert!(!place.path("run/submissions").exists());
}
