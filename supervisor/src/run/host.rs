//! Facts about this machine and this program, for the records.

use crate::measure::texts;
use crate::rundir::plan::Machine;
use crate::rundir::regular;
use nix::sys::utsname::UtsName;
use proctor_protocol::canonical::hex;
use std::io::{self, Read};
use std::sync::OnceLock;

/// The wall clock, to the second, in UTC: for people, never for durations.
pub fn now_utc() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_second(now.as_second())
        .unwrap_or(now)
        .to_string()
}

/// This machine.
pub fn machine() -> Machine {
    let uname = nix::sys::utsname::uname().ok();
    let text = |field: Option<&std::ffi::OsStr>| {
        field.map_or_else(String::new, |text| text.to_string_lossy().into_owned())
    };
    Machine {
        host: text(uname.as_ref().map(UtsName::nodename)),
        system: text(uname.as_ref().map(UtsName::sysname)),
        release: text(uname.as_ref().map(UtsName::release)),
        architecture: text(uname.as_ref().map(UtsName::machine)),
        processor: texts::processor(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
            .unwrap_or_default(),
    }
}

/// The kernel's id of this boot; empty where there is none.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// SHA-256 of this program's file, found out once: a file that is replaced meanwhile is not what runs.
///
/// # Errors
/// The file cannot be read.
pub fn own_sha256() -> io::Result<String> {
    static OWN: OnceLock<String> = OnceLock::new();
    if let Some(known) = OWN.get() {
        return Ok(known.clone());
    }
    let found = std::env::current_exe().and_then(|path| regular::sha256(&path))?;
    Ok(OWN.get_or_init(|| found).clone())
}

/// `bytes` random bytes as hex.
///
/// # Errors
/// The system gives no randomness.
pub fn random_hex(bytes: usize) -> io::Result<String> {
    let mut random = vec![0; bytes];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(hex(&random))
}

/// The cores this process may use, in ascending order.
///
/// # Errors
/// The system does not tell.
pub fn usable_cores() -> io::Result<Vec<usize>> {
    let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0))?;
    let most = nix::sched::CpuSet::count();
    Ok((0..most)
        .filter(|&core| set.is_set(core).unwrap_or(false))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_seconds_in_utc() {
        let now = now_utc();
        assert_eq!(now.len(), "2026-01-01T00:00:00Z".len());
        assert!(now.ends_with('Z'));
    }

    #[test]
    fn there_is_a_core() {
        assert!(!usable_cores().unwrap().is_empty());
    }
}
