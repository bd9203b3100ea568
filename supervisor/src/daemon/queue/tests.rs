use super::*;
use crate::daemon::view::RunState;
use std::path::Path;
use std::sync::mpsc::Receiver;

/// Conducts nothing, but tells which run it was given and ends it as it is told.
struct Puppet {
    given: Mutex<Sender<(u64, Vec<usize>)>>,
    ends: Mutex<Receiver<Option<Report>>>,
}

impl Conductor for Puppet {
    fn conduct(&self, job: &Job) -> Report {
        let given = (job.id, job.cores.clone());
        self.given.lock().unwrap().send(given).unwrap();
        // Whoever is first takes the next ending: these tests run one at a time.
        let end = self.ends.lock().unwrap().recv().unwrap();
        end.expect("this run is to break down")
    }
}

struct Stage {
    queue: Arc<Queue>,
    given: Receiver<(u64, Vec<usize>)>,
    ends: Sender<Option<Report>>,
}

const BOUND: Duration = Duration::from_secs(30);

impl Stage {
    fn open(root: &Path, cores: &[usize]) -> Self {
        let state = StateDir::open(root).unwrap();
        let found = state.find().unwrap();
        let (given_in, given) = channel();
        let (ends, ends_out) = channel();
        let puppet = Puppet {
            given: Mutex::new(given_in),
            ends: Mutex::new(ends_out),
        };
        let queue = Queue::new(state, found, cores, Box::new(puppet));
        queue.begin().unwrap();
        Self { queue, given, ends }
    }

    fn add(&self, priority: i32) -> u64 {
        let id = self.queue.next_id();
        let submitted = Submitted {
            benchmark_id: "b".into(),
            protocol_id: "p".into(),
            protocol_file: "/p".into(),
            methods_file: "/m".into(),
            methods: 3,
            priority,
            exclusive: false,
            cores: 1,
            submitted_utc: now_utc(),
        };
        self.queue.add(id, submitted).unwrap();
        id
    }

    fn next(&self) -> u64 {
        self.given.recv_timeout(BOUND).unwrap().0
    }

    fn end(&self, unfinished: bool) {
        self.ends.send(Some(report(unfinished))).unwrap();
    }

    /// Waits for the threads that still know the queue, so that another can be opened.
    fn close(self) {
        let deadline = Instant::now() + BOUND;
        while Arc::strong_count(&self.queue) > 1 {
            assert!(Instant::now() < deadline, "a thread keeps the queue");
            std::thread::yield_now();
        }
    }

    fn wait(&self, id: u64, state: RunState) -> RunSummary {
        let deadline = Instant::now() + BOUND;
        loop {
            let summary = self.queue.find(id).unwrap().summary;
            if summary.state == state {
                return summary;
            }
            assert!(Instant::now() < deadline, "{summary:?}");
            std::thread::yield_now();
        }
    }
}

fn report(unfinished: bool) -> Report {
    Report {
        exit: Exit::Negative,
        bundle: None,
        sentence: "as told".into(),
        methods: Counts {
            total: 3,
            running: 0,
            ended: 3,
            failed: 1,
            without_result: 0,
        },
        unfinished,
    }
}

#[test]
fn runs_go_one_after_the_other_and_each_step_is_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage::open(folder.path(), &[7]);
    assert_eq!((stage.add(0), stage.add(0), stage.add(5)), (1, 2, 3));
    assert_eq!(stage.next(), 1);
    let board = stage.queue.board();
    assert_eq!((board.queued, board.ended), (2, 0));
    let line: Vec<u64> = board.next.iter().map(|run| run.id).collect();
    assert_eq!(line, [3, 2]);
    assert_eq!(board.next[1].position, Some(2));
    assert!(board.free_cores.is_empty());
    let on_disk = |name: &str| folder.path().join(name).exists();
    assert!(on_disk("queue/00000001.json") && on_disk("queue/00000003.json"));
    stage.end(false);
    assert_eq!(stage.next(), 3);
    let ended = stage.wait(1, RunState::Ended);
    assert_eq!((ended.exit_code, ended.methods.failed), (Some(1), 1));
    assert!(on_disk("ended/00000001.json") && !on_disk("queue/00000001.json"));
    stage.end(false);
    assert_eq!(stage.next(), 2);
    stage.end(false);
    stage.wait(2, RunState::Ended);
    let (runs, next) = stage.queue.page(None, None, 2);
    assert_eq!(runs.iter().map(|run| run.id).collect::<Vec<_>>(), [3, 2]);
    assert_eq!(next, Some(2));
    let (runs, next) = stage.queue.page(Some(RunState::Ended), next, 2);
    assert_eq!((runs.len(), next), (1, None));
    assert!(
        stage
            .queue
            .page(Some(RunState::Queued), None, 9)
            .0
            .is_empty()
    );
}

#[test]
fn a_run_that_was_cut_off_comes_first_with_the_next_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage::open(folder.path(), &[0]);
    stage.add(0);
    stage.add(9);
    assert_eq!(stage.next(), 1);
    stage.queue.drain();
    let late = Submitted {
        benchmark_id: "b".into(),
        protocol_id: "p".into(),
        protocol_file: "/p".into(),
        methods_file: "/m".into(),
        methods: 1,
        priority: 0,
        exclusive: false,
        cores: 1,
        submitted_utc: now_utc(),
    };
    assert!(matches!(
        stage.queue.add(3, late),
        Err(QueueError::Stopping)
    ));
    assert!(!stage.queue.wait_idle(Duration::ZERO));
    stage.end(true);
    assert!(stage.queue.wait_idle(BOUND));
    assert_eq!(stage.queue.board().queued, 2);
    stage.close();
    let stage = Stage::open(folder.path(), &[0]);
    assert_eq!(stage.next(), 1);
    stage.end(false);
    assert_eq!(stage.next(), 2);
    stage.end(false);
    stage.wait(2, RunState::Ended);
    assert_eq!(stage.queue.next_id(), 3);
}

#[test]
fn a_wish_to_cancel_outlives_the_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage::open(folder.path(), &[0]);
    let (first, second) = (stage.add(0), stage.add(0));
    assert_eq!(stage.next(), first);
    let one = [(1, "the method".to_owned())];
    stage.queue.cancel(first, &one).unwrap();
    stage.queue.cancel(first, &one).unwrap();
    let over = stage.queue.cancel(second, &[]).unwrap();
    assert_eq!((over.state, over.exit_code), (RunState::Ended, Some(130)));
    assert!(matches!(
        stage.queue.cancel(second, &[]),
        Err(QueueError::Over(2))
    ));
    assert!(matches!(
        stage.queue.cancel(99, &[]),
        Err(QueueError::Unknown(99))
    ));
    stage.queue.drain();
    stage.end(true);
    assert!(stage.queue.wait_idle(BOUND));
    stage.close();
    let found = StateDir::open(folder.path()).unwrap().find().unwrap();
    assert_eq!(found.queue[0].cancelled.methods, ["the method"]);
    assert_eq!(found.ended, [second]);
}

#[test]
fn a_breakdown_costs_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage::open(folder.path(), &[0]);
    stage.add(0);
    assert_eq!(stage.next(), 1);
    stage.ends.send(None).unwrap();
    let ended = stage.wait(1, RunState::Ended);
    assert_eq!(ended.exit_code, Some(3));
    assert!(ended.sentence.contains("bug in proctor"), "{ended:?}");
}

#[test]
fn an_end_that_cannot_be_written_is_written_later() {
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage::open(folder.path(), &[0]);
    stage.add(0);
    assert_eq!(stage.next(), 1);
    let place = folder.path().join("ended");
    std::fs::remove_dir(&place).unwrap();
    std::fs::write(&place, "in the way").unwrap();
    stage.end(false);
    stage.wait(1, RunState::Ended);
    stage.queue.save();
    assert!(folder.path().join("queue/00000001.json").exists());
    std::fs::remove_file(&place).unwrap();
    std::fs::create_dir(&place).unwrap();
    stage.queue.save();
    assert_eq!(stage.queue.state().ended(1).unwrap().id, 1);
    assert!(!folder.path().join("queue/00000001.json").exists());
}
