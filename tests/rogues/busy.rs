//! Burns its core for ever and does not listen to polite signals, after as many datasets as its argument says.
//! Honest report: `timeout`; the datasets finished before count, and nobody survives.

use nix::sys::signal::{SigSet, Signal};
use proctor_tests::talk::{Talk, datasets_first};

fn main() {
    let mut polite = SigSet::empty();
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGQUIT,
    ] {
        polite.add(signal);
    }
    polite.thread_block().expect("signals can be blocked");
    if Talk::open("busy").behave_for(datasets_first()) {
        loop {
            std::hint::spin_loop();
        }
    }
}
