//! Every answer that is not a success: a status, and a [`Problem`] in JSON.

use crate::daemon::view::Problem;
use crate::render::message;
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Why a request was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// The request makes no sense.
    #[error("{message}")]
    Invalid {
        /// What is wrong, and where.
        message: String,
        /// What to do.
        help: String,
    },
    /// What was submitted cannot be run; the message is that of `proctor run`.
    #[error("{0}")]
    Refused(String),
    /// No token, or a wrong one.
    #[error("this needs the token of the daemon")]
    Unauthorized,
    /// A browser that may only look, or a page of somebody else.
    #[error("{0}")]
    Forbidden(String),
    /// There is nothing of that name.
    #[error("there is no {what} {name}")]
    Unknown {
        /// A run, a method, a file, ...
        what: &'static str,
        /// Which.
        name: String,
    },
    /// A method that has no attempt.
    #[error("{0}")]
    NotStarted(String),
    /// There is such a path, but not for this method.
    #[error("{0} is not possible here")]
    Method(String),
    /// It came too late.
    #[error("{0}")]
    Conflict(String),
    /// The body is too large.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// The body is of another type.
    #[error("the body must be JSON (Content-Type: application/json)")]
    NotJson,
    /// The request took too long to come in.
    #[error("the request did not come in within {0} seconds")]
    TooSlow(u64),
    /// Too many requests a second.
    #[error("too many requests")]
    TooMany,
    /// Too much is going on, or the daemon is stopping.
    #[error("{0}")]
    Unavailable(String),
    /// Our side failed.
    #[error("{0}")]
    Internal(String),
}

impl ApiError {
    /// An [`ApiError::Invalid`].
    pub fn invalid(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Invalid {
            message: message.into(),
            help: help.into(),
        }
    }

    /// An [`ApiError::Unknown`].
    pub fn unknown(what: &'static str, name: &str) -> Self {
        Self::Unknown {
            what,
            name: crate::render::brief(name),
        }
    }

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Invalid { .. } => StatusCode::BAD_REQUEST,
            Self::Refused(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::Unknown { .. } | Self::NotStarted(_) => StatusCode::NOT_FOUND,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The document of the answer.
    pub fn problem(&self) -> Problem {
        let (code, help) = match self {
            Self::Invalid { help, .. } => ("invalid", help.as_str()),
            Self::Refused(_) => ("refused", "mend what the message names, and submit again"),
            Self::Unauthorized => (
                "unauthorized",
                "send it as `Authorization: Bearer TOKEN`; a browser is asked for it at /login",
            ),
            Self::Forbidden(_) => (
                "forbidden",
                "send the token with the request itself, from the daemon's own page or from a program",
            ),
            Self::Unknown { what, .. } => (
                "unknown",
                match *what {
                    "run" => "`proctor ls` and GET /v1/runs list the runs there are",
                    "method" => {
                        "`proctor show RUN` and GET /v1/runs/{id} list the methods of a run"
                    }
                    "attempt" => {
                        "`proctor show RUN --json` and GET /v1/runs/{id} list the attempts of a method"
                    }
                    "bundle" | "file" => "GET /v1/runs/{id} lists the newest bundle and its files",
                    _ => "GET /v1/openapi.json describes the paths",
                },
            ),
            Self::NotStarted(_) => (
                "not_started",
                "`proctor show RUN` and GET /v1/runs/{id} say what it waits for",
            ),
            Self::Method(_) => (
                "method_not_allowed",
                "GET /v1/openapi.json describes what is possible",
            ),
            Self::Conflict(_) => ("conflict", "look at its state again"),
            Self::TooLarge(_) => ("too_large", "send less"),
            Self::NotJson => ("not_json", "set the header, and send one JSON object"),
            Self::TooSlow(_) => ("too_slow", "send the whole request at once"),
            Self::TooMany => ("too_many", "wait a second, and ask again"),
            Self::Unavailable(_) => ("unavailable", "ask again later"),
            Self::Internal(_) => (
                "internal",
                "look at the daemon's log; `proctor status RUN_DIR` reads a run without the daemon",
            ),
        };
        let text = self.to_string();
        let lines: Vec<String> = text.lines().map(message).collect();
        Problem {
            code: code.to_owned(),
            message: lines.join("\n"),
            help: help.to_owned(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut response = (status, Json(self.problem())).into_response();
        let headers = response.headers_mut();
        if matches!(self, Self::TooMany | Self::Unavailable(_)) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if matches!(self, Self::Unauthorized) {
            headers.insert(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static("Bearer realm=\"proctor\""),
            );
        }
        // What is left of a body that was not read would be taken for the next request.
        if matches!(self, Self::TooLarge(_) | Self::TooSlow(_)) {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
