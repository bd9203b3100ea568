//! Supervisors that are killed at random moments.

use std::io::Read;
use std::time::{Duration, Instant};

use proctor_supervisor::room::{self, Rung};

use crate::checks::{driver_arguments, open_directory, rungs};
use crate::oracle::{Oracle, User};

/// All tests here.
pub(crate) const TESTS: &[(&str, fn())] = &[
    ("a_killed_supervisor_leaves_nobody", random_kills),
    ("rooms_of_dead_supervisors_are_swept", stale),
];

/// Half of the kills fall into the first 12 ms, where the room is being made; the others into the first 300 ms.
fn random_kills() {
    let count: u32 = std::env::var("PROCTOR_KILLS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(40);
    // A fixed sequence: xorshift, seeded by nothing, so that a failure comes again.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    for user in User::all() {
        for rung in rungs(user) {
            let mut left = Vec::new();
            for round in 0..count {
                let window = if round % 2 == 0 { 12_000 } else { 300_000 };
                let wait = Duration::from_micros(random(window));
                let worker = ["daemon-and-hang", "phoenix", "tree"][(round % 3) as usize];
                let survivors = kill_once(user, rung, worker, wait, round % 2 == 0);
                if survivors > 0 {
                    left.push((round, worker, wait, survivors));
                }
            }
            assert!(left.is_empty(), "{rung} as {user:?}: {left:?}");
        }
    }
    let swept = room::sweep_stale_rooms();
    assert!(
        swept
            .iter()
            .all(|stale| stale.survivors == 0 && stale.removed),
        "{swept:?}"
    );
    assert!(room::sweep_stale_rooms().is_empty());
}

/// Kills one supervisor and counts who is alive a second later. The early kills are timed from the moment the driver
/// makes its rooms, which it shows by its scratch directory.
fn kill_once(user: User, rung: Rung, worker: &str, wait: Duration, early: bool) -> usize {
    let oracle = Oracle::new();
    let directory = open_directory();
    let arguments = driver_arguments(rung, 60_000, 0, directory.path(), &[worker]);
    let mut driver = oracle.command(user, &arguments).spawn().unwrap();
    if early {
        let scratch = directory.path().join("0/scratch");
        while !scratch.exists() {
            std::hint::spin_loop();
        }
    }
    spin(wait);
    driver.kill().unwrap();
    driver.wait().unwrap();
    // The worker may hold the driver's output open no longer than it lives.
    let survivors = oracle.alive_after(Duration::from_secs(1)).len();
    if survivors == 0 {
        let mut rest = Vec::new();
        let _ = driver.stdout.take().unwrap().read_to_end(&mut rest);
    }
    survivors
}

/// Sleeping is too coarse for the early kills.
fn spin(wait: Duration) {
    let end = Instant::now() + wait;
    if wait > Duration::from_millis(20) {
        std::thread::sleep(wait.saturating_sub(Duration::from_millis(10)));
    }
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

fn stale() {
    if !rungs(User::Own).contains(&Rung::K4) {
        println!("skipped: no control group of version 2 can be made here");
        return;
    }
    let own = room::sweep_stale_rooms();
    assert!(own.iter().all(|room| room.removed), "{own:?}");
    let oracle = Oracle::new();
    let directory = open_directory();
    let arguments = driver_arguments(Rung::K4, 60_000, 0, directory.path(), &["hang"]);
    let mut driver = oracle.command(User::Own, &arguments).spawn().unwrap();
    // The first rooms of a supervisor are its trials.
    let scratch = directory.path().join("0/scratch");
    while !scratch.exists() || oracle.alive().len() < 3 {
        std::thread::yield_now();
    }
    assert!(
        room::sweep_stale_rooms().is_empty(),
        "the supervisor is alive"
    );
    driver.kill().unwrap();
    driver.wait().unwrap();
    let swept = room::sweep_stale_rooms();
    assert_eq!(swept.len(), 1, "{swept:?}");
    assert_eq!(swept[0].run_id, "test-run");
    assert!(swept[0].removed);
    assert!(room::sweep_stale_rooms().is_empty());
    assert!(oracle.alive_after(Duration::from_secs(1)).is_empty());
}
