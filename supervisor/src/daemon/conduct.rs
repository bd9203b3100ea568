//! Conducting a queued run with the library that `proctor run` and `proctor resume` use. There is nothing here but the
//! order of its calls: each start is a session that goes on with what the records say, the first one too.

use super::confine::Fence;
use super::queue::{Conductor, Job, Pace, Report};
use super::view::Counts;
use crate::error::{Error, Exit};
use crate::merge::records::MethodRecord;
use crate::render::output::tell;
use crate::render::plain;
use crate::run::live::Glance;
use crate::run::on_finish::{OnFinish, Told};
use crate::run::{Ended, Entry, How, Observer, RETRIES, Session, Starting};
use crate::rundir::reserve::Reserve;
use crate::rundir::session::Mode;
use crate::rundir::state;
use crate::schedule::core_sets;
use proctor_protocol::outcome::Outcome;
use std::sync::{Mutex, PoisonError};

/// The one library, on threads that read within a fence: what lies behind the paths of a plan may have changed since it was
/// made.
#[derive(Debug)]
pub struct Library {
    /// The fence.
    pub fence: Fence,
    /// What is told of each run that is over, one at a time: many short runs do not make many processes.
    pub on_finish: Option<Mutex<OnFinish>>,
}

impl Conductor for Library {
    fn conduct(&self, job: &Job) -> Report {
        let held = self.fence.hold_this_thread();
        let conducted = held
            .map_err(Error::Infrastructure)
            .and_then(|()| conduct(job));
        conducted.unwrap_or_else(|error| {
            let sentence = format!("could not be run: {}", first_line(&error.to_string()));
            for line in error.to_string().lines() {
                tell(&plain(&format!("run {}: {line}", job.id)));
            }
            Report {
                exit: error.exit(),
                sentence,
                methods: job.counts(),
                bundle: None,
                unfinished: false,
            }
        })
    }

    fn tell(&self, job: &Job, report: &Report) {
        let Some(command) = &self.on_finish else {
            return;
        };
        let command = command.lock().unwrap_or_else(PoisonError::into_inner);
        let told = command.tell(&Told {
            line: &report.sentence,
            bundle: report.bundle.as_deref(),
            run_dir: &job.run_dir,
            exit: report.exit,
        });
        if let Err(why) = told {
            tell(&plain(&format!("run {}: --on-finish: {why}", job.id)));
        }
    }
}

/// Counts a method that ended like this.
fn end(counts: &mut Counts, outcome: &Outcome) {
    counts.ended += 1;
    match (outcome.succeeded(), outcome.charged()) {
        (true, _) => {}
        (false, true) => counts.failed += 1,
        (false, false) => counts.without_result += 1,
    }
}

/// Whether the next session makes another attempt of a method that ended like this. What somebody cancelled stays so.
fn is_made_good(outcome: &Outcome) -> bool {
    !outcome.charged() && !matches!(outcome, Outcome::Cancelled | Outcome::Unresolved)
}

fn first_line(text: &str) -> String {
    plain(text.lines().next().unwrap_or_default())
}

fn conduct(job: &Job) -> Result<Report, Error> {
    let how = How {
        mode: Mode::Continue,
        retry_failed: false,
        retries: RETRIES,
    };
    let session = Session::open(&job.run_dir, how)?;
    let plan = session.plan();
    let each = plan.cores_each();
    let cores = core_sets(&job.cores, plan.policy.jobs, Some(each))
        .map_err(|error| Error::input(error.to_string()))?;
    let stop = &job.steer.stop;
    for (position, method) in plan.methods.iter().enumerate() {
        if job.cancelled.contains(&method.id) {
            stop.cancel(position);
        }
    }
    let mut watcher = Watcher::new(job, &session);
    let summary = session.conduct(&cores, stop, &mut watcher)?;
    Reserve::of(session.run_dir().root()).give_back();
    if let Some(error) = &summary.trouble {
        tell(&plain(&format!("run {}: {error}", job.id)));
    }
    // Also when our side failed: what is finished is published, marked incomplete.
    let cancelled = job.steer.cancelled();
    let (published, trouble) = match (session.publish(), summary.trouble) {
        (Ok(published), trouble) => (published, trouble),
        // The next daemon goes on with it all the same.
        (Err(error), _) if summary.stopped && !cancelled => {
            return Ok(Report {
                exit: Exit::Interrupted,
                sentence: format!(
                    "goes on when the daemon is started again; no bundle could be made: {}",
                    first_line(&error.to_string())
                ),
                methods: job.counts(),
                bundle: None,
                unfinished: true,
            });
        }
        (Err(_), Some(error)) | (Err(error), None) => return Err(error),
    };
    let mut methods = Counts {
        total: published.methods.len() as u64,
        ..Counts::default()
    };
    for record in &published.methods {
        let terminal = record.counting().and_then(|one| one.terminal.as_ref());
        if terminal.is_some() || record.outcome.charged() {
            end(&mut methods, &record.outcome);
        } else {
            methods.without_result += 1;
        }
    }
    let owed = |record: &MethodRecord<'_>| is_made_good(&record.outcome);
    let unfinished = summary.stopped && !cancelled && published.methods.iter().any(owed);
    let exit = match &trouble {
        _ if cancelled => Exit::Interrupted,
        Some(error) => error.exit(),
        None => published.exit(),
    };
    let mut sentence = published.line();
    if cancelled {
        sentence.insert_str(0, "was cancelled; ");
    } else if unfinished {
        sentence.insert_str(0, "goes on when the daemon is started again; ");
    } else if let Some(error) = &trouble {
        sentence.push_str("; ");
        sentence.push_str(&first_line(&error.to_string()));
    }
    Ok(Report {
        exit,
        sentence,
        methods,
        bundle: Some(published.bundle.path.clone()),
        unfinished,
    })
}

/// Tells the queue how a run goes.
struct Watcher<'a> {
    job: &'a Job,
    entries: Vec<Entry>,
    counts: Counts,
}

impl<'a> Watcher<'a> {
    fn new(job: &'a Job, session: &Session) -> Self {
        let entries = session.entries();
        let mut counts = Counts {
            total: entries.len() as u64,
            ..Counts::default()
        };
        // What an earlier session settled; the others are told of as they end.
        for (at, method) in session.plan().methods.iter().enumerate() {
            if session.assignment(at).is_none() && session.not_applicable(at).is_none() {
                let attempts = state::attempts(session.run_dir(), &method.id).unwrap_or_default();
                let terminal = state::counting(&attempts).and_then(|one| one.terminal.as_ref());
                if let Some(terminal) = terminal {
                    end(&mut counts, &terminal.outcome);
                }
            }
        }
        job.count(counts);
        Self {
            job,
            entries,
            counts,
        }
    }
}

impl Observer for Watcher<'_> {
    fn started(&mut self, starting: Starting<'_>) {
        self.job.wait(None);
        self.counts.running += 1;
        self.job.count(self.counts);
        let name = &self.entries[starting.method].name;
        tell(&plain(&format!("run {}: {name} starts", self.job.id)));
    }

    fn waiting(&mut self, _method: usize, reason: &str) {
        self.job.wait(Some(&plain(reason)));
    }

    fn progress(&mut self, method: usize, glance: Glance) {
        let Some(elapsed) = glance.elapsed else {
            return;
        };
        let left = self.entries[method].items.saturating_sub(glance.answered) as f64;
        let eta = (glance.answered > 0).then(|| elapsed * left / glance.answered as f64);
        self.job.pace(
            method,
            Pace {
                elapsed_seconds: self.entries[method].earlier_seconds + elapsed,
                eta_seconds: eta,
            },
        );
    }

    fn ended(&mut self, ended: Ended<'_>) {
        self.counts.running = self.counts.running.saturating_sub(1);
        end(&mut self.counts, ended.outcome);
        self.job.count(self.counts);
        let name = &self.entries[ended.method].name;
        let sentence = crate::render::sentence::sentence(ended.outcome, ended.numbers);
        tell(&plain(&format!("run {}: {name} {sentence}", self.job.id)));
    }

    fn note(&mut self, text: &str) {
        tell(&plain(&format!("run {}: {text}", self.job.id)));
    }
}
