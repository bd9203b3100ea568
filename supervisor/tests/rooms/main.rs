//! Rooms and attempts with real processes, on every rung this machine has, as every user it allows.
//!
//! This test has its own `main`, because the test binary is also the stage of its rooms, the supervisor under test and
//! the worker. `cargo test --test rooms -- NAME` runs the tests whose name holds NAME. `PROCTOR_KILLS=200` kills that many
//! supervisors instead of 40, `PROCTOR_ATTEMPTS=1000` runs that many attempts instead of 200.

#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used)]

mod checks;
mod confinement;
mod driver;
mod kills;
mod lies;
mod oracle;
mod rogue;
mod times;
mod workers;

use std::time::Instant;

fn main() {
    proctor_supervisor::room::stage::main_if_stage();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(workers::WORD) => return workers::main(&arguments[1]),
        Some(driver::WORD) => return driver::main(&arguments[1..]),
        Some(times::IDLE_WORD) => return times::idle_supervisor(&arguments[1..]),
        Some(checks::MANY_WORD) => return checks::many_attempts(&arguments[1..]),
        _ => {}
    }
    let wanted: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let tests: Vec<(&str, fn())> = checks::TESTS
        .iter()
        .chain(confinement::TESTS)
        .chain(kills::TESTS)
        .chain(lies::TESTS)
        // Last, so that what takes long has the time of all the others.
        .chain(times::TESTS)
        .copied()
        .filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|w| name.contains(w.as_str())))
        .collect();
    if arguments.iter().any(|argument| argument == "--list") {
        for (name, _) in &tests {
            println!("{name}: test");
        }
        return;
    }
    println!("\nrunning {} tests", tests.len());
    times::begin_idle(&tests);
    let mut failed = Vec::new();
    for (name, test) in tests {
        let begun = Instant::now();
        let result = std::panic::catch_unwind(test);
        let verdict = if result.is_ok() { "ok" } else { "FAILED" };
        println!(
            "test {name} ... {verdict} ({:.1} s)",
            begun.elapsed().as_secs_f64()
        );
        if result.is_err() {
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        println!("\nfailed: {}", failed.join(", "));
        std::process::exit(1);
    }
}
