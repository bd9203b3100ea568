//! Views for tests: one of everything a page can show.

use super::Moment;
use crate::daemon::view::{
    AttemptView, BundleView, Counts, FileView, MachineView, MethodState, MethodView, OutcomeView,
    PauseView, QueueView, RunState, RunSummary, RunView,
};

pub(in crate::daemon) const NOW: &str = "2026-01-01T10:05:00Z";

pub(super) fn moment() -> Moment<'static> {
    Moment {
        now_utc: NOW,
        version: "0.1.0",
        host: "bench-1",
    }
}

pub(super) fn summary(id: u64, state: RunState) -> RunSummary {
    RunSummary {
        id,
        state,
        benchmark_id: "Fixture benchmark".into(),
        protocol_id: "ab".repeat(32),
        priority: 5,
        exclusive: false,
        cores_wanted: 2,
        submitted_utc: "2026-01-01T09:59:00Z".into(),
        started_utc: (state != RunState::Queued).then(|| "2026-01-01T10:00:00Z".into()),
        ended_utc: (state == RunState::Ended).then(|| "2026-01-01T10:04:00Z".into()),
        methods: Counts {
            total: 8,
            running: u64::from(state == RunState::Running),
            ended: if state == RunState::Ended { 8 } else { 3 },
            failed: 1,
            without_result: 1,
        },
        position: (state == RunState::Queued).then_some(1),
        sentence: match state {
            RunState::Queued => "waits for 2 cores; run 7 has them",
            RunState::Running => "3 of 8 methods ended",
            RunState::Ended => "8 methods ended, 2 of them failed",
        }
        .into(),
        cancelled: false,
        exit_code: (state == RunState::Ended).then_some(1),
    }
}

pub(super) fn outcome(kind: &str, sentence: &str, succeeded: bool, charged: bool) -> OutcomeView {
    OutcomeView {
        kind: kind.into(),
        sentence: sentence.into(),
        succeeded,
        charged,
    }
}

pub(super) fn method(name: &str, state: MethodState, outcome: Option<OutcomeView>) -> MethodView {
    let running = state == MethodState::Running;
    let sentence = match (&outcome, state) {
        (Some(outcome), _) => outcome.sentence.clone(),
        (None, MethodState::Queued) => "waits for its turn".into(),
        _ => "scores its second dataset".into(),
    };
    let attempt = AttemptView {
        id: "0001.local.r0".into(),
        started_utc: Some("2026-01-01T10:00:10Z".into()),
        ended_utc: (!running).then(|| "2026-01-01T10:02:10Z".into()),
        seconds: 120.0,
        outcome: outcome.clone(),
        counts: true,
        cores: vec![0, 1],
        pauses: Vec::new(),
        remarks: Vec::new(),
    };
    MethodView {
        name: name.into(),
        id: format!("{:a>64}", format!("{:x}", name.len())),
        state,
        sentence,
        elapsed_seconds: if state == MethodState::Queued {
            0.0
        } else {
            120.0
        },
        budget_seconds: 600.0,
        eta_seconds: running.then_some(95.0),
        dataset: running.then(|| "pairs of words".into()),
        datasets_done: 1,
        datasets_total: 3,
        items_done: if running { 250 } else { 0 },
        items_total: if running { 1000 } else { 0 },
        cores: vec![0, 1],
        attempts: if state == MethodState::Queued {
            Vec::new()
        } else {
            vec![attempt]
        },
        stderr: Vec::new(),
        outcome,
    }
}

/// A run with a method in every state.
pub(super) fn run() -> RunView {
    let timeout = outcome(
        "timeout",
        "used up its budget of 10 min 00 s and was killed; 1 of 3 datasets finished",
        false,
        true,
    );
    let lost = outcome(
        "infrastructure",
        "has no result: supervisor lost; not held against it",
        false,
        false,
    );
    let mut methods = vec![
        method(
            "levenshtein",
            MethodState::Ended,
            Some(outcome("completed", "completed in 42.0 s", true, true)),
        ),
        method("a hanging one", MethodState::Ended, Some(timeout)),
        method("neighbours of words", MethodState::Running, None),
        method("lost", MethodState::Ended, Some(lost)),
        method("later on", MethodState::Queued, None),
        method(
            "pairs only",
            MethodState::Ended,
            Some(outcome(
                "not_applicable",
                "does not apply to this benchmark: pairs only",
                true,
                true,
            )),
        ),
    ];
    methods[1].stderr = vec!["loading model".into(), "still at item 17".into()];
    methods[1].attempts[0].cores = vec![2, 3];
    methods[1].attempts[0].pauses = vec![PauseView {
        after_seconds: 60.0,
        seconds: 30.0,
    }];
    methods[1].attempts[0].remarks = vec!["left 1 process behind, which the room ended".into()];
    let first = methods[3].attempts[0].clone();
    methods[3].attempts.insert(
        0,
        AttemptView {
            id: "0001.local.r0".into(),
            counts: false,
            outcome: None,
            ..first
        },
    );
    methods[3].attempts[1].id = "0002.local.r0".into();
    methods[3].attempts[1].started_utc = Some("2026-01-01T10:02:10Z".into());
    methods[3].attempts[1].seconds = 40.0;
    methods[5].attempts.clear();
    let starts = ["10:00:00", "10:00:00", "10:03:05", "10:00:48"];
    let lasted = [42.0, 180.0, 115.0, 70.0];
    for (method, (start, seconds)) in methods.iter_mut().zip(starts.iter().zip(lasted)) {
        method.attempts[0].started_utc = Some(format!("2026-01-01T{start}Z"));
        method.attempts[0].seconds = seconds;
        method.elapsed_seconds = seconds;
    }
    RunView {
        summary: summary(7, RunState::Running),
        run_id: "0123456789ab".into(),
        run_dir: "/var/lib/proctor/runs/7".into(),
        budget_seconds: 600.0,
        degraded: vec!["network: no network namespace can be made here".into()],
        cores: vec![0, 1, 2, 3],
        methods,
        bundle: Some(BundleView {
            number: "0001".into(),
            path: "/var/lib/proctor/runs/7/merged/0001".into(),
            files: vec![
                FileView {
                    path: "bundle.json".into(),
                    bytes: 300,
                },
                FileView {
                    path: "scores/a b.csv".into(),
                    bytes: 2048,
                },
            ],
            page: Some("results.html".into()),
        }),
    }
}

pub(in crate::daemon) fn queue() -> QueueView {
    QueueView {
        version: "0.1.0".into(),
        started_utc: "2026-01-01T08:00:00Z".into(),
        stopping: false,
        queued: 3,
        ended: 25,
        running: vec![summary(7, RunState::Running)],
        next: vec![summary(8, RunState::Queued), summary(9, RunState::Queued)],
        recent: vec![summary(6, RunState::Ended)],
        waits_for: Some("run 8 waits for 2 cores".into()),
        machine: MachineView {
            host: "bench-1".into(),
            cores: vec![0, 1, 2, 3],
            free_cores: vec![3],
            load: [1.5, 1.25, 0.75],
            cpu_pressure: Some(12.5),
            memory_total_bytes: 8 << 30,
            memory_available_bytes: 6 << 30,
        },
    }
}
