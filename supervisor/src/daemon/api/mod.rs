//! The HTTP API: versioned paths, JSON, server-sent events. What it does is in `queue` and in the run directories; here
//! are the words for it.

pub mod connection;
pub mod error;
mod events;
mod files;
pub mod guard;
mod login;
pub mod openapi;
mod runs;
pub mod segments;

pub use runs::Cancel;

use super::auth::Token;
use super::queue::{Known, Queue, QueueError};
use super::read;
use super::submit::Submissions;
use super::view::{QueueView, RunPage, RunState, RunSummary, RunView};
use crate::error::Error;
use crate::rundir::{Plan, RunDir};
use axum::Router;
use axum::middleware::from_fn_with_state;
use error::ApiError;
use guard::Rate;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The most event streams at a time.
const STREAMS: usize = 48;

/// What every handler needs; cheap to clone.
#[derive(Clone)]
pub struct Api(Arc<Shared>);

/// What the handlers share.
pub struct Shared {
    /// The queue.
    pub queue: Arc<Queue>,
    /// Takes submissions.
    pub submissions: Submissions,
    /// The token of TCP.
    pub token: Option<Token>,
    /// When the daemon was started.
    pub started_utc: String,
    rates: (Rate, Rate),
    streams: Arc<Semaphore>,
}

impl Deref for Api {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Api {
    /// An API of this queue, at most so many requests a second on each door.
    pub fn new(
        queue: Arc<Queue>,
        submissions: Submissions,
        token: Option<Token>,
        requests_per_second: u32,
    ) -> Self {
        Self(Arc::new(Shared {
            queue,
            submissions,
            token,
            started_utc: crate::run::host::now_utc(),
            rates: (
                Rate::new(requests_per_second),
                Rate::new(requests_per_second),
            ),
            streams: Arc::new(Semaphore::new(STREAMS)),
        }))
    }

    /// The whole API, with what every request passes.
    pub fn router(&self) -> Router {
        let (router, _) = openapi::router().split_for_parts();
        router
            .merge(login::router())
            .merge(super::page::router())
            .fallback(runs::nothing_here)
            .method_not_allowed_fallback(runs::not_possible)
            .with_state(self.clone())
            .layer(from_fn_with_state(self.clone(), guard::guard))
    }

    /// The queue now. Reads no run directory.
    pub fn queue_view(&self) -> QueueView {
        let board = self.queue.board();
        QueueView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_utc: self.started_utc.clone(),
            stopping: board.stopping,
            queued: board.queued,
            ended: board.ended,
            running: board.running,
            next: board.next,
            recent: board.recent,
            waits_for: board.waits_for,
            machine: read::machine_view(self.queue.cores(), board.free_cores),
        }
    }

    /// A page of the list of runs.
    ///
    /// # Errors
    /// The daemon has no thread for it.
    pub async fn runs(
        &self,
        state: Option<RunState>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<RunPage, ApiError> {
        let queue = Arc::clone(&self.queue);
        blocking(move || {
            let (runs, next_before) = queue.page(state, before, limit);
            Ok(RunPage { runs, next_before })
        })
        .await
    }

    /// A run in full.
    ///
    /// # Errors
    /// There is none, or its files cannot be read.
    pub async fn run(&self, id: u64) -> Result<RunView, ApiError> {
        let api = self.clone();
        blocking(move || {
            let (known, dir, plan) = api.open(id)?;
            Ok(read::run_view(known, &dir, &plan)?)
        })
        .await
    }

    /// Cancels a run, or those of its methods whose names or ids are given.
    ///
    /// # Errors
    /// There is no such run or method, it is over, or the wish cannot be kept.
    pub async fn cancel(&self, id: u64, names: Vec<String>) -> Result<RunSummary, ApiError> {
        let api = self.clone();
        blocking(move || {
            let mut methods = Vec::new();
            if !names.is_empty() {
                let (_, _, plan) = api.open(id)?;
                for name in &names {
                    let position = runs::method(&plan, name)?;
                    methods.push((position, plan.methods[position].id.clone()));
                }
            }
            Ok(Arc::clone(&api.queue).cancel(id, &methods)?)
        })
        .await
    }

    /// A run, its directory and its plan. Reads files.
    fn open(&self, id: u64) -> Result<(Known, PathBuf, Plan), ApiError> {
        let known = self.queue.find(id)?;
        let dir = self.queue.state().run_dir(id);
        let plan = Plan::read(&RunDir::new(&dir)).map_err(Error::from)?;
        Ok((known, dir, plan))
    }
}

/// Reads files on a thread where that may take its time.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| {
        Err(ApiError::Internal(
            "answering this broke down; this is a bug in proctor, please report it".into(),
        ))
    })
}

impl From<QueueError> for ApiError {
    fn from(error: QueueError) -> Self {
        match error {
            QueueError::Unknown(id) => Self::unknown("run", &id.to_string()),
            QueueError::Over(_) => Self::Conflict(error.to_string()),
            QueueError::Stopping => Self::Unavailable(error.to_string()),
            QueueError::State(error) => Self::Internal(error.to_string()),
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self::Internal(error.to_string())
    }
}
