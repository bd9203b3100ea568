//! What a room must believe of the kernel, in one place, so that a test can put a kernel there that lies.
//!
//! Every wait of a room for one of these answers has a bound. That holds for a kernel that never gives the answer, which
//! no test can make of a real one.

use std::fmt::Debug;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use super::{cgroup, scratch, sys};

/// How long a killed room may take to be empty. The kernel frees about ten gigabytes of memory in a second.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the removal of one scratch directory may take. A million files take some seconds.
const REMOVAL: Duration = Duration::from_secs(20);

/// The answers of a kernel. What is not overridden is the truth.
pub trait Kernel: Debug + Send + Sync {
    /// Whether a kill reaches anybody.
    fn kills(&self) -> bool {
        true
    }

    /// Whether what the room's own process says arrives.
    fn delivers(&self) -> bool {
        true
    }

    /// Reaps the room's own process if it has ended; true when it has.
    ///
    /// # Errors
    /// As waitid: there is no such child any more.
    fn reaps(&self, stage: BorrowedFd<'_>) -> io::Result<bool> {
        sys::pidfd_reap(stage)
    }

    /// Whether a control group says that nobody is in it.
    fn says_empty(&self, group: &Path) -> bool {
        cgroup::is_empty(group)
    }

    /// Removes a directory with everything in it, in about `bound`.
    ///
    /// # Errors
    /// What is left, and why.
    fn removes(&self, directory: &Path, bound: Duration) -> io::Result<()> {
        scratch::remove_tree(directory, bound)
    }

    /// How long a killed room may take to be empty before it counts as unkillable.
    fn patience(&self) -> Duration {
        PATIENCE
    }

    /// How long the removal of a scratch directory may take before it is left where it is.
    fn removal(&self) -> Duration {
        REMOVAL
    }
}

/// The kernel this program runs on.
#[derive(Debug, Clone, Copy)]
pub struct Honest;

impl Kernel for Honest {}
