//! What isolation this machine gives, found out by doing.

use proctor_protocol::canonical::{Object, Value};
use proctor_protocol::object;

use super::{Guard, Rung};

/// What this machine gives: each rung tried with a real room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Each rung, best first, with the reason when it is not to be had.
    pub rungs: Vec<(Rung, Guard)>,
}

impl Probe {
    /// The best rung that worked. K0 is never among them: it must be asked for.
    pub fn best(&self) -> Option<Rung> {
        self.rungs
            .iter()
            .find(|(rung, guard)| *rung != Rung::K0 && *guard == Guard::Enforced)
            .map(|(rung, _)| *rung)
    }

    /// `{"best": "K4", "rungs": {"K4": {"state": ...}, ...}}`.
    pub fn to_value(&self) -> Value {
        let mut rungs = Object::new();
        for (rung, guard) in &self.rungs {
            rungs.insert(rung.name(), guard.to_value());
        }
        object! {
            "best" => self.best().map_or("none", Rung::name),
            "rungs" => Value::Object(rungs),
        }
    }
}

/// Tries every rung with a real room, best first.
pub fn probe() -> Probe {
    Probe {
        rungs: Rung::ALL
            .into_iter()
            .map(|rung| (rung, Guard::Unavailable("not probed".into())))
            .collect(),
    }
}
