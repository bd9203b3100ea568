//! A session: one process driving a run, from what the records say to where nothing of it runs any more. The first session
//! of a run and every later one are the same thing; the first finds no attempts.

use super::alive::{in_use, refuse_if_alive};
use super::attempt::Desk;
use super::conduct::{Summary, conduct};
use super::observe::{Entry, Observer};
use super::owed::owed;
use super::preflight::{self, Prepared};
use super::publication::Publication;
use super::stop::Stop;
use super::work::{Assignment, How};
use super::{host, scratch, unchanged};
use crate::error::Error;
use crate::merge::{Merged, merge_run};
use crate::render::{brief, counted, plain};
use crate::room::Rung;
use crate::rundir::durable::DiskResult;
use crate::rundir::plan::{self, Plan, datasets, parts};
use crate::rundir::record::{Part, Role};
use crate::rundir::session::{Mode, Request};
use crate::rundir::{Ancestry, RunDir, Supervisor};
use crate::schedule::core_sets;
use proctor_protocol::dataset::Dataset;
use proctor_protocol::frozen::LoadedEntry;
use std::io::ErrorKind;
use std::path::Path;

/// One process driving a run. Nothing is written before it is conducted.
#[derive(Debug)]
pub struct Session {
    pub(super) run: RunDir,
    pub(super) plan: Plan,
    pub(super) loaded: Vec<LoadedEntry>,
    pub(super) rung: Rung,
    pub(super) number: u32,
    how: How,
    /// What to do for each method of the plan.
    assignments: Vec<Option<Assignment>>,
}

impl Session {
    /// The first session of a run that was just created.
    pub fn first(prepared: Prepared, plan: Plan) -> Self {
        let assignments = plan.methods.iter().map(|method| {
            let asked = parts(&plan.protocol, method);
            let first = || Assignment {
                ancestry: Ancestry::default(),
                parts: asked.clone(),
                verdict: None,
            };
            (!asked.is_empty()).then(first)
        });
        Self {
            assignments: assignments.collect(),
            run: prepared.run,
            loaded: prepared.loaded,
            rung: prepared.rung,
            number: 1,
            how: How {
                mode: Mode::Run,
                retry_failed: false,
                retries: super::work::RETRIES,
            },
            plan,
        }
    }

    /// The next session of a run, from its records alone.
    ///
    /// # Errors
    /// The directory holds no run, somebody drives it, something is not what it was planned with, or a record cannot be
    /// used.
    pub fn open(run_dir: &Path, how: How) -> Result<Self, Error> {
        let root = std::path::absolute(run_dir)
            .map_err(|error| Error::input(format!("{}: {error}", run_dir.display())))?;
        let run = RunDir::new(&root);
        let plan = Plan::read(&run)?;
        // The number is taken before anything else is read: whoever goes on meanwhile takes it first.
        let sessions = run.sessions()?;
        let newest = sessions.last().map_or(0, |last| last.number);
        if let Some(last) = sessions.last() {
            refuse_if_alive(&run, last)?;
        }
        let owed = owed(&run, &plan, how)?;
        let number = after(&run, newest.max(owed.newest))?;
        let assignments = owed.assignments;
        let mode = if sessions.is_empty() {
            Mode::Run
        } else {
            how.mode
        };
        let how = How { mode, ..how };
        let rung = Self::check(&run, &plan, &assignments)?;
        let loaded = plan
            .protocol
            .verify_data()
            .map_err(|error| error.in_file(&run.plan_file()))?;
        Ok(Self {
            run,
            plan,
            loaded,
            rung,
            number,
            how,
            assignments,
        })
    }

    /// Refuses to go on with anything else than what was planned, or on a machine that gives less. The rung to use.
    fn check(run: &RunDir, plan: &Plan, assignments: &[Option<Assignment>]) -> Result<Rung, Error> {
        let owed = || {
            let pairs = plan.methods.iter().zip(assignments);
            pairs.filter_map(|(method, assignment)| Some((method, assignment.as_ref()?)))
        };
        let methods = || owed().map(|(method, _)| method);
        let own = std::env::current_exe().map_err(|error| {
            Error::Infrastructure(format!("this program cannot find its own file: {error}"))
        })?;
        let same = host::own_sha256().is_ok_and(|sha256| sha256 == plan.binary_sha256);
        let other = (!same).then_some(own.as_path());
        let mut differences: Vec<String> = unchanged::differences(plan, methods(), other)
            .iter()
            .map(ToString::to_string)
            .collect();
        if plan.version != env!("CARGO_PKG_VERSION") {
            differences.insert(
                0,
                format!(
                    "this is proctor {}, the run was planned with proctor {}",
                    env!("CARGO_PKG_VERSION"),
                    plan.version
                ),
            );
        }
        if !differences.is_empty() {
            let lines: Vec<String> = differences.iter().map(|line| plain(line)).collect();
            return Err(Error::input(format!(
                "nothing was started: {} can only go on with what it was planned with\n  {}\nput it back as it was, or start a new run; `proctor merge` makes a bundle of what is there",
                brief(&run.root().display().to_string()),
                lines.join("\n  ")
            )));
        }
        preflight::readable(methods(), plan.policy.worker.path.as_deref())?;
        let left = owed().flat_map(|(_, assignment)| assignment.parts.iter().copied());
        preflight::check_space(run.root(), preflight::needed_bytes(&plan.protocol, left))?;
        scratch::usable().map_err(Error::input)?;
        let (rung, isolation) = preflight::containment(plan.policy.containment)?;
        if plan.policy.official {
            let mut lacking = preflight::lacking(rung, &isolation, &plan.policy.limits);
            lacking.retain(|line| !plan.policy.degraded.contains(line));
            preflight::refuse_degraded(&lacking)?;
        }
        Ok(rung)
    }

    /// The run directory.
    pub fn run_dir(&self) -> &RunDir {
        &self.run
    }

    /// The frozen plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The number of the session; its attempts have it too.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// How it treats methods that have attempts already.
    pub fn how(&self) -> How {
        self.how
    }

    /// What is to be done for a method, by position in the plan; `None` when it has its result, or nothing applies to it.
    pub fn assignment(&self, method: usize) -> Option<&Assignment> {
        self.assignments.get(method)?.as_ref()
    }

    /// True when no method is owed an attempt.
    pub fn is_settled(&self) -> bool {
        self.assignments.iter().all(Option::is_none)
    }

    /// What a display needs to know of each method, by position in the plan.
    pub fn entries(&self) -> Vec<Entry> {
        let methods = self.plan.methods.iter().enumerate();
        methods.map(|(at, _)| self.entry(at)).collect()
    }

    fn entry(&self, method: usize) -> Entry {
        let protocol = &self.plan.protocol;
        let all = parts(protocol, &self.plan.methods[method]);
        let assignment = self.assignment(method);
        let asked = assignment.map_or(&[][..], |assignment| &assignment.parts);
        let label = |part: &Part| {
            let name = &protocol.datasets()[part.dataset].name;
            match part.role {
                Role::Test => name.clone(),
                Role::Validation => format!("{name} (validation)"),
            }
        };
        let place = |part: &Part| {
            let at = all.iter().position(|other| other == part);
            (datasets(&all[..=at.unwrap_or(0)]), label(part))
        };
        let items = |part: &Part| {
            let loaded = &self.loaded[part.dataset];
            match part.role {
                Role::Test => loaded.test.item_count(),
                Role::Validation => loaded.validation.as_ref().map_or(0, Dataset::item_count),
            }
        };
        Entry {
            name: self.plan.methods[method].name.clone(),
            datasets: datasets(&all),
            parts: asked.iter().map(place).collect(),
            items: asked.iter().map(items).sum(),
            earlier_seconds: assignment.map_or(0.0, |one| one.ancestry.earlier_seconds),
        }
    }

    /// The core sets to conduct it on when nobody else decides: those of the plan where they may be used here, else as many
    /// of the same size.
    ///
    /// # Errors
    /// This machine has too few cores, or does not tell.
    pub fn own_cores(&self) -> Result<Vec<Vec<usize>>, Error> {
        let usable = host::usable_cores().map_err(|error| {
            Error::Infrastructure(format!(
                "the system does not tell which cores may be used: {error}"
            ))
        })?;
        let planned = &self.plan.policy.core_sets;
        if planned.iter().flatten().all(|core| usable.contains(core)) {
            return Ok(planned.clone());
        }
        core_sets(&usable, planned.len(), Some(self.plan.cores_each())).map_err(|error| {
            Error::input(format!("the run was planned on another machine: {error}"))
        })
    }

    /// Runs every method that is owed an attempt, on these disjoint core sets, and returns when nothing of it runs any
    /// more. Makes the record of the session first, so that of two who conduct the same run one is refused.
    ///
    /// # Errors
    /// Somebody else drives the run, the core sets are not of the planned size, or the system refused. What goes wrong
    /// after the start is in the summary.
    pub fn conduct(
        &self,
        cores: &[Vec<usize>],
        stop: &Stop,
        observer: &mut dyn Observer,
    ) -> Result<Summary, Error> {
        if self.is_settled() {
            observer.begins();
            return Ok(conduct(self, cores, stop, observer));
        }
        let each = self.plan.cores_each();
        if cores.is_empty() || cores.iter().any(|set| set.len() != each) {
            return Err(Error::input(format!(
                "the run was planned with {} for each method, and cannot run on more or fewer",
                counted(each as u64, "core")
            )));
        }
        self.claim(cores)?;
        let claimed = Claimed(self);
        observer.begins();
        let summary = conduct(self, cores, stop, observer);
        // What its record cannot be written for is told: this process may go on with other runs, and then nobody could
        // tell that this one is over.
        if let Err(error) = claimed.end() {
            observer.note(&plain(&format!("warning: {error}")));
        }
        Ok(summary)
    }

    fn claim(&self, cores: &[Vec<usize>]) -> Result<(), Error> {
        let methods = self.plan.methods.iter().zip(&self.assignments);
        let request = Request {
            run_id: self.plan.run_id.clone(),
            nonce: self.plan.nonce.clone(),
            created_utc: host::now_utc(),
            host: host::machine().host,
            boot_id: host::boot_id(),
            supervisor: Supervisor::this(),
            version: self.plan.version.clone(),
            binary_sha256: self.plan.binary_sha256.clone(),
            mode: self.how.mode,
            retry_failed: self.how.retry_failed,
            core_sets: cores.to_vec(),
            methods: methods
                .filter(|(_, assignment)| assignment.is_some())
                .map(|(method, _)| method.id.clone())
                .collect(),
        };
        match self.run.claim_session(self.number, &request) {
            Err(error) if error.source.kind() == ErrorKind::AlreadyExists => {
                let sessions = self.run.sessions().unwrap_or_default();
                let other = sessions.iter().find(|one| one.number == self.number);
                Err(in_use(&self.run, other))
            }
            claimed => Ok(claimed.and_then(|()| self.run.settle())?),
        }
    }

    /// Makes the bundle of what the records say now and puts it in place.
    ///
    /// # Errors
    /// A record or score file cannot be used, or the system refused.
    pub fn publish(&self) -> Result<Publication<'_>, Error> {
        let folder = self.run.merged_dir();
        let basename = &self.plan.basename;
        let merged = merge_run(&self.run, &self.plan, &self.loaded, basename, &folder)?;
        let Merged {
            bundle,
            document,
            methods,
            page,
            standing,
        } = merged;
        Ok(Publication {
            bundle: self.run.publish(bundle)?,
            document,
            methods,
            page,
            standing,
        })
    }

    /// The directory of a new attempt of a method.
    pub(crate) fn desk(
        &self,
        method: usize,
        ancestry: Ancestry,
        cores: &[usize],
    ) -> Result<Desk, Error> {
        Ok(Desk::open(
            self,
            &self.plan.methods[method],
            ancestry,
            cores,
        )?)
    }

    /// Why nothing of the protocol applies to a method.
    pub fn not_applicable(&self, method: usize) -> Option<String> {
        plan::not_applicable(&self.plan.protocol, &self.plan.methods[method])
    }
}

/// What tests need that conduct a session without rooms.
#[cfg(test)]
impl Session {
    /// The next session of a run, from its records alone; machine and inputs are not looked at.
    pub(crate) fn of_records(
        run: RunDir,
        loaded: Vec<LoadedEntry>,
        how: How,
    ) -> Result<Self, (Error, Vec<LoadedEntry>)> {
        let read = || -> Result<_, Error> {
            let plan = Plan::read(&run)?;
            let newest = run.sessions()?.last().map_or(0, |last| last.number);
            let owed = owed(&run, &plan, how)?;
            let number = after(&run, newest.max(owed.newest))?;
            Ok((plan, number, owed.assignments))
        };
        match read() {
            Ok((plan, number, assignments)) => Ok(Self {
                run,
                plan,
                loaded,
                rung: Rung::K4,
                number,
                how,
                assignments,
            }),
            Err(error) => Err((error, loaded)),
        }
    }

    pub(crate) fn begin(&self) -> Result<(), Error> {
        self.claim(&self.plan.policy.core_sets)
    }

    pub(crate) fn into_loaded(self) -> Vec<LoadedEntry> {
        self.loaded
    }
}

/// The number of the session after this one.
fn after(run: &RunDir, newest: u32) -> Result<u32, Error> {
    newest.checked_add(1).ok_or_else(|| {
        Error::input(format!(
            "{}: no session can come after number {newest}",
            brief(&run.root().display().to_string())
        ))
    })
}

/// A session that goes on, until this is dropped: also when something breaks down in between.
struct Claimed<'a>(&'a Session);

impl Claimed<'_> {
    fn end(self) -> DiskResult<()> {
        let ended = self.write();
        std::mem::forget(self);
        ended
    }

    fn write(&self) -> DiskResult<()> {
        self.0.run.end_session(self.0.number, &host::now_utc())
    }
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        // Nobody is left to tell of an error.
        let _ = self.write();
    }
}
