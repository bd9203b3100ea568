//! Conducting a queued run with the library that `proctor run` and `proctor resume` use. There is nothing here but the
//! order of its calls: each start is a session that goes on with what the records say, the first one too.

use super::confine::Fence;
use super::queue::{Conductor, Job, Pace, Report};
use super::view::Counts;
use crate::error::{Error, Exit};
use crate::render::output::tell;
use crate::render::plain;
use crate::run::live::Glance;
use crate::run::on_finish::{OnFinish, Told};
use crate::run::{Ended, Entry, How, Observer, RETRIES, Session, Starting};
use crate::rundir::reserve::Reserve;
use crate::rundir::session::Mode;
use crate::schedule::core_sets;

/// The one library, on threads that read within a fence: what lies behind the paths of a plan may have changed since it was
/// made.
#[derive(Debug)]
pub struct Library {
    /// The fence.
    pub fence: Fence,
    /// What is told of each run that is over.
    pub on_finish: Option<OnFinish>,
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
    let published = match (session.publish(), summary.trouble) {
        (Ok(published), trouble) => (published, trouble),
        (Err(_), Some(error)) | (Err(error), None) => return Err(error),
    };
    let (published, trouble) = published;
    let outcomes = || published.methods.iter().map(|record| &record.outcome);
    let cancelled = job.steer.cancelled();
    let methods = Counts {
        total: published.methods.len() as u64,
        running: 0,
        ended: outcomes().filter(|outcome| outcome.charged()).count() as u64,
        failed: outcomes().filter(|outcome| !outcome.succeeded()).count() as u64,
    };
    let unfinished = summary.stopped && !cancelled && methods.ended < methods.total;
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
        let methods = 0..entries.len();
        let settled = methods.filter(|at| {
            session.assignment(*at).is_none() && session.not_applicable(*at).is_none()
        });
        let counts = Counts {
            total: entries.len() as u64,
            running: 0,
            ended: settled.count() as u64,
            failed: 0,
        };
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
        self.counts.ended += 1;
        self.counts.failed += u64::from(!ended.outcome.succeeded());
        self.job.count(self.counts);
        let name = &self.entries[ended.method].name;
        let sentence = crate::render::sentence::sentence(ended.outcome, ended.numbers);
        tell(&plain(&format!("run {}: {name} {sentence}", self.job.id)));
    }

    fn note(&mut self, text: &str) {
        tell(&plain(&format!("run {}: {text}", self.job.id)));
    }
}
