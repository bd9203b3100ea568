//! The machine and what its cores do.

use super::words::bytes;
use crate::daemon::view::MachineView;
use crate::render::progress::ranges;
use maud::{Markup, html};

/// Cores, load and memory. What the system does not tell is said to be unknown.
pub(super) fn panel(machine: &MachineView) -> Markup {
    let cores = machine.cores.len();
    let busy = cores.saturating_sub(machine.free_cores.len());
    let total = machine.memory_total_bytes;
    let used = total.saturating_sub(machine.memory_available_bytes);
    html! {
        dl.machine {
            div {
                dt { "Cores given to runs" }
                dd {
                    b { (busy) " of " (cores) }
                    @if cores > 0 {
                        (meter("cores given to runs", busy as u64, cores as u64))
                    }
                    small { @if machine.free_cores.is_empty() {
                        "none is free"
                    } @else {
                        "free: " (ranges(&machine.free_cores))
                    } }
                }
            }
            div {
                dt { "Load average" }
                dd {
                    b { (load(machine.load[0])) }
                    small {
                        (load(machine.load[1])) " over 5 min, " (load(machine.load[2])) " over 15 min"
                        @if let Some(waits) = machine.cpu_pressure {
                            br; "programs wait for a core " (format!("{waits:.0}")) " % of the time"
                        }
                    }
                }
            }
            div {
                dt { "Memory in use" }
                dd { @if total == 0 {
                    "unknown"
                } @else {
                    b { (bytes(used)) }
                    (meter("memory in use", used, total))
                    small { "of " (bytes(total)) }
                } }
            }
        }
    }
}

fn load(value: f64) -> String {
    if value.is_finite() {
        format!("{value:.2}")
    } else {
        "unknown".to_owned()
    }
}

fn meter(what: &str, part: u64, whole: u64) -> Markup {
    html! {
        progress max=(whole) value=(part.min(whole)) aria-label=(what) { (part) " of " (whole) }
    }
}
