//! Load beside a run.

use std::process::{Child, Command, Stdio};

use super::bench::Bench;

/// The command name of a burner, as long as the kernel keeps them.
pub const NEIGHBOUR: &str = "heavy-neighbour";
/// What stands on its command line.
pub const SECRET: &str = "password-on-a-command-line";

/// A process that keeps a core busy until it is dropped.
#[derive(Debug)]
pub struct Burner(Child);

impl Burner {
    /// Starts one.
    pub fn start(bench: &Bench) -> Self {
        let program = bench.path(NEIGHBOUR);
        if !program.exists() {
            std::fs::copy("/bin/sh", &program).expect("a shell can be copied");
        }
        let child = Command::new(program)
            .args(["-c", "while :; do :; done", SECRET])
            .stdin(Stdio::null())
            .spawn();
        Self(child.expect("a process can be started"))
    }

    /// Starts one for every core.
    pub fn all_cores(bench: &Bench) -> Vec<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (0..cores).map(|_| Self::start(bench)).collect()
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
