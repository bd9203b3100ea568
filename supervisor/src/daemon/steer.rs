//! Stopping one run of the daemon.

use crate::run::Stop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What may be asked of a run that goes on.
#[derive(Debug, Default)]
pub struct Steer {
    /// What the library listens to.
    pub stop: Arc<Stop>,
    cancelled: AtomicBool,
}

impl Steer {
    /// What runs ends as `cancelled`, and nothing more starts.
    pub fn cancel_all(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        self.stop.cancel_all();
    }

    /// True when the whole run was cancelled: it is over, however much of it was left.
    pub fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }
}
