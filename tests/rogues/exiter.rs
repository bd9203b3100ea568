//! Scores everything, says `done` and then exits with code 3.
//! Honest report: `exit(3)`; the last dataset does not count, for this was no good end.

use proctor_tests::talk::Talk;

fn main() -> std::process::ExitCode {
    Talk::open("exiter").behave();
    std::process::ExitCode::from(3)
}
