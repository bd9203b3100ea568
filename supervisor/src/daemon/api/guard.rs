//! What every request passes before anything is done for it, cheapest first: rate, the name of this machine, who asks,
//! and a body of bounded size within bounded time. And what every answer gets.

use super::Api;
use super::error::ApiError;
use crate::daemon::auth::{Access, Door, host_is_ours, origin_is_ours};
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The largest body: a submission is a few hundred bytes.
pub const BODY_BYTES: usize = 64 << 10;
/// A body comes in within this time.
const BODY_SECONDS: u64 = 10;

/// So many requests a second, and some at once: a bucket of tokens that fills at a steady rate.
#[derive(Debug)]
pub struct Rate {
    per_second: f64,
    state: Mutex<(f64, Instant)>,
}

impl Rate {
    /// At most so many a second on average, and twice as many at once.
    pub fn new(per_second: u32) -> Self {
        let per_second = f64::from(per_second);
        Self {
            per_second,
            state: Mutex::new((2.0 * per_second, Instant::now())),
        }
    }

    /// Takes one; false when there is none left.
    fn take(&self, now: Instant) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, since) = *state;
        let passed = now.saturating_duration_since(since).as_secs_f64();
        let left = (left + passed * self.per_second).min(2.0 * self.per_second);
        let taken = left >= 1.0;
        *state = (if taken { left - 1.0 } else { left }, now);
        taken
    }
}

/// The middleware around everything.
pub(super) async fn guard(State(api): State<Api>, request: Request, next: Next) -> Response {
    let mut response = match admit(&api, request).await {
        Ok(request) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    harden(response.headers_mut());
    response
}

/// Why a request goes no further.
enum Refusal {
    Error(ApiError),
    /// A browser that has not shown the token yet.
    Login,
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::Error(error) => error.into_response(),
            Self::Login => Redirect::to("/login").into_response(),
        }
    }
}

async fn admit(api: &Api, request: Request) -> Result<Request, Refusal> {
    let door = request.extensions().get().copied().unwrap_or(Door::Unix);
    let rate = match door {
        Door::Unix => &api.rates.0,
        Door::Tcp(_) => &api.rates.1,
    };
    if !rate.take(Instant::now()) {
        return Err(ApiError::TooMany.into());
    }
    match door {
        Door::Unix => check_name(&request)?,
        Door::Tcp(port) => {
            check_origin(&request, port)?;
            check_access(api, &request)?;
        }
    }
    let (parts, body) = request.into_parts();
    let announced = parts
        .headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > BODY_BYTES as u64) {
        return Err(ApiError::TooLarge(BODY_BYTES).into());
    }
    let body = tokio::time::timeout(
        Duration::from_secs(BODY_SECONDS),
        to_bytes(body, BODY_BYTES),
    );
    match body.await {
        Ok(Ok(bytes)) => Ok(Request::from_parts(parts, Body::from(bytes))),
        Ok(Err(_)) => Err(ApiError::TooLarge(BODY_BYTES).into()),
        Err(_) => Err(ApiError::TooSlow(BODY_SECONDS).into()),
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// Refuses on the Unix socket what a page of somebody else makes a browser send, which comes in there through `ssh -L`: a page
/// whose name was made to lead here has that name, with its dots, in the Host header.
fn check_name(request: &Request) -> Result<(), ApiError> {
    let host = text(request.headers(), header::HOST).unwrap_or_default();
    let port = host
        .rsplit_once(':')
        .and_then(|(_, port)| port.parse().ok());
    if host.contains('.') && !host_is_ours(host, port.unwrap_or(80)) {
        return Err(ApiError::Forbidden(
            "the Host header must name this machine, as localhost does".into(),
        ));
    }
    Ok(())
}

/// Refuses requests that a page of somebody else makes a browser send.
fn check_origin(request: &Request, port: u16) -> Result<(), ApiError> {
    let headers = request.headers();
    let host = text(headers, header::HOST).unwrap_or_default();
    if !host_is_ours(host, port) {
        return Err(ApiError::Forbidden(
            "the Host header must be 127.0.0.1, localhost or [::1] with the port of the daemon"
                .into(),
        ));
    }
    let foreign = headers
        .get(header::ORIGIN)
        .is_some_and(|origin| !origin.to_str().is_ok_and(|from| origin_is_ours(from, host)));
    let site = text(headers, HeaderName::from_static("sec-fetch-site"));
    let strange = site.is_some_and(|site| site != "same-origin" && site != "none");
    if foreign || (strange && request.method() != Method::GET) {
        return Err(ApiError::Forbidden(
            "requests from pages of another origin are not answered".into(),
        ));
    }
    Ok(())
}

/// Paths that are answered without a token.
const OPEN: [&str; 4] = ["/healthz", "/login", "/page.css", "/page.svg"];

fn check_access(api: &Api, request: &Request) -> Result<(), Refusal> {
    let path = request.uri().path();
    if OPEN.contains(&path) || is_cancel_form(request.method(), path) {
        return Ok(());
    }
    let headers = request.headers();
    let access = match &api.token {
        Some(token) => token.access(
            text(headers, header::AUTHORIZATION),
            text(headers, header::COOKIE),
        ),
        None => Access::None,
    };
    let looks = matches!(*request.method(), Method::GET | Method::HEAD);
    let wants_page = text(headers, header::ACCEPT).is_some_and(|types| types.contains("text/html"));
    match access {
        Access::Full => Ok(()),
        Access::Read if looks => Ok(()),
        Access::Read => Err(ApiError::Forbidden(
            "a browser may only look; this request needs the token itself".into(),
        )
        .into()),
        Access::None if looks && wants_page => Err(Refusal::Login),
        Access::None => Err(ApiError::Unauthorized.into()),
    }
}

/// True for the form of the page that cancels, which holds the token itself: its handler looks for it there.
fn is_cancel_form(method: &Method, path: &str) -> bool {
    let run = path
        .strip_prefix("/runs/")
        .and_then(|rest| rest.strip_suffix("/cancel"));
    *method == Method::POST && run.is_some()
}

/// What a browser is told about every answer that says nothing else.
fn harden(headers: &mut HeaderMap) {
    let defaults = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        ),
    ];
    for (name, value) in defaults {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_with_a_name_of_its_own_does_not_pass_the_unix_socket() {
        let named = |host: &str| {
            let request = Request::builder().header(header::HOST, host);
            check_name(&request.body(Body::empty()).unwrap()).is_ok()
        };
        for good in [
            "proctor",
            "localhost",
            "localhost:8080",
            "127.0.0.1:8080",
            "127.0.0.1",
            "[::1]:8080",
            "",
        ] {
            assert!(named(good), "{good}");
        }
        for bad in [
            "evil.example",
            "evil.example:8080",
            "127.0.0.1.evil.example:8080",
            "10.0.0.1:8080",
        ] {
            assert!(!named(bad), "{bad}");
        }
    }

    #[test]
    fn a_rate_allows_twice_as_many_at_once_and_fills_again() {
        let rate = Rate::new(10);
        let start = Instant::now();
        let taken = (0..100).filter(|_| rate.take(start)).count();
        assert_eq!(taken, 20);
        let later = start + Duration::from_millis(500);
        assert_eq!((0..100).filter(|_| rate.take(later)).count(), 5);
        let much_later = start + Duration::from_hours(1);
        assert_eq!((0..100).filter(|_| rate.take(much_later)).count(), 20);
        // A clock that seems to go back gives nothing.
        assert!(!rate.take(start));
    }
}
