//! The queue and its runs: looking, submitting, cancelling.

use super::Api;
use super::error::ApiError;
use super::openapi::Always;
use super::segments::Segments;
use crate::daemon::submit::{Submission, object};
use crate::daemon::view::{Health, Problem, QueueView, RunPage, RunState, RunSummary, RunView};
use crate::rundir::Plan;
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// The greatest number that the description of the API has for a run.
const MOST_ID: u64 = i64::MAX as u64;
/// The most runs of a page.
const PAGE: usize = 200;

/// Whether the daemon is well. Needs no token.
#[utoipa::path(get, path = "/healthz", responses((status = 200, body = Health), Always), security(()))]
pub(super) async fn health(State(api): State<Api>) -> Json<Health> {
    let stopping = api.queue.board().stopping;
    Json(Health {
        status: if stopping { "stopping" } else { "ok" }.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// The queue, what runs, and the machine.
#[utoipa::path(get, path = "/v1/queue", responses((status = 200, body = QueueView), Always))]
pub(super) async fn queue(State(api): State<Api>) -> Json<QueueView> {
    Json(api.queue_view())
}

/// Which runs to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Listing {
    /// Only runs in this state.
    state: Option<RunState>,
    /// Only runs with lower numbers: `next_before` of the page before.
    before: Option<u64>,
    /// How many at most.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
}

/// The runs, newest first.
#[utoipa::path(get, path = "/v1/runs", params(Listing), responses((status = 200, body = RunPage), Always))]
pub(super) async fn list(
    State(api): State<Api>,
    listing: Result<Query<Listing>, QueryRejection>,
) -> Result<Json<RunPage>, ApiError> {
    let Query(listing) = query(listing)?;
    let limit = listing.limit.unwrap_or(50);
    if !(1..=PAGE).contains(&limit) {
        return Err(ApiError::invalid(
            format!("query parameter limit: must be from 1 to {PAGE}"),
            "ask for the next page with `before`",
        ));
    }
    if listing.before.is_some_and(|before| before > MOST_ID) {
        return Err(ApiError::invalid(
            format!("query parameter before: must be at most {MOST_ID}"),
            "leave it out for the newest runs",
        ));
    }
    let page = api.runs(listing.state, listing.before, limit).await?;
    Ok(Json(page))
}

/// One run in full.
#[utoipa::path(get, path = "/v1/runs/{id}", params(("id" = u64, Path, description = "Number of the run", minimum = 1)), responses((status = 200, body = RunView), Always))]
pub(super) async fn show(
    State(api): State<Api>,
    Segments(id): Segments<String>,
) -> Result<Json<RunView>, ApiError> {
    Ok(Json(api.run(run_id(&id)?).await?))
}

/// Puts a run into the queue, after all the checks that `proctor run` makes.
#[utoipa::path(post, path = "/v1/runs", request_body = Submission, responses((status = 201, body = RunSummary, headers(("location" = String, description = "Path of the run"))), (status = 415, description = "The body is not said to be JSON", body = Problem), (status = 422, description = "It cannot be run", body = Problem), Always))]
pub(super) async fn submit(
    State(api): State<Api>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    let submission: Submission = json(&headers, &body)?;
    let summary = api.submissions.submit(submission).await?;
    let place = format!("/v1/runs/{}", summary.id);
    let created = (
        StatusCode::CREATED,
        [(header::LOCATION, place)],
        Json(summary),
    );
    Ok(created.into_response())
}

/// What to cancel.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// Names or ids of methods; none for the whole run.
    #[serde(default)]
    #[schema(max_items = 1000)]
    pub methods: Vec<String>,
}

/// Cancels a run or some of its methods.
#[utoipa::path(post, path = "/v1/runs/{id}/cancel", params(("id" = u64, Path, description = "Number of the run", minimum = 1)), request_body = Cancel, responses((status = 200, body = RunSummary), (status = 409, description = "The run is over", body = Problem), (status = 415, description = "The body is not said to be JSON", body = Problem), Always))]
pub(super) async fn cancel(
    State(api): State<Api>,
    Segments(id): Segments<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<RunSummary>, ApiError> {
    let id = run_id(&id)?;
    let wanted: Cancel = json(&headers, &body)?;
    Ok(Json(api.cancel(id, wanted.methods).await?))
}

/// The position of a method by its id or its name.
pub(super) fn method(plan: &Plan, wanted: &str) -> Result<usize, ApiError> {
    let methods = || plan.methods.iter();
    methods()
        .position(|method| method.id == wanted)
        .or_else(|| methods().position(|method| method.name == wanted))
        .ok_or_else(|| ApiError::unknown("method", wanted))
}

/// The number of a run in a path.
pub(super) fn run_id(text: &str) -> Result<u64, ApiError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let id = text.parse().ok().filter(|_| digits);
    id.ok_or_else(|| ApiError::unknown("run", text))
}

pub(super) fn query<T>(found: Result<Query<T>, QueryRejection>) -> Result<Query<T>, ApiError> {
    found.map_err(|error| {
        ApiError::invalid(
            error.body_text(),
            "GET /v1/openapi.json describes the parameters",
        )
    })
}

/// A body that must be JSON of a known form.
fn json<T: DeserializeOwned>(headers: &HeaderMap, body: &Bytes) -> Result<T, ApiError> {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(ApiError::NotJson);
    }
    let wrong = |problem: &dyn std::fmt::Display| {
        ApiError::invalid(
            format!("body: {problem}"),
            "GET /v1/openapi.json describes the body",
        )
    };
    let value: Value = serde_json::from_slice(body).map_err(|error| wrong(&error))?;
    object(value).map_err(|error: serde_json::Error| wrong(&error))
}

pub(super) async fn nothing_here(uri: Uri) -> ApiError {
    ApiError::unknown("path", uri.path())
}

pub(super) async fn not_possible(method: Method) -> ApiError {
    ApiError::Method(method.to_string())
}
