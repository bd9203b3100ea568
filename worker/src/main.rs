//! `proctor-worker`: serves one built-in method over standard input and output.
//!
//! Standard output carries the wire and nothing else. The exit code is 0 after `done`; it is 1 when the conversation
//! ended before, also when the other side only closed its pipe.

use proctor_worker::serve::{Ending, serve};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let input = std::io::stdin().lock();
    let output = std::io::stdout().lock();
    match serve(input, output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ending::Closed) => ExitCode::FAILURE,
        Err(ending) => {
            // The other side may have closed this pipe as well; there is nobody else to tell.
            let _ = writeln!(std::io::stderr(), "proctor-worker: {ending}");
            ExitCode::FAILURE
        }
    }
}
