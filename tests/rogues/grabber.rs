//! Tries to take more of the machine than it was given: cores, priority, limits, safety from the memory killer.
//! Honest report: `completed`; it ran where and how it was put.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Pid;
use proctor_tests::misdeed::{system_call, tell, tried};
use proctor_tests::talk::Talk;

static PRIORITY: libc::c_int = 50;

fn main() {
    let mut every = CpuSet::new();
    for core in 0..CpuSet::count() {
        every.set(core).expect("a core has a number");
    }
    // That this reports success is no secret; that it did nothing is what the lines below show.
    let _ = sched_setaffinity(Pid::from_raw(0), &every);
    tried(
        "higher priority",
        system_call(libc::SYS_setpriority, [0, 0, -20, 0]),
    );
    let address = &raw const PRIORITY as libc::c_long;
    tried(
        "real time",
        system_call(
            libc::SYS_sched_setscheduler,
            [0, libc::SCHED_FIFO.into(), address, 0],
        ),
    );
    tried(
        "safety",
        std::fs::write("/proc/self/oom_score_adj", "-1000"),
    );
    for (name, limit) in [
        ("processes", Resource::RLIMIT_NPROC),
        ("core size", Resource::RLIMIT_CORE),
    ] {
        let (_, hard) = getrlimit(limit).expect("a limit can be read");
        if hard == libc::RLIM_INFINITY {
            tell(&format!("refused: there is no limit of {name}"));
        } else {
            tried(
                &format!("more {name}"),
                setrlimit(limit, hard + 1, hard + 1),
            );
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status
        .lines()
        .filter(|line| line.starts_with("Cpus_allowed_list"))
    {
        tell(&format!(
            "cores: {}",
            line.split(':').nth(1).unwrap_or_default().trim()
        ));
    }
    Talk::open("grabber").behave();
}
