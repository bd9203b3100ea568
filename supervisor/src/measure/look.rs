//! A look at the cores and the processes of the machine.

use super::conditions::{Reading, read, reason};
use super::others::Look;
use super::texts::{self, ProcessLine};
use crate::room::{boottime_ns, monotonic_ns, rooms_time};
use crate::run::host;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::fs::{self, File};
use std::io::Read;

/// Nanoseconds of a clock tick.
const TICK_NS: u64 = 10_000_000;

impl Look {
    /// Looks. Every process is read, so this takes about ten microseconds for each of them.
    pub fn take() -> Self {
        let own_seconds = getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |usage| {
            (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
        });
        let cores = read("/proc/stat")
            .and_then(|text| texts::cores(&text).map_err(|error| error.to_string()));
        Self {
            at: monotonic_ns(),
            ticks: boottime_ns() / TICK_NS,
            usable: host::usable_cores().unwrap_or_default(),
            cores,
            own: own(),
            own_seconds,
            rooms: rooms_time(),
            processes: processes(),
        }
    }
}

/// The number of this process in the namespace of `/proc`, which may be another than its own.
fn own() -> i32 {
    let link = fs::read_link("/proc/self").ok();
    let number = link.and_then(|link| link.to_str()?.parse().ok());
    number.unwrap_or_else(|| nix::unistd::getpid().as_raw())
}

/// All processes that can be seen. One that ends meanwhile is not among them.
fn processes() -> Reading<Vec<ProcessLine>> {
    let entries = fs::read_dir("/proc").map_err(|error| reason(&error))?;
    // The kernel writes the whole line at once, and it is never this long.
    let mut line = [0; 2048];
    let mut processes = Vec::new();
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let Some(name) = name
            .to_str()
            .filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
        else {
            continue;
        };
        let read =
            File::open(format!("/proc/{name}/stat")).and_then(|mut file| file.read(&mut line));
        if let Ok(length) = read
            && let Ok(process) = texts::process(&line[..length])
        {
            processes.push(process);
        }
    }
    if processes.is_empty() {
        return Err("no process can be seen".into());
    }
    Ok(processes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::others::between;

    #[test]
    fn this_process_is_seen_and_is_no_other_load() {
        let before = Look::take();
        let own = |look: &Look| {
            let processes = look.processes.as_ref().unwrap();
            processes.iter().any(|process| process.pid == look.own)
        };
        assert!(own(&before));
        assert!(before.cores.as_ref().is_ok_and(|cores| !cores.is_empty()));
        let begun = std::time::Instant::now();
        while begun.elapsed().as_secs_f64() < 0.3 {
            std::hint::spin_loop();
        }
        let after = Look::take();
        assert!(after.own_seconds > before.own_seconds && after.at > before.at);
        let load = between(&before, &after);
        assert!(
            load.seen_cores.is_some() && load.busy_cores.is_some(),
            "{load:?}"
        );
        assert!(
            load.cores.unwrap() <= load.busy_cores.unwrap() + 0.2,
            "{load:?}"
        );
    }
}
