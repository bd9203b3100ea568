//! A browser shows the token once, and may look from then on.

use super::Api;
use super::error::ApiError;
use axum::Form;
use axum::Router;
use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use serde::Deserialize;

/// The way in.
pub(super) fn router() -> Router<Api> {
    Router::new().route("/login", get(form).post(enter))
}

const FORM: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
<meta name=\"viewport\" content=\"width=device-width\"><title>Proctor</title>\
<form method=\"post\" action=\"/login\"><p><label>Token of this daemon \
<input type=\"password\" name=\"token\" autocomplete=\"current-password\" required></label> \
<button>Look</button></p></form></html>";

async fn form() -> Html<&'static str> {
    Html(FORM)
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
        return Err(ApiError::Unauthorized);
    };
    let mut response = Redirect::to("/").into_response();
    if let Ok(cookie) = HeaderValue::from_str(&token.set_cookie()) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}
