//! What was measured of an attempt and of the machine around it: who reads a time must be able to tell what disturbed it.
//!
//! Everything is a number the kernel gave, or null with the reason why it gave none (docs/measurements.md). Parsing and
//! arithmetic are pure (`texts`, `others`); reading is a thin shell around them.

mod conditions;
mod files;
mod look;
pub mod others;
pub mod texts;

pub use files::Files;
pub use others::{Look, OtherLoad};

use crate::attempt::Ending;
use proctor_protocol::canonical::Value;
use proctor_protocol::object;

/// What was seen before an attempt began.
#[derive(Debug)]
pub struct Watch {
    cores: Vec<usize>,
    page_cache: Value,
    machine: Value,
    before: Value,
    look: Look,
}

impl Watch {
    /// Looks at the machine right before an attempt on these cores.
    pub fn begin(cores: &[usize], files: &Files) -> Self {
        Self {
            cores: cores.to_vec(),
            page_cache: files::page_cache(files),
            machine: conditions::machine(cores),
            before: conditions::now(cores),
            // Last, so that what is above does not count as load.
            look: Look::take(),
        }
    }

    /// Looks again, and puts together what is to be recorded of the attempt that has ended. `load_gate` is how it came
    /// through the load gate.
    pub fn end(self, ending: &Ending, load_gate: Value) -> Value {
        let other_load = others::between(&self.look, &Look::take());
        object! {
            "cpu_time" => cpu_time(ending),
            "peak_memory" => peak_memory(ending),
            "cores" => ending.cores.clone(),
            "machine" => self.machine,
            "page_cache" => self.page_cache,
            "before" => self.before,
            "after" => conditions::now(&self.cores),
            "other_load" => other_load.to_value(),
            "load_gate" => load_gate,
        }
    }
}

/// How far `cpu_seconds` can be relied on.
fn cpu_time(ending: &Ending) -> Value {
    let (kind, by) = match (ending.cpu_seconds, ending.cpu_exact) {
        (None, _) => ("unknown", None),
        (Some(_), true) => ("exact", Some("cgroup2 cpu.stat")),
        (Some(_), false) => (
            "lower bound",
            Some("processes that ended and were waited for"),
        ),
    };
    object! { "kind" => kind, "by" => by }
}

/// What `peak_memory_bytes` is: what a kernel counter has of the room, or nothing.
fn peak_memory(ending: &Ending) -> Value {
    let kind = if ending.peak_memory_bytes.is_some() {
        "counted"
    } else {
        "unknown"
    };
    object! { "kind" => kind, "by" => ending.peak_memory_by }
}
