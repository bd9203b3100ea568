//! Tries to move itself out of its control groups and to change their limits, then scores everything.
//! Honest report: `completed`; every attempt was refused.

use std::fs;

use proctor_tests::misdeed::tried;
use proctor_tests::talk::Talk;

fn main() {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let me = std::process::id().to_string();
    for root in [
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/unified",
        "/sys/fs/cgroup/memory",
        "/sys/fs/cgroup/pids",
    ] {
        tried(
            &format!("enter {root}"),
            write(&format!("{root}/cgroup.procs"), &me),
        );
        for path in own.lines().filter_map(|line| line.rsplit(':').next()) {
            for (file, text) in [
                ("memory.max", "max"),
                ("memory.limit_in_bytes", "-1"),
                ("pids.max", "max"),
                ("cgroup.freeze", "1"),
                ("cgroup.kill", "1"),
            ] {
                let file = format!("{root}{path}/{file}");
                tried(&format!("change {file}"), write(&file, text));
            }
        }
    }
    Talk::open("fugitive").behave();
}

/// Writes to a file that is there; making one would be another misdeed.
fn write(file: &str, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    fs::OpenOptions::new()
        .write(true)
        .open(file)?
        .write_all(text.as_bytes())
}
