//! Where the pages are. Each asks for a view, has it drawn, and does nothing else; cancelling is what the API does.

use super::{
    ICON, Keep, Moment, SCRIPT, cancel_page, form, list_page, login_page, overview_page,
    problem_page, run_page, style,
};
use crate::daemon::api::Api;
use crate::daemon::api::error::ApiError;
use crate::daemon::api::segments::Segments;
use crate::daemon::auth::Door;
use crate::daemon::metrics;
use crate::daemon::view::{RunState, RunView};
use crate::run::host;
use axum::Router;
use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::extract::{Extension, Form, Query, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use serde::Deserialize;

/// Runs on one page of the list.
const RUNS: usize = 50;

/// The pages, and what they are made of.
pub fn router() -> Router<Api> {
    Router::new()
        .route("/", get(overview))
        .route("/runs", get(list))
        .route("/runs/{id}", get(run))
        .route("/runs/{id}/cancel", get(ask).post(cancel))
        .route("/login", get(login))
        .route("/metrics", get(numbers))
        .route(
            "/page.css",
            get(|| async { of_type("text/css; charset=utf-8", style()) }),
        )
        .route(
            "/page.js",
            get(|| async { of_type("text/javascript; charset=utf-8", SCRIPT) }),
        )
        .route(
            "/page.svg",
            get(|| async { of_type("image/svg+xml", ICON) }),
        )
}

fn of_type(kind: &'static str, body: impl IntoResponse) -> Response {
    ([(header::CONTENT_TYPE, kind)], body).into_response()
}

/// What is asked of a page. What is not understood is taken as not said: these are addresses that people edit.
#[derive(Debug, Default, Deserialize)]
struct Wish {
    /// Any text: the page is to stay as it is.
    still: Option<String>,
    /// Which part of the methods.
    part: Option<String>,
    /// Runs with lower numbers.
    before: Option<String>,
    /// The method to cancel.
    method: Option<String>,
}

/// What came with the address.
type Asked = Result<Query<Wish>, QueryRejection>;

impl Wish {
    fn of(asked: Asked) -> Self {
        asked.map(|Query(wish)| wish).unwrap_or_default()
    }

    fn keep<'a>(&self, otherwise: Keep<'a>) -> Keep<'a> {
        match self.still {
            Some(_) => Keep::Still,
            None => otherwise,
        }
    }
}

/// Who shows a page, and when.
struct Now {
    utc: String,
    host: String,
}

impl Now {
    fn take() -> Self {
        Self {
            utc: host::now_utc(),
            host: host::machine().host,
        }
    }

    fn moment(&self) -> Moment<'_> {
        Moment {
            now_utc: &self.utc,
            version: env!("CARGO_PKG_VERSION"),
            host: &self.host,
        }
    }
}

/// A page that cannot be shown, as a page.
struct Problem(ApiError);

impl From<ApiError> for Problem {
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let problem = self.0.problem();
        let page = problem_page(&problem, Now::take().moment());
        (self.0.status(), Html(page)).into_response()
    }
}

async fn overview(State(api): State<Api>, asked: Asked) -> Html<String> {
    let keep = Wish::of(asked).keep(Keep::Live("/v1/events"));
    Html(overview_page(&api.queue_view(), &host::now_utc(), keep))
}

async fn list(State(api): State<Api>, asked: Asked) -> Result<Html<String>, Problem> {
    let wish = Wish::of(asked);
    let before = wish.before.as_deref().and_then(|text| text.parse().ok());
    let page = api.runs(None, before, RUNS).await?;
    let keep = wish.keep(Keep::Slow);
    Ok(Html(list_page(&page, before, Now::take().moment(), keep)))
}

/// The run of a path.
async fn found(api: &Api, id: &str) -> Result<RunView, Problem> {
    let unknown = || ApiError::unknown("run", id);
    let digits = id.bytes().all(|byte| byte.is_ascii_digit());
    let number = id.parse().ok().filter(|_| digits).ok_or_else(unknown)?;
    Ok(api.run(number).await?)
}

async fn run(
    State(api): State<Api>,
    Segments(id): Segments<String>,
    asked: Asked,
) -> Result<Html<String>, Problem> {
    let wish = Wish::of(asked);
    let run = found(&api, &id).await?;
    let events = format!("/v1/runs/{}/events", run.summary.id);
    let keep = match run.summary.state {
        RunState::Ended => Keep::Slow,
        RunState::Queued | RunState::Running => Keep::Live(&events),
    };
    let part = wish.part.as_deref().and_then(|text| text.parse().ok());
    let keep = wish.keep(keep);
    Ok(Html(run_page(
        &run,
        part.unwrap_or(1),
        Now::take().moment(),
        keep,
    )))
}

async fn ask(
    State(api): State<Api>,
    Extension(door): Extension<Door>,
    Segments(id): Segments<String>,
    asked: Asked,
) -> Result<Html<String>, Problem> {
    let wish = Wish::of(asked);
    let run = found(&api, &id).await?;
    let method = wish.method.as_deref();
    let method = run
        .methods
        .iter()
        .find(|one| Some(one.id.as_str()) == method);
    let page = cancel_page(&run, method, needs_token(door), None, Now::take().moment());
    Ok(Html(page))
}

/// On the Unix socket the file's mode decides who may ask, and whoever can connect may do everything.
fn needs_token(door: Door) -> bool {
    matches!(door, Door::Tcp(_))
}

/// The form as sent.
#[derive(Deserialize)]
struct Wanted {
    #[serde(default)]
    token: String,
    method: Option<String>,
}

async fn cancel(
    State(api): State<Api>,
    Extension(door): Extension<Door>,
    Segments(id): Segments<String>,
    headers: HeaderMap,
    wanted: Result<Form<Wanted>, FormRejection>,
) -> Result<Response, Problem> {
    let text = |name: HeaderName| {
        headers
            .get(name)
            .map(|text| text.to_str().unwrap_or_default())
    };
    let site = text(HeaderName::from_static("sec-fetch-site"));
    // Also on the Unix socket: `ssh -L` puts a browser there.
    if !form::from_here(text(header::ORIGIN), site, text(header::HOST)) {
        return Err(Problem(ApiError::Forbidden(
            "this form was sent by a page of another origin".into(),
        )));
    }
    let Form(wanted) = wanted.map_err(|error| {
        ApiError::invalid(error.body_text(), "send the form of the page as it is")
    })?;
    let run = found(&api, &id).await?;
    let method = match &wanted.method {
        None => None,
        Some(id) => {
            let found = run.methods.iter().find(|method| method.id == *id);
            Some(found.ok_or_else(|| ApiError::unknown("method", id))?)
        }
    };
    let again = |status: StatusCode, problem: &str| {
        let moment = Now::take();
        let page = cancel_page(
            &run,
            method,
            needs_token(door),
            Some(problem),
            moment.moment(),
        );
        (status, Html(page)).into_response()
    };
    let shown = api
        .token
        .as_ref()
        .is_some_and(|token| token.is(wanted.token.trim()));
    if needs_token(door) && !shown {
        return Ok(again(
            StatusCode::FORBIDDEN,
            "this is not the token of the daemon",
        ));
    }
    let methods = method.map(|method| method.id.clone()).into_iter().collect();
    match api.cancel(run.summary.id, methods).await {
        Ok(_) => Ok(Redirect::to(&format!("/runs/{}", run.summary.id)).into_response()),
        Err(error @ ApiError::Conflict(_)) => Ok(again(error.status(), &error.to_string())),
        Err(error) => Err(error.into()),
    }
}

async fn login() -> Html<String> {
    Html(login_page(None, Now::take().moment()))
}

/// The page that asks for the token again, after what was wrong with the last one.
pub fn login_again(problem: &str) -> String {
    login_page(Some(problem), Now::take().moment())
}

async fn numbers(State(api): State<Api>) -> Response {
    // Counting descriptors reads a folder of procfs, which never waits for a disk.
    let text = metrics::exposition(&api.queue_view(), &host::now_utc(), metrics::Process::own());
    of_type(metrics::CONTENT_TYPE, text)
}
