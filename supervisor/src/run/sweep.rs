//! Emptying the rooms that supervisors which were killed left behind: what still runs in them would disturb the run.

use super::scratch;
use super::taint::{self, Mark};
use crate::render::{counted, plain};
use crate::room::sweep_stale_rooms;

/// What was found and done.
#[derive(Debug, Default)]
pub struct Swept {
    /// Sentences for people.
    pub notes: Vec<String>,
    /// What could not be taken away, with remedies: a run on this machine is not official.
    pub left: Vec<String>,
}

/// Empties what no living supervisor owns. Rooms of this process and of others that live are left alone.
pub fn sweep() -> Swept {
    let mut swept = Swept::default();
    for mark in taint::marks(true) {
        swept.notes.push(plain(&match mark {
            Mark::Holds(text) => format!("warning: {text}"),
            Mark::Over(text) => text,
        }));
    }
    for room in sweep_stale_rooms() {
        if !room.removed {
            swept.left.push(format!(
                "clean machine: the room {} of an earlier run could not be removed; end its processes as root, or restart the machine",
                plain(&room.name)
            ));
        }
        if room.survivors > 0 {
            swept.notes.push(format!(
                "ended {} that a supervisor which was killed left behind (run {})",
                counted(u64::from(room.survivors), "process"),
                plain(&room.run_id)
            ));
        } else if room.removed {
            swept.notes.push(format!(
                "removed the empty room of a supervisor that was killed (run {})",
                plain(&room.run_id)
            ));
        }
    }
    for (path, removed) in scratch::sweep(&scratch::root()) {
        let path = plain(&path.display().to_string());
        swept.notes.push(match removed {
            Ok(()) => format!("removed {path}, which a supervisor that was killed left behind"),
            Err(why) => format!(
                "{path}, which a supervisor that was killed left behind, cannot be removed: {}",
                plain(&why)
            ),
        });
    }
    swept
}
