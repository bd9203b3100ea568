//! A browser shows the token once, and may look from then on.

use super::Api;
use super::error::ApiError;
use crate::daemon::page;
use axum::Form;
use axum::Router;
use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::post;
use serde::Deserialize;

/// The way in.
pub(super) fn router() -> Router<Api> {
    Router::new().route("/login", post(enter))
}

#[derive(Deserialize)]
struct Entry {
    token: String,
}

async fn enter(
    State(api): State<Api>,
    entry: Result<Form<Entry>, FormRejection>,
) -> Result<Response, ApiError> {
    let Form(entry) = entry.map_err(|error| {
        ApiError::invalid(error.body_text(), "send the field `token` of the form")
    })?;
    let token = api
        .token
        .as_ref()
        .filter(|token| token.is(entry.token.trim()));
    let Some(token) = token else {
        let again = page::login_again("this is not the token of the daemon");
        return Ok((StatusCode::UNAUTHORIZED, Html(again)).into_response());
    };
    let mut response = Redirect::to("/").into_response();
    if let Ok(cookie) = HeaderValue::from_str(&token.set_cookie()) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}
