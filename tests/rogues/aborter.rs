//! Asks for a core dump and aborts, after as many datasets as its argument says.
//! Honest report: `signal(6)`; no core file, and the datasets finished before count.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use proctor_tests::talk::{Talk, datasets_first};

fn main() {
    let (_, hard) = getrlimit(Resource::RLIMIT_CORE).expect("a limit can be read");
    let _ = setrlimit(Resource::RLIMIT_CORE, hard, hard);
    if Talk::open("aborter").behave_for(datasets_first()) {
        std::process::abort();
    }
}
