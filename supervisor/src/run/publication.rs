//! A bundle that was made from a run and put in place, and what it says in short.

use crate::bundle::Published;
use crate::error::Exit;
use crate::merge::records::MethodRecord;
use crate::merge::standing::Standing;
use crate::render::brief;
use crate::render::results;
use proctor_protocol::bundle::Document;

/// A bundle in its place.
#[derive(Debug)]
pub struct Publication<'a> {
    /// Where it is.
    pub bundle: Published,
    /// The document in it.
    pub document: Document,
    /// The methods with their records.
    pub methods: Vec<MethodRecord<'a>>,
    /// Name of the page to look at.
    pub page: String,
    /// What it may call itself.
    pub standing: Standing,
}

impl Publication<'_> {
    /// The exit code of a run with these outcomes.
    pub fn exit(&self) -> Exit {
        if self.standing.withdrawn {
            // What was asked for is not what there is, and nobody's method is to blame.
            return Exit::Infrastructure;
        }
        results::exit(self.methods.iter().map(|record| &record.outcome))
    }

    /// What came of the run, in one line without a line end.
    pub fn line(&self) -> String {
        let of = |holds: &dyn Fn(&MethodRecord<'_>) -> bool| {
            self.methods.iter().filter(|record| holds(record)).count()
        };
        let done = of(&|record| record.outcome.succeeded());
        let owed = of(&|record| !record.outcome.charged());
        let failed = self.methods.len() - done - owed;
        let name = brief(self.document.benchmark_id());
        let total = self.methods.len();
        format!(
            "{name}: {done} of {total} methods completed, {failed} failed, {owed} without a result"
        )
    }
}
