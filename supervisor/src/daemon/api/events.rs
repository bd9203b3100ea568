//! Event streams. Each is told the newest state whenever there is one, as fast as its reader takes it: nothing is kept
//! for slow readers, and nobody waits for them.

use super::error::ApiError;
use super::openapi::Always;
use super::runs::run_id;
use super::segments::Segments;
use super::{Api, blocking};
use crate::daemon::read;
use crate::daemon::view::{Event, RunState, RunView};
use crate::rundir::Plan;
use axum::extract::State;
use axum::response::sse::{KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until, timeout};

/// Events of one stream come no faster.
const PACE: Duration = Duration::from_millis(500);
/// The machine is looked at again after so long without any change.
const LOOK: Duration = Duration::from_secs(5);
/// A running method is looked at this often.
const PROGRESS: Duration = Duration::from_secs(1);

type Said = Result<axum::response::sse::Event, Infallible>;

/// The queue as it changes.
#[utoipa::path(get, path = "/v1/events", responses((status = 200, description = "Server-sent events named `queue`, without end", content_type = "text/event-stream", body = Event), Always))]
pub(super) async fn all(State(api): State<Api>) -> Result<Sse<impl Stream<Item = Said>>, ApiError> {
    let place = place(&api)?;
    let pacer = Pacer::new(api.queue.changes());
    let events = stream::unfold((api, pacer, place), |(api, mut pacer, place)| async {
        pacer.wait(LOOK).await;
        let queue = api.queue_view();
        Some((Ok(said(&Event::Queue { queue })), (api, pacer, place)))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

/// One run as it changes.
#[utoipa::path(get, path = "/v1/runs/{id}/events", params(("id" = u64, Path, description = "Number of the run", minimum = 1)), responses((status = 200, description = "Server-sent events named `run_detail`, `method` and `run`, until the run has ended", content_type = "text/event-stream", body = Event), Always))]
pub(super) async fn of_run(
    State(api): State<Api>,
    Segments(id): Segments<String>,
) -> Result<Sse<impl Stream<Item = Said>>, ApiError> {
    let id = run_id(&id)?;
    let place = place(&api)?;
    let reader = api.clone();
    let plan = blocking(move || Ok(reader.open(id)?.2)).await?;
    let watcher = Watcher {
        pacer: Pacer::new(api.queue.changes()),
        api,
        id,
        plan: Arc::new(plan),
        last: None,
        ready: VecDeque::new(),
        over: false,
        _place: place,
    };
    let events = stream::unfold(watcher, |mut watcher| async {
        let event = watcher.next().await?;
        Some((Ok(said(&event)), watcher))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

fn place(api: &Api) -> Result<OwnedSemaphorePermit, ApiError> {
    Arc::clone(&api.streams)
        .try_acquire_owned()
        .map_err(|_| ApiError::Unavailable("there are too many event streams".into()))
}

fn said(event: &Event) -> axum::response::sse::Event {
    let empty = axum::response::sse::Event::default().event(event.name());
    // The types of `view` are plain data, which JSON can say.
    empty.json_data(event).unwrap_or_default()
}

/// Lets a stream go on when something changed or after a while, but never faster than [`PACE`]. The first time it does
/// not wait.
struct Pacer {
    changes: watch::Receiver<u64>,
    last: Option<Instant>,
}

impl Pacer {
    fn new(changes: watch::Receiver<u64>) -> Self {
        Self {
            changes,
            last: None,
        }
    }

    async fn wait(&mut self, most: Duration) {
        if let Some(last) = self.last {
            sleep_until(last + PACE).await;
            // The sender lives as long as the daemon; without one the time alone counts.
            if let Ok(Err(_)) = timeout(most.saturating_sub(PACE), self.changes.changed()).await {
                tokio::time::sleep(most).await;
            }
        }
        self.changes.mark_unchanged();
        self.last = Some(Instant::now());
    }
}

struct Watcher {
    api: Api,
    id: u64,
    plan: Arc<Plan>,
    pacer: Pacer,
    last: Option<RunView>,
    ready: VecDeque<Event>,
    over: bool,
    _place: OwnedSemaphorePermit,
}

impl Watcher {
    /// The next event; `None` after the last.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.over {
                return None;
            }
            self.pacer.wait(PROGRESS).await;
            let (api, id, plan) = (self.api.clone(), self.id, Arc::clone(&self.plan));
            let view = blocking(move || {
                let dir = api.queue.state().run_dir(id);
                Ok(read::run_view(api.queue.find(id)?, &dir, &plan)?)
            });
            // A record that cannot be read may be readable when it is looked at again.
            if let Ok(view) = view.await {
                self.over = view.summary.state == RunState::Ended;
                self.ready = news(self.last.as_ref(), &view);
                self.last = Some(view);
            }
        }
    }
}

/// What is to be said about a run that looks like this after it looked like that.
fn news(before: Option<&RunView>, now: &RunView) -> VecDeque<Event> {
    let mut events = VecDeque::new();
    let detail = || Event::RunDetail { run: now.clone() };
    let ended = now.summary.state == RunState::Ended;
    if let Some(before) = before {
        for (new, old) in now.methods.iter().zip(&before.methods) {
            if new != old {
                events.push_back(Event::Method {
                    run: now.summary.id,
                    method: new.clone(),
                });
            }
        }
        if ended {
            events.push_back(detail());
        }
    } else {
        events.push_back(detail());
    }
    if ended || before.is_some_and(|before| before.summary != now.summary) {
        events.push_back(Event::Run {
            run: now.summary.clone(),
        });
    }
    events
}
