//! A user of the room's own, for supervisors that are root.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::sys;

/// The numbers that are tried: those that systems with dynamic users take theirs from, and nobody else.
const FIRST: u32 = 61_184;
const LAST: u32 = 65_519;

/// A user number that no other room of this machine uses while this value lives.
#[derive(Debug)]
pub(super) struct OwnUser {
    /// Number of the user, and of its group.
    pub(super) id: u32,
    /// The name of this socket is the claim: it ends with this process, however that ends.
    _claim: UnixListener,
}

impl OwnUser {
    /// Finds a number without an account, without a process and without another room.
    pub(super) fn claim() -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let span = LAST - FIRST + 1;
        let begin = NEXT.fetch_add(1, Ordering::Relaxed);
        for step in 0..span {
            let id = FIRST + (begin.wrapping_add(step)) % span;
            if accounts().contains(&id) || sys::user_has_processes(id) {
                continue;
            }
            let name = SocketAddr::from_abstract_name(format!("proctor-user-{id}"))
                .map_err(|error| format!("a name for user {id}: {error}"))?;
            match UnixListener::bind_addr(&name) {
                Ok(claim) => return Ok(Self { id, _claim: claim }),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(format!("claiming user {id}: {error}")),
            }
        }
        Err(format!("every user from {FIRST} to {LAST} is in use"))
    }
}

/// Users and groups that have an account in the local files.
fn accounts() -> &'static HashSet<u32> {
    static ACCOUNTS: OnceLock<HashSet<u32>> = OnceLock::new();
    ACCOUNTS.get_or_init(|| {
        ["/etc/passwd", "/etc/group"]
            .iter()
            .filter_map(|file| fs::read_to_string(file).ok())
            .flat_map(|text| {
                text.lines()
                    .filter_map(|line| line.split(':').nth(2)?.parse().ok())
                    .collect::<Vec<u32>>()
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rooms_never_share_a_user() {
        let one = OwnUser::claim().unwrap();
        let other = OwnUser::claim().unwrap();
        assert_ne!(one.id, other.id);
        assert!((FIRST..=LAST).contains(&one.id));
    }
}
