//! A small run without rooms: two methods, two datasets, everything that is written on the way, and what it must leave.

use crate::attempt::{Ending, Exam, StderrLog};
use crate::bundle::{Published, check_inventory};
use crate::error::Error;
use crate::room::Isolation;
use crate::run::live::Live;
use crate::run::preflight::never_started;
use crate::run::{How, RETRIES, Session};
use crate::rundir::plan::{Machine, Plan, Policy, WorkerBinary};
use crate::rundir::record::{AttemptId, Part};
use crate::rundir::reserve::Reserve;
use crate::rundir::scores::read_scores;
use crate::rundir::session::Mode;
use crate::rundir::{Answer, RunDir, durable, state};
use proctor_protocol::canonical::{Value, read};
use proctor_protocol::freeze::freeze;
use proctor_protocol::frozen::{ExecutionLimits, LoadedEntry};
use proctor_protocol::method::{Method, load_methods};
use proctor_protocol::object;
use proctor_protocol::outcome::Outcome;
use proctor_wire::BlindDataset;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What was promised to be durable, in the order of the promises.
#[derive(Debug, Default, Clone)]
pub(super) struct Promised {
    plan: bool,
    /// With the last part that its attempt was asked for: that one counts with the terminal record only.
    checkpoints: Vec<(String, AttemptId, Part, bool)>,
    terminals: Vec<(String, AttemptId)>,
    bundle: Option<Published>,
}

/// How a run ended that was not killed.
#[derive(Debug)]
pub(super) struct Done {
    /// The first trouble with our records, as `run` tells it.
    pub(super) trouble: Option<Error>,
    /// Whether every method completed, by the bundle.
    pub(super) complete: bool,
    /// The errors of rows that are not charged.
    pub(super) not_charged: Vec<String>,
}

/// A run that can be driven.
#[derive(Debug)]
pub(super) struct Drive {
    plan: Plan,
    loaded: Vec<LoadedEntry>,
    pub(super) promised: Promised,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures")
}

impl Drive {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let methods = folder.path().join("methods.json");
        fs::write(&methods, r#"["Levenshtein", "GST"]"#).unwrap();
        let manifest = read(&fs::read(fixtures().join("manifest.json")).unwrap()).unwrap();
        let mut manifest = manifest.as_object().unwrap().clone();
        let datasets = manifest.get("datasets").unwrap().as_array().unwrap()[..2].to_vec();
        manifest.insert("datasets", datasets);
        let base = std::path::absolute(fixtures()).unwrap();
        let protocol = freeze(&Value::Object(manifest), &base, None).unwrap();
        let policy = Policy {
            budget_seconds: 3.0,
            jobs: 1,
            core_sets: vec![vec![0]],
            limits: ExecutionLimits::default(),
            load: None,
            official: false,
            containment: None,
            degraded: Vec::new(),
            worker: WorkerBinary {
                path: None,
                sha256: String::new(),
            },
        };
        let plan = Plan {
            run_id: "r1".into(),
            nonce: "n1".into(),
            created_utc: "2026-01-01T00:00:00Z".into(),
            version: "0".into(),
            binary_sha256: "00".into(),
            command_line: vec!["proctor".into()],
            inputs: Vec::new(),
            basename: "board".into(),
            protocol,
            methods: load_methods(&methods).unwrap(),
            policy,
            machine: Machine {
                host: "h".into(),
                system: "Linux".into(),
                release: "6".into(),
                architecture: "x".into(),
                processor: "p".into(),
            },
        };
        Self {
            loaded: plan.protocol.verify_data().unwrap(),
            plan,
            promised: Promised::default(),
        }
    }

    /// The id of a method, by its number.
    pub(super) fn method_id(&self, number: usize) -> String {
        self.plan.methods[number].id.clone()
    }

    /// What `run` does with a directory that holds no run.
    pub(super) fn run(&mut self, root: &Path) -> Result<Done, Error> {
        self.promised = Promised::default();
        never_started(root)?;
        durable::create_dir_all(root)?;
        durable::sweep(root);
        self.plan.write(&RunDir::new(root))?;
        self.promised.plan = true;
        self.resume(root)
    }

    /// What a later start does with whatever it finds.
    pub(super) fn restart(&mut self, root: &Path) -> Result<Done, Error> {
        if !self.promised.plan && !root.join("run.json").exists() {
            return self.run(root);
        }
        self.resume(root)
    }

    /// A session: attempts for the methods that are owed one, and a bundle.
    pub(super) fn resume(&mut self, root: &Path) -> Result<Done, Error> {
        let session = self.session(root)?;
        let done = self.conduct(&session);
        self.loaded = session.into_loaded();
        done
    }

    fn session(&mut self, root: &Path) -> Result<Session, Error> {
        let how = How {
            mode: Mode::Continue,
            retry_failed: false,
            // A sweep kills as often in a row as it takes for a method to be set aside, which is another rule.
            retries: RETRIES + 1,
        };
        let loaded = std::mem::take(&mut self.loaded);
        Session::of_records(RunDir::new(root), loaded, how).map_err(|(error, loaded)| {
            self.loaded = loaded;
            error
        })
    }

    fn conduct(&mut self, session: &Session) -> Result<Done, Error> {
        let mut trouble = None;
        if !session.is_settled() {
            session.begin()?;
            self.promised.plan = true;
            for number in 0..self.plan.methods.len() {
                if let Err(error) = self.attempt(session, number) {
                    trouble.get_or_insert(error);
                }
            }
            // As `run`: without it the next session looks for a process.
            let _ = session
                .run_dir()
                .end_session(session.number(), "2026-01-01T00:00:09Z");
        }
        Reserve::of(session.run_dir().root()).give_back();
        match (self.publish(session), trouble) {
            (Ok((complete, not_charged)), trouble) => Ok(Done {
                trouble,
                complete,
                not_charged,
            }),
            (Err(error), None) => Err(error),
            (Err(_), Some(trouble)) => Err(trouble),
        }
    }

    fn attempt(&mut self, session: &Session, number: usize) -> Result<(), Error> {
        let Some(assignment) = session.assignment(number) else {
            return Ok(());
        };
        let method: &Method = &session.plan().methods[number];
        for part in &assignment.parts {
            let durable = |(of, _, known, last): &&(String, AttemptId, Part, bool)| {
                *of == method.id && known == part && !last
            };
            if let Some((_, id, ..)) = self.promised.checkpoints.iter().find(durable) {
                let text = format!("{} is asked again though {id} has it", part.label());
                return Err(Error::Infrastructure(text));
            }
        }
        let desk = session.desk(number, assignment.ancestry.clone(), &[0])?;
        let id = desk.id.clone();
        if let Some(verdict) = &assignment.verdict {
            desk.settle(verdict.clone(), Value::Null)?;
            self.promised.terminals.push((method.id.clone(), id));
            return Ok(());
        }
        let live = Live::default();
        let parts = &assignment.parts;
        let mut exam = desk.exam(session, method, parts, 1, &live)?;
        let mut outcome = Outcome::Completed;
        let said = StderrLog::create(&desk.dir.join("stderr"), 100).and_then(|mut log| {
            log.write(&[b'x'; 80])?;
            log.finish()
        });
        if let Err(error) = said {
            let place = desk.dir.join("stderr");
            outcome = Outcome::Infrastructure(format!("{}: {error}", place.display()));
        }
        for (at, part) in parts.iter().enumerate() {
            if outcome != Outcome::Completed {
                break;
            }
            let stored = exam.open(at as u32).and_then(|blind| {
                let scores = scores(&blind, number, *part);
                exam.checkpoint(at as u32, scores, 0.25)
            });
            let last = at + 1 == parts.len();
            match stored {
                Ok(()) => {
                    let promise = (method.id.clone(), id.clone(), *part, last);
                    self.promised.checkpoints.push(promise);
                }
                Err(error) => {
                    outcome = Outcome::Infrastructure(format!("storing dataset {at}: {error}"));
                }
            }
        }
        let ending = Ending {
            wall_seconds: 0.5,
            ..Ending::not_started(outcome, Isolation::none())
        };
        desk.close(session, method, &ending, Value::Null)?;
        self.promised.terminals.push((method.id.clone(), id));
        Ok(())
    }

    /// What `merge` does, and what the bundle says.
    pub(super) fn merge(&mut self, root: &Path) -> Result<(bool, Vec<String>), Error> {
        let session = self.session(root)?;
        let merged = self.publish(&session);
        self.loaded = session.into_loaded();
        merged
    }

    fn publish(&mut self, session: &Session) -> Result<(bool, Vec<String>), Error> {
        let publication = session.publish()?;
        let document = &publication.document;
        let errors = document.rows().iter();
        let errors = errors.filter_map(|row| Some(row.error.as_ref()?.to_string()));
        let not_charged = errors.filter(|text| text.starts_with("NotCharged: "));
        let merged = (!document.is_incomplete(), not_charged.collect());
        self.promised.bundle = Some(publication.bundle);
        Ok(merged)
    }

    /// Checks that everything promised is there, in the directory `root`.
    pub(super) fn keeps_its_promises(&self, root: &Path) -> Result<(), String> {
        let run = RunDir::new(root);
        if self.promised.plan && Plan::read(&run).map_err(|error| error.to_string())? != self.plan {
            return Err("the plan is another one".into());
        }
        let attempt = |method: &str, id: &AttemptId| {
            state::read_attempt(id.clone(), run.attempt_dir(method, id))
                .map_err(|error| error.to_string())
        };
        for (method, id, part, _) in &self.promised.checkpoints {
            let attempt = attempt(method, id)?;
            let what = || format!("the checkpoint of {} in {id} of {method}", part.label());
            let mut all = attempt.checkpoints.iter();
            let checkpoint = all.find(|one| one.part == *part).ok_or_else(what)?;
            let Answer::Scored { items, sha256 } = &checkpoint.answer else {
                return Err(what());
            };
            let file = attempt.dir.join(part.score_file());
            read_scores(&file, *items, sha256).map_err(|error| error.to_string())?;
        }
        for (method, id) in &self.promised.terminals {
            if attempt(method, id)?.terminal.is_none() {
                return Err(format!("the terminal record of {id} of {method}"));
            }
        }
        if let Some(bundle) = &self.promised.bundle {
            let number = bundle.path.file_name().unwrap();
            let found = check_inventory(&run.merged_dir().join(number));
            if found.map_err(|error| error.to_string())? != bundle.root_sha256 {
                return Err("the bundle is another one".into());
            }
            let link = fs::read_link(run.bundle_link()).map_err(|error| error.to_string())?;
            if link.file_name() < Some(number) {
                return Err(format!("`bundle` leads to {}", link.display()));
            }
        }
        Ok(())
    }
}

/// Scores that differ by method, dataset and item.
fn scores(blind: &BlindDataset, method: usize, part: Part) -> Vec<f64> {
    let shift = part.dataset as u64 * 3 + method as u64 * 5;
    let score = |item| ((item * 7 + shift) % 11) as f64 / 11.0;
    (0..blind.item_count()).map(score).collect()
}

/// Named pieces of a bundle.
pub(super) type Essence = BTreeMap<String, Vec<u8>>;

/// Everything of the newest bundle that two runs of one plan have in common: rows, ranks, and the score files.
pub(super) fn essence(root: &Path) -> Essence {
    let bundle = RunDir::new(root).bundle_link();
    let payload = read(&fs::read(bundle.join("board.json")).unwrap()).unwrap();
    let mut essence = BTreeMap::new();
    for part in ["per_dataset", "aggregate"] {
        let text = proctor_protocol::canonical::canonical(payload.get(part).unwrap());
        essence.insert(part.to_owned(), text.into_bytes());
    }
    for entry in fs::read_dir(bundle.join("scores")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        essence.insert(name, fs::read(entry.path()).unwrap());
    }
    check_inventory(&bundle).unwrap();
    let about = read(&fs::read(bundle.join("bundle.json")).unwrap()).unwrap();
    let said = object! { "complete" => true, "evidence" => "full" };
    for key in ["complete", "evidence"] {
        assert_eq!(about.get(key), said.get(key), "{key}");
    }
    essence
}
