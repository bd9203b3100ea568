//! A daemon that is killed again and again: every run ends, with the results of an undisturbed one; and with many runs in the
//! queue it stays small and quick.
//!
//! `PROCTOR_DAEMON_KILLS` says how many kills, 12 without it; `PROCTOR_DAEMON_RUNS` how many runs, 60 without it. With
//! `PROCTOR_DAEMON_STRICT` the times of an idle machine are demanded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::args;
use crate::resume_kills::{Chance, asked, attempts, benchmark, nothing_ran_twice, results};
use crate::support::bench::Bench;
use crate::support::daemon::Daemon;
use crate::support::oracle::Oracle;
use crate::support::proctor::proctor;
use crate::support::wait_for;

const NONE: &[u32] = &[];

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

fn seed() -> u64 {
    let now = || {
        u64::from(
            std::time::UNIX_EPOCH
                .elapsed()
                .expect("after 1970")
                .subsec_nanos(),
        )
    };
    let seed = std::env::var("PROCTOR_SEED");
    let seed = seed.map_or_else(|_| now(), |text| text.parse().expect("a number"));
    println!("PROCTOR_SEED={seed}");
    seed
}

#[test]
fn runs_of_a_daemon_that_is_killed_again_and_again_end_as_if_nothing_had_happened() {
    let kills = number("PROCTOR_DAEMON_KILLS", 12);
    let mut chance = Chance(seed());
    let (bench, methods) = benchmark();
    let calm = bench.path("calm");
    proctor(args!["run", bench.protocol(), &methods, "-o", &calm]).exits(0);
    let expected = results(&calm.join("bundle"));
    let order = asked(&attempts(&calm)[0][0]);

    let oracle = Oracle::new(bench.path("").as_path());
    let mut daemon = Daemon::start(&bench, &["--max-requests", "100000"]);
    let protocol = bench.protocol();
    let submit = |daemon: &Daemon<'_>| {
        let words = [
            "submit",
            protocol.to_str().expect("text"),
            methods.to_str().expect("text"),
        ];
        daemon.ask(&words).exits(0);
    };
    let mut struck = 0;
    let mut last = 0;
    while struck < kills || last == 0 {
        // Each run is watched by one client through all the kills.
        last += 1;
        submit(&daemon);
        let mut watch = daemon.client(&["watch", &last.to_string(), "--json"]);
        watch
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null());
        let watch = watch.spawn().expect("watch starts");
        loop {
            std::thread::sleep(Duration::from_millis(200 + chance.below(1500)));
            if daemon.get(&format!("/v1/runs/{last}")).is(200).json()["state"] == "ended" {
                break;
            }
            if struck < kills {
                daemon.kill();
                struck += 1;
                // Whatever a dead daemon left is taken away by the next, or was never there.
                daemon.begin();
            }
        }
        let watched = watch.wait_with_output().expect("watch ends");
        assert_eq!(watched.status.code(), Some(0), "{watched:?}");
        let summary: Value = serde_json::from_slice(&watched.stdout).expect("JSON");
        assert_eq!(
            (&summary["id"], &summary["exit_code"]),
            (&json!(last), &json!(0))
        );
        let run = daemon.run_dir(last);
        assert_eq!(results(&run.join("bundle")), expected);
        nothing_ran_twice(&run, &order);
    }
    println!("{struck} kills over {last} runs");
    drop(daemon);
    assert_eq!(oracle.survivors(), Vec::<String>::new());
}

/// Resident memory of a process, in KiB: now, and the most so far.
fn memory(pid: i32) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_ascii_whitespace().next());
        number
            .and_then(|number| number.parse().ok())
            .expect("a number")
    };
    (of("VmRSS:"), of("VmHWM:"))
}

/// The time below which so much of the times lie.
fn quantile(times: &mut [Duration], part: f64) -> Duration {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * part) as usize]
}

#[test]
fn many_runs_end_across_a_kill_and_the_daemon_stays_small_and_answers() {
    let runs = number("PROCTOR_DAEMON_RUNS", 60);
    let strict = std::env::var_os("PROCTOR_DAEMON_STRICT").is_some();
    let bench = Bench::fixtures(30.0);
    let mut daemon = Daemon::start(&bench, &["--max-requests", "100000"]);
    let methods = bench.methods(&[bench.rogue("good", NONE)]);
    let mut submission = daemon.submission();
    submission["methods"] = json!(methods);
    submission["cores"] = json!(1);
    let began = Instant::now();
    for id in 1..=runs {
        submission["priority"] = json!(id % 3);
        let run = daemon
            .post("/v1/runs", &submission.to_string())
            .is(201)
            .json();
        assert_eq!(run["id"], id);
    }
    println!("{runs} submitted in {:?}", began.elapsed());
    let ended = |daemon: &Daemon<'_>| {
        let queue = daemon.get("/v1/queue").is(200).json();
        queue["ended"].as_u64().expect("a count")
    };
    let deadline = Instant::now() + Duration::from_secs(60 + 4 * runs);
    let wait = |daemon: &Daemon<'_>, count: u64| {
        while ended(daemon) < count {
            assert!(
                Instant::now() < deadline,
                "waited too long:\n{}",
                daemon.log()
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    wait(&daemon, runs / 2);
    let (_, before) = memory(daemon.pid());
    daemon.kill();
    daemon.begin();
    let (start, _) = memory(daemon.pid());

    let over = AtomicBool::new(false);
    let mut times = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut times = Vec::new();
            let paths = [
                "/v1/queue".to_owned(),
                "/v1/runs?limit=200".to_owned(),
                format!("/v1/runs/{runs}"),
                "/v1/runs/1".to_owned(),
                "/healthz".to_owned(),
            ];
            while !over.load(Ordering::SeqCst) {
                for path in &paths {
                    let asked = Instant::now();
                    daemon.get(path).is(200);
                    times.push(asked.elapsed());
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
            times
        });
        wait(&daemon, runs);
        over.store(true, Ordering::SeqCst);
        asking.join().expect("every answer is good")
    });
    let (end, most) = memory(daemon.pid());
    let (half, most_of_times) = (quantile(&mut times, 0.5), quantile(&mut times, 0.99));
    println!(
        "{runs} runs in {:?}; memory {start} KiB after the restart, {end} KiB at the end, at most {before} and {most} KiB; \
         {} requests, median {half:?}, p99 {most_of_times:?}",
        began.elapsed(),
        times.len()
    );
    assert!(before < 100 << 10 && most < 100 << 10);
    // Flat: no run leaves more than a few bytes.
    assert!(end < start + (16 << 10), "{start} KiB became {end} KiB");
    let bound = if strict { 50 } else { 2000 };
    assert!(
        most_of_times < Duration::from_millis(bound),
        "{most_of_times:?}"
    );

    let mut before = None;
    let mut seen = 0;
    loop {
        let path = before.map_or("/v1/runs?limit=200".to_owned(), |before| {
            format!("/v1/runs?limit=200&before={before}")
        });
        let page = daemon.get(&path).is(200).json();
        for run in page["runs"].as_array().expect("a list") {
            assert_eq!(
                (&run["state"], &run["exit_code"]),
                (&json!("ended"), &json!(0)),
                "{run}"
            );
            seen += 1;
        }
        before = page["next_before"].as_u64();
        if before.is_none() {
            break;
        }
    }
    assert_eq!(seen, runs);
    wait_for("the state to be put away", || {
        let left = std::fs::read_dir(daemon.state().join("queue")).expect("a folder");
        left.count() == 0
    });
}
