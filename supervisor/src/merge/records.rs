//! What the records of a run say of each method. Reading only: no clock, no machine, no environment.

use super::public;
use crate::error::Error;
use crate::render::sentence::Numbers;
use crate::rundir::ancestry::{Ancestry, Inherited, Reason};
use crate::rundir::plan::{Plan, not_applicable, parts};
use crate::rundir::record::{Answer, Checkpoint, Part, Role, Terminal, count};
use crate::rundir::scores::read_scores;
use crate::rundir::state::{self, Attempt, Found};
use crate::rundir::{RecordError, RunDir};
use proctor_protocol::canonical::{Object, Value, float_text};
use proctor_protocol::method::Method;
use proctor_protocol::object;
use proctor_protocol::outcome::Outcome;
use proctor_protocol::report::DatasetResult;

/// A method of the plan with everything recorded of it.
#[derive(Debug)]
pub struct MethodRecord<'a> {
    /// The method.
    pub method: &'a Method,
    /// All its attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// How it ended, by the attempt that counts.
    pub outcome: Outcome,
    parts: Vec<Part>,
}

impl<'a> MethodRecord<'a> {
    /// Reads the records of a method of a run whose newest session has this number, 0 without any.
    ///
    /// # Errors
    /// A record cannot be used, or belongs to another run.
    pub fn read(
        run: &RunDir,
        plan: &Plan,
        method: &'a Method,
        newest_session: u32,
    ) -> Result<Self, Error> {
        let attempts = state::own_attempts(run, &plan.nonce, &method.id)?;
        let record = Self {
            outcome: outcome(plan, method, &attempts, newest_session),
            parts: parts(&plan.protocol, method),
            method,
            attempts,
        };
        record.has_its_answers()?;
        Ok(record)
    }

    /// A method that answered everything has a checkpoint of everything: they are durable before its terminal record is.
    fn has_its_answers(&self) -> Result<(), Error> {
        let (Outcome::Completed | Outcome::DatasetErrors { .. }, Some(attempt)) =
            (&self.outcome, self.counting())
        else {
            return Ok(());
        };
        let lost = |part: &&Part| attempt.answer(&self.parts, **part).is_none();
        match self.parts.iter().find(lost) {
            None => Ok(()),
            Some(part) => Err(Error::Record(RecordError::Damaged {
                path: attempt.dir.join("checkpoints.log"),
                problem: format!(
                    "the record of {} is gone though the attempt ended as {}; restore the file, or remove the attempt to have it run again",
                    part.label(),
                    self.outcome
                ),
            })),
        }
    }

    /// The attempt that counts.
    pub fn counting(&self) -> Option<&Attempt> {
        state::counting(&self.attempts)
    }

    /// The terminal records of the attempts that the result rests on: the one that counts, and those it inherits from.
    pub fn contributing(&self) -> impl Iterator<Item = &Terminal> {
        let counting = self.counting();
        let inherited = counting.map_or(&[][..], Attempt::inherited);
        let rests_on = move |attempt: &&Attempt| {
            counting.is_some_and(|counting| counting.id == attempt.id)
                || inherited.iter().any(|one| one.from == attempt.id)
        };
        let resting = self.attempts.iter().filter(rests_on);
        resting.filter_map(|attempt| attempt.terminal.as_ref())
    }

    fn terminal(&self) -> Option<&Terminal> {
        self.counting()?.terminal.as_ref()
    }

    /// Seconds from spawn to verdict; 0 of a method that never ran.
    pub fn wall_seconds(&self) -> f64 {
        self.terminal()
            .map_or(0.0, |terminal| terminal.wall_seconds)
    }

    /// The numbers for a sentence.
    pub fn numbers(&self, plan: &Plan) -> Numbers {
        Numbers::of(self.counting(), &self.parts, plan.policy.budget_seconds)
    }

    /// What is known of the method on dataset number `dataset`. Scores are read here, one dataset at a time.
    ///
    /// # Errors
    /// A score file is not the one its checkpoint promises.
    pub fn result(&self, plan: &Plan, dataset: usize) -> Result<DatasetResult, Error> {
        if let Some(reason) = self.method.exclusion(&plan.protocol.datasets()[dataset]) {
            return Ok(DatasetResult::NotApplicable(reason));
        }
        let validation = Part {
            dataset,
            role: Role::Validation,
        };
        let validation_scores = if self.parts.contains(&validation) {
            match self.scores(dataset, Role::Validation)? {
                Ok((scores, _)) => Some(scores),
                Err((error, _)) => return Ok(self.failed(plan, error, "validation data: ", 0.0)),
            }
        } else {
            None
        };
        Ok(match self.scores(dataset, Role::Test)? {
            Ok((scores, elapsed_seconds)) => DatasetResult::Scored {
                scores,
                validation_scores,
                elapsed_seconds,
            },
            Err((error, elapsed)) => self.failed(plan, error, "", elapsed),
        })
    }

    /// The scores of a part with their seconds, or what the worker said instead, if it said anything.
    #[allow(clippy::type_complexity)] // Two ends of one answer; a name for either would hide what it is.
    fn scores(
        &self,
        dataset: usize,
        role: Role,
    ) -> Result<Result<(Vec<f64>, f64), (Option<String>, f64)>, Error> {
        let part = Part { dataset, role };
        let found = self.counting().and_then(|attempt| {
            let found = attempt.answer(&self.parts, part)?;
            Some((attempt, found))
        });
        let Some((attempt, Found { checkpoint, from })) = found else {
            return Ok(Err((None, 0.0)));
        };
        let elapsed = checkpoint.elapsed_seconds;
        match &checkpoint.answer {
            Answer::Scored { items, sha256 } => {
                // Attempts of a method lie beside each other.
                let dir = match from {
                    Some(from) => attempt.dir.with_file_name(from.to_string()),
                    None => attempt.dir.clone(),
                };
                let path = dir.join(checkpoint.part.score_file());
                Ok(Ok((read_scores(&path, *items, sha256)?, elapsed)))
            }
            Answer::Failed { error } => Ok(Err((Some(error.clone()), elapsed))),
        }
    }

    fn failed(
        &self,
        plan: &Plan,
        said: Option<String>,
        which: &str,
        elapsed_seconds: f64,
    ) -> DatasetResult {
        let error = match said {
            Some(said) => worker_error(which, &public::text(&said)),
            None => self.error(plan).unwrap_or_else(|| {
                let lost = Outcome::Infrastructure("the checkpoint is not there".into());
                lost.error_text(plan.policy.budget_seconds)
                    .unwrap_or_default()
            }),
        };
        DatasetResult::Failed {
            error,
            elapsed_seconds,
        }
    }

    /// The outcome without a path of this machine in its reason.
    fn published_outcome(&self) -> Outcome {
        Outcome::from_value(&public::value(&self.outcome.to_value()))
            .unwrap_or_else(|| self.outcome.clone())
    }

    /// What went wrong, with the worker's own words where it gave up; `None` when nothing did.
    fn error(&self, plan: &Plan) -> Option<String> {
        let error = self
            .published_outcome()
            .error_text(plan.policy.budget_seconds)?;
        let said = self
            .terminal()
            .and_then(|terminal| terminal.facts.get("worker_error")?.as_str());
        Some(with_last_words(error, said.map(public::text).as_deref()))
    }

    /// Its entry in `metadata.execution_failures`; `None` when nothing failed.
    pub fn failure(&self, plan: &Plan) -> Option<Value> {
        let error = self.error(plan)?;
        Some(proctor_protocol::bundle::execution_failure(
            &self.method.id,
            &error,
            self.wall_seconds(),
        ))
    }

    /// Its entry in the reproducibility section: what was measured of its attempt that counts, if that ended.
    pub fn measurements(&self) -> Option<Value> {
        let (attempt, terminal) = (self.counting()?, self.terminal()?);
        let mut entry = Object::new();
        entry.insert("algorithm_id", self.method.id.as_str());
        entry.insert("attempt", attempt.id.to_string());
        entry.insert(
            "suspended_seconds",
            terminal.facts.get("suspended_seconds").cloned(),
        );
        for (key, value) in terminal_fields(terminal) {
            if MEASURED.contains(&key) {
                entry.insert(key, value);
            }
        }
        Some(Value::Object(public::object(&entry)))
    }

    /// Its entry in `metadata.supervised_executions`.
    pub fn supervised(&self, plan: &Plan) -> Object {
        let mut entry = Object::new();
        entry.insert("outcome", self.outcome.to_value());
        entry.insert("charged", self.outcome.charged());
        entry.insert("budget_seconds", plan.policy.budget_seconds);
        entry.insert("attempts", self.attempts.len());
        let numbers = self.numbers(plan);
        entry.insert("datasets_asked", numbers.total);
        entry.insert("datasets_scored", numbers.done);
        let attempt = self.counting();
        entry.insert("attempt", attempt.map(|attempt| attempt.id.to_string()));
        if let Some(started) = attempt.and_then(|attempt| attempt.started.as_ref()) {
            entry.insert("host", started.host.as_str());
            entry.insert("cores", started.cores.len());
            entry.insert("started_utc", started.started_utc.as_str());
        }
        if let Some(terminal) = self.terminal() {
            for (key, value) in terminal_fields(terminal) {
                entry.insert(key, value);
            }
        }
        if self.attempts.len() > 1 {
            entry.insert(
                "earlier_seconds",
                attempt.map_or(0.0, Attempt::earlier_seconds),
            );
            entry.insert("history", self.history());
        }
        public::object(&entry)
    }

    /// Every attempt in short, oldest first: a method with one clean attempt must be told from one with three.
    fn history(&self) -> Vec<Value> {
        let counts = self.counting().map(|attempt| &attempt.id);
        let entry = |attempt: &Attempt| {
            let started = attempt.started.as_ref();
            let counting = counts == Some(&attempt.id);
            let terminal = attempt.terminal.as_ref();
            let outcome = match (terminal, started) {
                (Some(terminal), _) => terminal.outcome.clone(),
                (None, None) => Outcome::Infrastructure("no worker was started".into()),
                (None, Some(_)) if counting => self.outcome.clone(),
                (None, Some(_)) => cut_off(),
            };
            object! {
                "attempt" => attempt.id.to_string(),
                "counts" => counting,
                "reason" => started.map(|started| started.ancestry.reason.name()),
                "started_utc" => started.map(|started| started.started_utc.as_str()),
                "outcome" => outcome.to_value(),
                "wall_seconds" => terminal.map(|terminal| terminal.wall_seconds),
                "earlier_seconds" => attempt.earlier_seconds(),
                "inherited" => attempt.inherited().len(),
                "checkpoints" => attempt.checkpoints.len(),
            }
        };
        self.attempts.iter().map(entry).collect()
    }
}

/// The fields of a terminal record that say how long and with how much a method ran.
const MEASURED: [&str; 6] = [
    "wall_seconds",
    "boottime_seconds",
    "cpu_seconds",
    "cpu_exact",
    "peak_memory_bytes",
    "measured",
];

/// The fields of a terminal record that are published, apart from the outcome.
fn terminal_fields(terminal: &Terminal) -> Vec<(&'static str, Value)> {
    let ended_as = |field: &str| {
        terminal
            .ended_as
            .as_ref()
            .and_then(|ended| ended.get(field))
            .cloned()
    };
    vec![
        ("wall_seconds", terminal.wall_seconds.into()),
        ("boottime_seconds", terminal.boottime_seconds.into()),
        ("cpu_seconds", terminal.cpu_seconds.into()),
        ("cpu_exact", terminal.cpu_exact.into()),
        ("peak_memory_bytes", terminal.peak_memory_bytes.into()),
        ("measured", terminal.measured.clone()),
        ("exit_code", ended_as("exit_code").into()),
        ("signal", ended_as("signal").into()),
        ("isolation", terminal.isolation.clone()),
        ("facts", terminal.facts.clone()),
        ("worker", terminal.worker.as_str().into()),
        ("ended_utc", terminal.ended_utc.as_str().into()),
    ]
}

/// How many characters of a worker's last words stand in each of its rows; its attempt record has more.
const LAST_WORDS: usize = 500;

/// An error with what the worker said before it gave up.
fn with_last_words(error: String, said: Option<&str>) -> String {
    match said {
        Some(said) => {
            let said: String = said.chars().take(LAST_WORDS).collect();
            format!("{error}; the worker said: \"{said}\"")
        }
        None => error,
    }
}

/// A worker's own words as an error text, `<Type>: <message>`. Words that have no type get one, and so do words that
/// would read as if the failure were ours.
fn worker_error(which: &str, said: &str) -> String {
    let is_type = |word: &str| {
        let mut characters = word.chars();
        characters
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic())
            && characters.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
    };
    match said.split_once(": ") {
        Some((word, _)) if which.is_empty() && is_type(word) && word != "NotCharged" => {
            said.to_owned()
        }
        _ => format!("DatasetError: {which}{said}"),
    }
}

/// How an attempt ended whose supervisor did not live to say it.
fn cut_off() -> Outcome {
    Outcome::Infrastructure("supervisor lost".into())
}

/// How a method ended, by the newest attempt that started.
fn outcome(plan: &Plan, method: &Method, attempts: &[Attempt], newest_session: u32) -> Outcome {
    if let Some(reason) = not_applicable(&plan.protocol, method) {
        return Outcome::NotApplicable(reason);
    }
    match state::counting(attempts) {
        None => Outcome::Infrastructure("not started".into()),
        Some(attempt) => match &attempt.terminal {
            Some(terminal) => terminal.outcome.clone(),
            // A later session began only when nothing of this one ran any more.
            None if attempt.id.submission < newest_session => cut_off(),
            None => Outcome::Infrastructure(
                "the attempt has no terminal record: it goes on, or its supervisor was lost".into(),
            ),
        },
    }
}

/// An attempt as it is published: every record of it, and whether it counts.
pub fn attempt_evidence(attempt: &Attempt, counts: bool, budget: f64) -> Value {
    let started = attempt.started.as_ref().map(|started| {
        object! {
            "run_id" => started.run_id.as_str(),
            "method_id" => started.method_id.as_str(),
            "started_utc" => started.started_utc.as_str(),
            "host" => started.host.as_str(),
            "cores" => started.cores.clone(),
            "budget_seconds" => started.budget_seconds,
            "ancestry" => ancestry_evidence(&started.ancestry),
        }
    });
    let checkpoints = attempt.checkpoints.iter().map(checkpoint_evidence);
    public::value(&object! {
        "schema" => "proctor.attempt/1",
        "attempt" => attempt.id.to_string(),
        "counts" => counts,
        "started" => started,
        "checkpoints" => checkpoints.collect::<Vec<Value>>(),
        "torn_tail_dropped" => attempt.torn_tail,
        "terminal" => attempt.terminal.as_ref().map(Terminal::to_value),
        "clocks" => format!(
            "wall_seconds: monotonic clock; boottime_seconds: counts suspension too; both from spawn to verdict, budget {} s",
            float_text(budget)
        ),
    })
}

/// What an attempt has from those before it; nothing is said of a first one.
fn ancestry_evidence(ancestry: &Ancestry) -> Option<Value> {
    let inherited = |one: &Inherited| {
        let mut entry = checkpoint_evidence(&one.checkpoint);
        if let Some(entry) = entry.as_object_mut() {
            entry.insert("attempt", one.from.to_string());
        }
        entry
    };
    let mut value = ancestry.to_value();
    let object = value.as_object_mut()?;
    let inherited: Vec<Value> = ancestry.inherited.iter().map(inherited).collect();
    object.insert("inherited", inherited);
    (ancestry.reason != Reason::First).then_some(value)
}

fn checkpoint_evidence(checkpoint: &Checkpoint) -> Value {
    let (items, sha256, error) = match &checkpoint.answer {
        Answer::Scored { items, sha256 } => (Some(count(*items)), Some(sha256.as_str()), None),
        Answer::Failed { error } => (None, None, Some(error.as_str())),
    };
    object! {
        "dataset" => checkpoint.part.dataset,
        "role" => checkpoint.part.role.name(),
        "elapsed_seconds" => checkpoint.elapsed_seconds,
        "at_seconds" => checkpoint.at_seconds,
        "items" => items,
        "scores_sha256" => sha256,
        "error" => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_of_a_worker_follow_what_happened() {
        let error = || "WorkerExit: exit code 3".to_owned();
        assert_eq!(with_last_words(error(), None), error());
        assert_eq!(
            with_last_words(error(), Some("no model")),
            "WorkerExit: exit code 3; the worker said: \"no model\""
        );
        let long = with_last_words(error(), Some(&"é".repeat(2000)));
        assert!(long.chars().count() < 600);
    }

    #[test]
    fn a_worker_cannot_make_its_failure_ours() {
        assert_eq!(worker_error("", "ValueError: no"), "ValueError: no");
        assert_eq!(worker_error("", "no parser"), "DatasetError: no parser");
        assert_eq!(
            worker_error("", "two words: no"),
            "DatasetError: two words: no"
        );
        assert_eq!(
            worker_error("", "NotCharged: x"),
            "DatasetError: NotCharged: x"
        );
        assert_eq!(
            worker_error("validation data: ", "ValueError: no"),
            "DatasetError: validation data: ValueError: no"
        );
    }
}
