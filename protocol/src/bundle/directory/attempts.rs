//! The records of attempts against what the payload says of its methods.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use proctor_wire::Family;
use rayon::prelude::*;

use super::scores::{self, Promise};
use super::{Directory, Evidence, below, entries, name};
use crate::bundle::Finding;
use crate::bundle::score::ScoreArtifact;
use crate::canonical::{Limits, Value, canonical, float_text};
use crate::frozen::{DatasetEntry, Protocol, ThresholdPolicy};
use crate::input::read_json;
use crate::outcome::Outcome;
use crate::report::{Row, Status};

const RULE: &str = "evidence";
const SCHEMA: &str = "proctor.attempt/1";

/// Most records of attempts in one bundle.
const MAX_RECORDS: usize = 100_000;

/// A record is small: a checkpoint for every dataset, and the facts of one process.
const LIMITS: Limits = Limits {
    bytes: 16 << 20,
    depth: 32,
    nodes: 500_000,
};

/// Fields of an entry of `supervised_executions` that the terminal record has under the same name.
const TERMINAL_FIELDS: [&str; 11] = [
    "outcome",
    "wall_seconds",
    "boottime_seconds",
    "cpu_seconds",
    "cpu_exact",
    "peak_memory_bytes",
    "measured",
    "isolation",
    "facts",
    "worker",
    "ended_utc",
];

/// A record of an attempt.
struct Record {
    /// Where it is, for messages.
    shown: String,
    value: Value,
}

impl Record {
    fn finding(&self, field: &str, problem: &str) -> Finding {
        Finding::new(RULE, format!("{}: {field}", self.shown), problem)
    }

    /// The number of the attempt and of its restart, from its name `NNNN.task.rK`.
    fn place(&self) -> Option<(u64, u64)> {
        let mut parts = self.field(&["attempt"]).as_str()?.split('.');
        let number = parts.next()?.parse().ok()?;
        let restart = parts.next_back()?.strip_prefix('r')?.parse().ok()?;
        Some((number, restart))
    }

    fn field(&self, path: &[&str]) -> &Value {
        get(&self.value, path)
    }
}

/// What an attempt inherited, the attempt it names has in its own record.
fn check_inherited(record: &Record, records: &[Record]) -> Result<(), Finding> {
    const FIELDS: [&str; 6] = [
        "dataset",
        "role",
        "elapsed_seconds",
        "items",
        "scores_sha256",
        "error",
    ];
    let inherited = record.field(&["started", "ancestry", "inherited"]);
    for one in inherited.as_array().unwrap_or_default() {
        let from = get(one, &["attempt"]).as_str();
        let mut older = records.iter().filter(|other| {
            other.field(&["attempt"]).as_str() == from && other.place() < record.place()
        });
        let same = |other: &Value| {
            FIELDS
                .iter()
                .all(|field| get(other, &[field]) == get(one, &[field]))
        };
        let stands = older.any(|other| {
            let checkpoints = other.field(&["checkpoints"]).as_array();
            checkpoints.unwrap_or_default().iter().any(same)
        });
        if !stands {
            let from = from.unwrap_or("no attempt");
            let problem = format!("holds a checkpoint that the record of {from} does not have");
            return Err(record.finding("started.ancestry.inherited", &problem));
        }
    }
    Ok(())
}

fn get<'a>(mut value: &'a Value, path: &[&str]) -> &'a Value {
    for key in path {
        value = value.get(key).unwrap_or(&Value::Null);
    }
    value
}

/// Compares every record with the payload; how much evidence they are.
pub(super) fn check(
    directory: &Directory<'_>,
    protocol: &Protocol,
    folders: &[PathBuf],
    runs: &[Option<String>],
) -> Result<Evidence, Finding> {
    let mut records: BTreeMap<String, Vec<Record>> = BTreeMap::new();
    let mut count = 0;
    for (folder, run) in folders.iter().zip(runs) {
        for of_method in entries(&folder.join("attempts"))? {
            for path in entries(&of_method)? {
                let record = read(directory.root, &path)?;
                let of = record.field(&["started", "run_id"]);
                if !of.is_null() && of.as_str() != run.as_deref() {
                    let problem = "is not the run of the plan beside it";
                    return Err(record.finding("started.run_id", problem));
                }
                count += 1;
                if count > MAX_RECORDS {
                    let problem = format!("has more than the {MAX_RECORDS} records allowed");
                    return Err(Finding::new(RULE, "evidence", problem));
                }
                let id = name(&of_method).to_owned();
                records.entry(id).or_default().push(record);
            }
        }
    }
    let methods = Methods::of(directory);
    let score_files = scores::listed(directory)?;
    let validation_files = scores::of_validation(folders)?;
    if let Some((id, records)) = records
        .iter()
        .find(|(id, _)| !methods.rows.contains_key(id.as_str()))
    {
        let shown = records.first().map_or("", |record| &record.shown);
        let problem = format!("is of method {id}, which is not in the payload");
        return Err(Finding::new(RULE, shown, problem));
    }
    let mut promises = Vec::new();
    let (mut proved, mut unproved) = (0_usize, 0_usize);
    for (id, rows) in &methods.rows {
        let entry = methods.entries.get(id).copied();
        match records.get(*id) {
            None if never_ran(entry, rows) => {}
            None => unproved += 1,
            Some(records) => {
                let (whole, of_method) = Judged {
                    protocol,
                    id,
                    entry,
                    rows,
                    score_files: &score_files,
                    validation_files: &validation_files,
                }
                .check(records)?;
                promises.extend(of_method);
                *(if whole { &mut proved } else { &mut unproved }) += 1;
            }
        }
    }
    let check = |promise: &Promise| promise.check(directory.root, folders);
    let files: Vec<Result<(), Finding>> = promises.par_iter().map(check).collect();
    files.into_iter().collect::<Result<(), Finding>>()?;
    Ok(match (proved, unproved, records.is_empty()) {
        (_, 0, _) => Evidence::Full,
        (0, _, true) => Evidence::None,
        _ => Evidence::Partial,
    })
}

fn read(root: &Path, path: &Path) -> Result<Record, Finding> {
    let shown = below(root, path).into_owned();
    let value = read_json(path, LIMITS)
        .map_err(|error| Finding::new(RULE, shown.as_str(), error.to_string()))?;
    let record = Record { shown, value };
    if record.field(&["schema"]).as_str() != Some(SCHEMA) {
        return Err(record.finding("schema", &format!("must be {SCHEMA:?}")));
    }
    Ok(record)
}

/// True of a method to which nothing applies: no worker was started for it.
fn never_ran(entry: Option<(usize, &Value)>, rows: &[&Row]) -> bool {
    let outcome = entry.and_then(|(_, entry)| Outcome::from_value(entry.get("outcome")?));
    matches!(outcome, Some(Outcome::NotApplicable(_)))
        && rows
            .iter()
            .all(|row| row.status == Some(Status::NotApplicable))
}

/// What the payload says of each method.
struct Methods<'a> {
    rows: BTreeMap<&'a str, Vec<&'a Row>>,
    /// The entry of `supervised_executions`, with its place.
    entries: HashMap<&'a str, (usize, &'a Value)>,
}

impl<'a> Methods<'a> {
    fn of(directory: &Directory<'a>) -> Self {
        let mut rows: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
        for row in directory.document.rows() {
            rows.entry(&row.algorithm_id).or_default().push(row);
        }
        let list = directory.document.metadata().get("supervised_executions");
        let list = list.and_then(Value::as_array).unwrap_or_default();
        let id = |entry: &'a Value| entry.get("algorithm_id").and_then(Value::as_str);
        let entries = list
            .iter()
            .enumerate()
            .filter_map(|(at, entry)| Some((id(entry)?, (at, entry))));
        Self {
            rows,
            entries: entries.collect(),
        }
    }
}

/// A method and its records.
struct Judged<'a> {
    protocol: &'a Protocol,
    id: &'a str,
    entry: Option<(usize, &'a Value)>,
    rows: &'a [&'a Row],
    /// Names of the score files.
    score_files: &'a BTreeSet<String>,
    /// Names of the files of validation scores.
    validation_files: &'a BTreeSet<String>,
}

impl Judged<'_> {
    /// True when the records hold the whole attempt that counts; and what they say of its score files.
    fn check(&self, records: &[Record]) -> Result<(bool, Vec<Promise>), Finding> {
        let mut counting = records
            .iter()
            .filter(|record| record.field(&["counts"]).as_bool() == Some(true));
        let one = counting.next();
        if let Some(other) = counting.next() {
            return Err(other.finding("counts", "another attempt of the method counts already"));
        }
        let Some((at, entry)) = self.entry else {
            let at = "metadata.supervised_executions";
            let shown = records.first().map_or("", |record| &record.shown);
            let problem = format!("has no entry of method {}, which {shown} is about", self.id);
            return Err(Finding::new(RULE, at, problem));
        };
        let place = |field: &str| format!("metadata.supervised_executions[{at}].{field}");
        let same = |field: &str, found: &Value, record: &Record, expected: &Value| {
            if found == expected {
                return Ok(());
            }
            let why = format!("{} says", record.shown);
            let expected = canonical(expected);
            Err(Finding::differs(
                RULE,
                place(field),
                (&expected, &why),
                &canonical(found),
            ))
        };
        let attempts = get(entry, &["attempts"]);
        if *attempts != Value::from(records.len()) {
            let why = format!("records in evidence/attempts/{}:", self.id);
            let expected = records.len().to_string();
            return Err(Finding::differs(
                RULE,
                place("attempts"),
                (&expected, &why),
                &canonical(attempts),
            ));
        }
        let Some(record) = one else {
            return Ok((false, Vec::new()));
        };
        let started = |other: &&Record| !other.field(&["started"]).is_null();
        if let Some(newer) = records
            .iter()
            .filter(started)
            .find(|other| other.place() > record.place())
        {
            let problem = "must be true: it is newer than the attempt that counts";
            return Err(newer.finding("counts", problem));
        }
        same(
            "attempt",
            get(entry, &["attempt"]),
            record,
            record.field(&["attempt"]),
        )?;
        for field in ["host", "started_utc"] {
            same(
                field,
                get(entry, &[field]),
                record,
                record.field(&["started", field]),
            )?;
        }
        self.check_started(record)?;
        check_inherited(record, records)?;
        self.check_history(records, &place)?;
        if record.field(&["terminal"]).is_null() {
            if get(entry, &["charged"]).as_bool() != Some(false) {
                let problem = "must be false: the attempt that counts has no terminal record";
                return Err(Finding::new(RULE, place("charged"), problem));
            }
            let promises = self.check_rows(record)?;
            return Ok((false, promises));
        }
        for field in TERMINAL_FIELDS {
            same(
                field,
                get(entry, &[field]),
                record,
                record.field(&["terminal", field]),
            )?;
        }
        for field in ["exit_code", "signal"] {
            same(
                field,
                get(entry, &[field]),
                record,
                record.field(&["terminal", "ended_as", field]),
            )?;
        }
        let promises = self.check_rows(record)?;
        let whole = self.has_score_files() && self.has_validation_files(&promises);
        Ok((whole, promises))
    }

    /// What the payload says of each attempt in short is what its record says.
    fn check_history(
        &self,
        records: &[Record],
        place: &impl Fn(&str) -> String,
    ) -> Result<(), Finding> {
        let entry = self.entry.map_or(&Value::Null, |(_, entry)| entry);
        let Some(history) = get(entry, &["history"]).as_array() else {
            return Ok(());
        };
        let named = |one: &Value| {
            let id = get(one, &["attempt"]).as_str();
            let mut records = records.iter();
            records.find(|record| record.field(&["attempt"]).as_str() == id)
        };
        if history.len() != records.len() || history.iter().any(|one| named(one).is_none()) {
            let problem = format!("is not of the records in evidence/attempts/{}", self.id);
            return Err(Finding::new(RULE, place("history"), problem));
        }
        for (at, one) in history.iter().enumerate() {
            let Some(record) = named(one) else { continue };
            let mut fields = vec![
                ("counts", record.field(&["counts"])),
                ("wall_seconds", record.field(&["terminal", "wall_seconds"])),
            ];
            let outcome = record.field(&["terminal", "outcome"]);
            if !outcome.is_null() {
                fields.push(("outcome", outcome));
            }
            for (field, expected) in fields {
                let found = get(one, &[field]);
                if found != expected {
                    let why = format!("{} says", record.shown);
                    let expected = canonical(expected);
                    return Err(Finding::differs(
                        RULE,
                        place(&format!("history[{at}].{field}")),
                        (&expected, &why),
                        &canonical(found),
                    ));
                }
            }
        }
        Ok(())
    }

    fn check_started(&self, record: &Record) -> Result<(), Finding> {
        let found = record.field(&["started", "method_id"]);
        if found.as_str() != Some(self.id) {
            return Err(record.finding("started.method_id", "is another method"));
        }
        let budget = record.field(&["started", "budget_seconds"]);
        let frozen = self.protocol.max_method_seconds();
        if budget.as_number() != Some(frozen) {
            let at = format!("{}: started.budget_seconds", record.shown);
            let frozen = float_text(frozen);
            return Err(Finding::differs(
                RULE,
                at,
                (&frozen, "the protocol says"),
                &canonical(budget),
            ));
        }
        Ok(())
    }

    /// True when every dataset with scores has its score file.
    fn has_score_files(&self) -> bool {
        self.every_scored(|entry| {
            self.score_files
                .contains(&ScoreArtifact::file_name(entry, self.id))
        })
    }

    /// True when every dataset with scores whose threshold was calibrated has the scores it was calibrated on, and the
    /// checkpoint of them. A method that ended before its test scores has no threshold, and needs neither.
    fn has_validation_files(&self, promises: &[Promise]) -> bool {
        if *self.protocol.threshold() != ThresholdPolicy::ValidationF1 {
            return true;
        }
        self.every_scored(|entry| {
            let file = ScoreArtifact::validation_file_name(entry, self.id);
            let kept = |one: &Promise| one.validation && one.file == file;
            entry.family != Family::Pair
                || (promises.iter().any(kept) && self.validation_files.contains(&file))
        })
    }

    /// True when `is` holds for every dataset that the method has scores of.
    fn every_scored(&self, is: impl Fn(&DatasetEntry) -> bool) -> bool {
        let mut scored = self.rows.iter().filter(|row| row.sample_count > 0);
        scored.all(|row| {
            let mut datasets = self.protocol.datasets().iter();
            datasets
                .find(|entry| *entry.name == *row.dataset_name)
                .is_some_and(&is)
        })
    }

    /// Every dataset with scores has its checkpoint, with its seconds. Gives what the checkpoints say of score files.
    fn check_rows(&self, record: &Record) -> Result<Vec<Promise>, Finding> {
        let list = |path: &[&str]| record.field(path).as_array().unwrap_or_default();
        let inherited = list(&["started", "ancestry", "inherited"]).iter();
        let checkpoints = inherited.chain(list(&["checkpoints"]));
        let datasets = self.protocol.datasets();
        let mut tests: HashMap<&str, &Value> = HashMap::new();
        let mut promises = Vec::new();
        for checkpoint in checkpoints {
            let dataset = get(checkpoint, &["dataset"]).as_int();
            let dataset = dataset.and_then(|at| datasets.get(usize::try_from(at).ok()?));
            let dataset = dataset.ok_or_else(|| {
                record.finding("checkpoints", "name a dataset that is not frozen")
            })?;
            let validation = match get(checkpoint, &["role"]).as_str() {
                Some("test") => false,
                Some("validation") => true,
                _ => return Err(record.finding("checkpoints", "have a role that is not known")),
            };
            if !validation {
                tests.insert(&dataset.name, checkpoint);
            }
            let items = get(checkpoint, &["items"]).as_int();
            let sha256 = get(checkpoint, &["scores_sha256"]).as_str();
            if let (Some(items), Some(sha256)) = (items, sha256) {
                promises.push(Promise {
                    validation,
                    file: if validation {
                        ScoreArtifact::validation_file_name(dataset, self.id)
                    } else {
                        ScoreArtifact::file_name(dataset, self.id)
                    },
                    items,
                    sha256: sha256.to_owned(),
                    record: record.shown.clone(),
                });
            }
        }
        for row in self.rows.iter().filter(|row| row.sample_count > 0) {
            let shown = |field: &str| {
                let (metric, name, data) = (&row.metric, &row.algorithm_name, &row.dataset_name);
                format!("per_dataset: {field} for {metric} of {name:?} on {data:?}")
            };
            let checkpoint = tests.get(&*row.dataset_name);
            let elapsed = checkpoint
                .filter(|one| get(one, &["items"]).as_int().is_some())
                .and_then(|one| get(one, &["elapsed_seconds"]).as_number());
            let Some(elapsed) = elapsed else {
                let problem = format!("is there, but {} has no checkpoint of scores", record.shown);
                return Err(Finding::new(RULE, shown("score"), problem));
            };
            if elapsed != row.elapsed_seconds {
                let why = format!("{} says", record.shown);
                return Err(Finding::differs(
                    RULE,
                    shown("elapsed_seconds"),
                    (&float_text(elapsed), &why),
                    &float_text(row.elapsed_seconds),
                ));
            }
        }
        Ok(promises)
    }
}
