//! The load gate: a timed method does not start while other processes keep the cores busy.
//!
//! [`decide`] is pure: it is told what others used of the cores and for how long one has waited. [`Gate`] looks at the
//! machine for it, without ever waiting itself: whoever schedules asks it now and then, and shows the reason meanwhile. What
//! this process and all of its rooms use is not other load, so one process can conduct several runs, each with its gate.

mod decide;
mod gate;

pub use decide::{Admission, Decision, Rule, decide, passed, was_refused};
pub use gate::Gate;

/// Seconds that a method waits for a quiet machine unless somebody says otherwise.
pub const DEFAULT_WAIT_SECONDS: f64 = 600.0;
