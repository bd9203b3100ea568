//! What happens while a session is conducted, for whoever wants to show it.

use super::live::Glance;
use crate::render::sentence::Numbers;
use crate::rundir::AttemptId;
use proctor_protocol::outcome::Outcome;

/// What is known of a method before it runs in a session.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// The parts it is asked for, in order: which of its datasets it is, from 1, and a label. [`Glance::part`] counts here.
    pub parts: Vec<(usize, String)>,
    /// Datasets it is owed in all, those inherited from earlier attempts included.
    pub datasets: usize,
    /// Items of all the parts it is asked for.
    pub items: u64,
    /// Seconds of its budget that earlier attempts used.
    pub earlier_seconds: f64,
}

/// An attempt that starts.
#[derive(Debug, Clone, Copy)]
pub struct Starting<'a> {
    /// The method, by position in the plan.
    pub method: usize,
    /// The attempt.
    pub attempt: &'a AttemptId,
    /// Its cores.
    pub cores: &'a [usize],
}

/// A method that ended in this session.
#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    /// The method, by position in the plan.
    pub method: usize,
    /// The attempt; `None` when none could be made, or nothing applies to the method.
    pub attempt: Option<&'a AttemptId>,
    /// How it ended.
    pub outcome: &'a Outcome,
    /// The numbers for [`crate::render::sentence::sentence`].
    pub numbers: Numbers,
    /// The last lines of its stderr when it failed, made harmless.
    pub stderr: &'a [String],
}

/// Hears what happens in a session. All calls come from the thread that conducts it, so none may wait for long.
pub trait Observer {
    /// The session drives the run, and nobody else does.
    fn begins(&mut self) {}

    /// An attempt starts.
    fn started(&mut self, starting: Starting<'_>) {
        let _ = starting;
    }

    /// The next method waits for a reason that lies in the machine, in a few words; said again several times a second.
    fn waiting(&mut self, method: usize, reason: &str) {
        let _ = (method, reason);
    }

    /// A running method was looked at; several times a second.
    fn progress(&mut self, method: usize, glance: Glance) {
        let _ = (method, glance);
    }

    /// A method ended.
    fn ended(&mut self, ended: Ended<'_>) {
        let _ = ended;
    }

    /// Something about the run as a whole, in a sentence.
    fn note(&mut self, text: &str) {
        let _ = text;
    }
}

/// Nobody watches.
impl Observer for () {}
