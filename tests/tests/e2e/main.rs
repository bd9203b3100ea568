//! End-to-end tests: they run the real programs and look at what comes out, never at the code.
#![allow(unreachable_pub, reason = "a test program has no outside")]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says what it skips, counted, or was seeded with"
)]

mod support;

mod blind;
mod codes;
mod daemon;
mod daemon_fuzz;
mod daemon_input;
mod daemon_kills;
mod documentation;
mod faults;
mod grace;
mod identities;
mod interop;
mod interrupt;
mod irplag;
mod job_control;
mod limits;
mod load;
mod main_job;
mod masks;
mod matheel_reads;
mod measured;
mod merging;
mod official;
mod page;
mod places;
mod refusals;
mod reports;
mod resume;
mod resume_kills;
mod rogues;
mod rooms;
