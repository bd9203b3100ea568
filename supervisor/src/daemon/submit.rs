//! Submissions: checked one after another by a thread of their own, exactly as `proctor run` checks, before they queue.

use super::api::error::ApiError;
use super::confine::{ConfineError, Fence, Roots};
use super::queue::Queue;
use super::state::Submitted;
use super::view::RunSummary;
use crate::error::{Error, Exit};
use crate::load::{DEFAULT_WAIT_SECONDS, Rule};
use crate::run::host::now_utc;
use crate::run::{Prepared, Request, create, prepare};
use crate::rundir::regular;
use proctor_protocol::frozen::{ExecutionLimits, Limit};
use proctor_protocol::method::MethodKind;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use tokio::sync::oneshot;
use utoipa::ToSchema;

/// So many submissions may wait for their check.
const WAITING: usize = 64;
/// Priorities lie between this and its negative.
pub const MOST_PRIORITY: i32 = 1000;

/// A run to be queued. The options are those of `proctor run`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// The protocol file: an absolute path below a root of the daemon.
    #[schema(value_type = String, pattern = "^/", max_length = 4096)]
    pub protocol: PathBuf,
    /// The methods file: an absolute path below a root of the daemon.
    #[schema(value_type = String, pattern = "^/", max_length = 4096)]
    pub methods: PathBuf,
    /// Higher goes first.
    #[serde(default)]
    #[schema(minimum = -1000, maximum = 1000)]
    pub priority: i32,
    /// Nothing else may run beside it.
    #[serde(default)]
    pub exclusive: bool,
    /// Cores for the whole run. Without it, as many as its jobs and `cpus` need; without `cpus`, all of the daemon's.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub cores: Option<usize>,
    /// Methods at a time, each on its own cores.
    #[serde(default = "one")]
    #[schema(minimum = 1)]
    pub jobs: usize,
    /// Names of the methods to run; none for all.
    #[serde(default)]
    pub only: Vec<String>,
    /// Base name of the bundle's files.
    #[serde(default = "leaderboard")]
    pub basename: String,
    /// The containment rung of the rooms; the best one of the machine without it.
    #[serde(default)]
    pub containment: Option<String>,
    /// Refuse unless the machine gives what results for others demand.
    #[serde(default)]
    pub official: bool,
    /// With `official`: run all the same, and say so in the bundle.
    #[serde(default)]
    pub allow_degraded: bool,
    /// Start no method while other processes use more than this part of the cores, above 0 and at most 1.
    #[serde(default)]
    #[schema(exclusive_minimum = 0.0, maximum = 1.0)]
    pub max_load: Option<f64>,
    /// With `max_load`: seconds that a method waits for that at most; 600 without it.
    #[serde(default)]
    #[schema(minimum = 0.0)]
    pub max_load_wait_seconds: Option<f64>,
    /// Limits, stricter than those of the protocol.
    #[serde(default, deserialize_with = "object")]
    pub limits: SubmittedLimits,
}

/// Limits of a submission; none where a field is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmittedLimits {
    /// Bytes of memory of a method.
    #[serde(default)]
    pub max_memory_bytes: Option<u64>,
    /// Processes and threads of a method.
    #[serde(default)]
    pub max_processes: Option<u64>,
    /// Bytes a method may write to disk.
    #[serde(default)]
    pub max_scratch_bytes: Option<u64>,
    /// Bytes of stdout and stderr of a method.
    #[serde(default)]
    pub max_output_bytes: Option<u64>,
    /// Seconds between SIGTERM and SIGKILL at the deadline.
    #[serde(default)]
    pub grace_seconds: Option<u64>,
    /// Cores of a method.
    #[serde(default)]
    pub cpus: Option<u64>,
}

/// serde also takes the fields of a struct from a list, in their order, which nobody means here.
pub(super) fn object<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<T, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    if !value.is_object() {
        return Err(D::Error::custom("must be an object"));
    }
    serde_json::from_value(value).map_err(D::Error::custom)
}

fn one() -> usize {
    1
}

fn leaderboard() -> String {
    "leaderboard".to_owned()
}

impl SubmittedLimits {
    fn fields(&self) -> [(Limit, &'static str, Option<u64>); 6] {
        [
            (Limit::Memory, "max_memory_bytes", self.max_memory_bytes),
            (Limit::Processes, "max_processes", self.max_processes),
            (Limit::Scratch, "max_scratch_bytes", self.max_scratch_bytes),
            (Limit::Output, "max_output_bytes", self.max_output_bytes),
            (Limit::Grace, "grace_seconds", self.grace_seconds),
            (Limit::Cpus, "cpus", self.cpus),
        ]
    }

    /// Of limits that the library has.
    pub fn of(limits: &ExecutionLimits) -> Self {
        Self {
            max_memory_bytes: limits.get(Limit::Memory),
            max_processes: limits.get(Limit::Processes),
            max_scratch_bytes: limits.get(Limit::Scratch),
            max_output_bytes: limits.get(Limit::Output),
            grace_seconds: limits.get(Limit::Grace),
            cpus: limits.get(Limit::Cpus),
        }
    }

    fn asked(&self) -> Result<ExecutionLimits, ApiError> {
        let mut asked = ExecutionLimits::default();
        for (limit, field, value) in self.fields() {
            if let Some(value) = value.filter(|value| !limit.allows(*value)) {
                let (least, most) = limit.range();
                return Err(ApiError::Refused(format!(
                    "limits.{field} {value}: must be from {least} to {most}"
                )));
            }
            asked.set(limit, value);
        }
        Ok(asked)
    }
}

impl Submission {
    fn load_rule(&self) -> Result<Option<Rule>, ApiError> {
        let Some(max_load) = self.max_load else {
            return match self.max_load_wait_seconds {
                None => Ok(None),
                Some(_) => Err(ApiError::Refused(
                    "max_load_wait_seconds: has a meaning only with max_load".into(),
                )),
            };
        };
        let rule = Rule {
            max_load,
            max_wait_seconds: self.max_load_wait_seconds.unwrap_or(DEFAULT_WAIT_SECONDS),
            refuse: self.official && !self.allow_degraded,
        };
        if !rule.is_sound() {
            return Err(ApiError::Refused(format!(
                "max_load {max_load}: must be above 0 and at most 1, and max_load_wait_seconds 0 or more"
            )));
        }
        Ok(Some(rule))
    }

    /// The command that would run the same without a daemon, but for its run directory. For people.
    fn command_line(&self) -> Vec<String> {
        let mut words = vec![
            "proctor".to_owned(),
            "run".to_owned(),
            self.protocol.display().to_string(),
            self.methods.display().to_string(),
            "--jobs".to_owned(),
            self.jobs.to_string(),
            "--basename".to_owned(),
            self.basename.clone(),
        ];
        let only = self.only.iter().map(|name| ("--only", name.clone()));
        let rung = self.containment.iter();
        let rung = rung.map(|rung| ("--containment", rung.clone()));
        let limits = self.limits.fields().into_iter();
        let limits = limits.filter_map(|(limit, _, value)| {
            Some((crate::run::limits::option(limit), value?.to_string()))
        });
        let load = [
            ("--max-load", self.max_load),
            ("--max-load-wait", self.max_load_wait_seconds),
        ];
        let load = load
            .into_iter()
            .filter_map(|(option, value)| Some((option, value?.to_string())));
        for (option, value) in only.chain(rung).chain(load).chain(limits) {
            words.extend([option.to_owned(), value]);
        }
        for (option, set) in [
            ("--official", self.official),
            ("--allow-degraded", self.allow_degraded),
        ] {
            words.extend(set.then(|| option.to_owned()));
        }
        words
    }
}

type Ask = (Submission, oneshot::Sender<Result<RunSummary, ApiError>>);

/// Where submissions are handed in.
#[derive(Debug, Clone)]
pub struct Submissions {
    asks: SyncSender<Ask>,
}

impl Submissions {
    /// Starts the thread that checks.
    ///
    /// # Errors
    /// There is no thread left.
    pub fn begin(
        queue: Arc<Queue>,
        roots: Roots,
        fence: Fence,
        worker: Option<PathBuf>,
    ) -> std::io::Result<Self> {
        let (asks, asked) = sync_channel(WAITING);
        std::thread::Builder::new()
            .name("submissions".into())
            .spawn(move || {
                let clerk = Clerk {
                    queue,
                    roots,
                    fence,
                    worker,
                };
                serve(&asked, &clerk);
            })?;
        Ok(Self { asks })
    }

    /// Hands one in and waits for what comes of it. When the client is gone before all is checked, nothing is queued.
    ///
    /// # Errors
    /// It was refused, or too many wait.
    pub async fn submit(&self, submission: Submission) -> Result<RunSummary, ApiError> {
        let (answer, answered) = oneshot::channel();
        match self.asks.try_send((submission, answer)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                return Err(ApiError::Unavailable(format!(
                    "{WAITING} submissions wait to be checked already"
                )));
            }
            Err(TrySendError::Disconnected(_)) => return Err(broke()),
        }
        answered.await.unwrap_or_else(|_| Err(broke()))
    }
}

fn broke() -> ApiError {
    ApiError::Internal(
        "the check of submissions broke down; this is a bug in proctor, please report it".into(),
    )
}

fn serve(asked: &Receiver<Ask>, clerk: &Clerk) {
    let held = clerk.fence.hold_this_thread();
    while let Ok((submission, answer)) = asked.recv() {
        let gone = || answer.is_closed();
        let take = || match &held {
            Ok(()) => clerk.take(&submission, &gone),
            Err(reason) => Err(ApiError::Internal(reason.clone())),
        };
        let taken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(take));
        // A client that has gone is not told.
        let _ = answer.send(taken.unwrap_or_else(|_| Err(broke())));
    }
}

/// Who checks.
struct Clerk {
    queue: Arc<Queue>,
    roots: Roots,
    fence: Fence,
    worker: Option<PathBuf>,
}

impl Clerk {
    /// `gone` says whether the client has left: it never learned of a run, and will submit it again.
    fn take(
        &self,
        submission: &Submission,
        gone: &dyn Fn() -> bool,
    ) -> Result<RunSummary, ApiError> {
        let stays = || {
            let left = || ApiError::Unavailable("the client has gone".into());
            (!gone()).then_some(()).ok_or_else(left)
        };
        if self.queue.board().stopping {
            return Err(ApiError::Unavailable("the daemon is stopping".into()));
        }
        stays()?;
        let id = self.queue.next_id();
        let run_dir = self.queue.state().run_dir(id);
        let request = self.request(submission, run_dir.clone())?;
        let mut prepared = prepare(&request).map_err(|error| self.refused(&error))?;
        // They may be edited for the next submission while this one waits: what is in the plan counts.
        prepared.inputs.clear();
        self.confine(&prepared)?;
        let cores = self.cores(submission, &prepared)?;
        let command_line = submission.command_line();
        stays()?;
        let kept = create(&prepared, command_line)
            .map_err(|error| refused(&error))
            .and_then(|_| {
                let submitted = Submitted {
                    benchmark_id: prepared.protocol.benchmark_id().to_owned(),
                    protocol_id: prepared.protocol.id().to_owned(),
                    protocol_file: request.protocol.clone(),
                    methods_file: request.methods.clone(),
                    methods: prepared.methods.len() as u64,
                    priority: submission.priority,
                    exclusive: submission.exclusive,
                    cores,
                    submitted_utc: now_utc(),
                };
                Ok(self.queue.add(id, submitted)?)
            });
        if kept.is_err() {
            // Nothing has run, and nobody was told of it.
            let _ = std::fs::remove_dir_all(&run_dir);
        }
        kept
    }

    fn request(&self, submission: &Submission, output: PathBuf) -> Result<Request, ApiError> {
        if !(-MOST_PRIORITY..=MOST_PRIORITY).contains(&submission.priority) {
            return Err(ApiError::Refused(format!(
                "priority {}: must be from -{MOST_PRIORITY} to {MOST_PRIORITY}",
                submission.priority
            )));
        }
        if submission.allow_degraded && !submission.official {
            return Err(ApiError::Refused(
                "allow_degraded: has a meaning only with official".into(),
            ));
        }
        if submission.jobs == 0 {
            return Err(ApiError::Refused("jobs 0: must be 1 or more".into()));
        }
        let containment = submission.containment.as_deref().map(str::parse);
        let containment = containment
            .transpose()
            .map_err(|error| ApiError::Refused(format!("containment: {error}")))?;
        Ok(Request {
            protocol: self.file("protocol", &submission.protocol)?,
            methods: self.file("methods", &submission.methods)?,
            output,
            jobs: submission.jobs,
            cores: submission.cores,
            only: submission.only.clone(),
            basename: submission.basename.clone(),
            worker: self.worker.clone(),
            limits: submission.limits.asked()?,
            containment,
            official: submission.official,
            allow_degraded: submission.allow_degraded,
            load: submission.load_rule()?,
        })
    }

    /// As [`refused`], with the reason why this daemon may not read what others may.
    fn refused(&self, error: &Error) -> ApiError {
        match refused(error) {
            ApiError::Refused(message) if message.contains("Permission denied") => {
                let roots = self.roots.list();
                ApiError::Refused(format!(
                    "{message}\nthis daemon reads only what is below its roots ({roots}), whatever leads elsewhere"
                ))
            }
            other => other,
        }
    }

    fn path(&self, field: &str, path: &Path) -> Result<PathBuf, ApiError> {
        Ok(self.roots.check(field, path)?)
    }

    /// As [`Clerk::path`], of a regular file: whoever waits for the writer of a pipe keeps all others waiting.
    fn file(&self, field: &str, path: &Path) -> Result<PathBuf, ApiError> {
        let found = self.path(field, path)?;
        regular::open(&found).map_err(|error| {
            let path = crate::render::brief(&path.display().to_string());
            self.refused(&Error::input(format!("{field}: {path}: {error}")))
        })?;
        Ok(found)
    }

    /// What the files name must lie below the roots too.
    fn confine(&self, prepared: &Prepared) -> Result<(), ApiError> {
        for entry in prepared.protocol.datasets() {
            let field = format!("protocol: dataset {}", crate::render::brief(&entry.name));
            let paths = entry.path.iter().chain(&entry.validation_path);
            for path in paths {
                self.path(&field, path)?;
            }
        }
        for method in &prepared.methods {
            if let MethodKind::Program(program) = &method.kind {
                let field = format!("methods: {}", crate::render::brief(&method.name));
                self.roots.check_program(&field, &program.executable)?;
                for file in &program.files {
                    self.path(&field, file)?;
                }
            }
        }
        Ok(())
    }

    /// How many cores the run is given.
    fn cores(&self, submission: &Submission, prepared: &Prepared) -> Result<usize, ApiError> {
        let all = self.queue.cores().len();
        match submission.cores {
            Some(cores) if cores > all => Err(ApiError::Refused(format!(
                "cores {cores}: this daemon has {all} in all; ask for fewer"
            ))),
            Some(cores) => Ok(cores),
            // What its core sets hold is what it uses.
            None => Ok(prepared.policy.core_sets.iter().map(Vec::len).sum()),
        }
    }
}

impl From<ConfineError> for ApiError {
    fn from(error: ConfineError) -> Self {
        Self::Refused(error.to_string())
    }
}
/// What `proctor run` would have refused is refused; what is ours is ours.
fn refused(error: &Error) -> ApiError {
    match error.exit() {
        Exit::Usage => ApiError::Refused(error.to_string()),
        _ => ApiError::Internal(error.to_string()),
    }
}
