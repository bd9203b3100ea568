//! Scores everything, says `done` and then exits with code 3.

use proctor_tests::talk::Talk;

fn main() -> std::process::ExitCode {
    Talk::open("exiter").behave();
    std::process::ExitCode::from(3)
}
