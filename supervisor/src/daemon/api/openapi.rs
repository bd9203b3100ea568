//! The API described: one table of routes serves requests and makes the document of it, so neither can be without the
//! other. `docs/openapi.json` is a copy, and a test compares.

use super::{Api, events, files, runs};
use crate::daemon::view::Problem;
use axum::Json;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{IntoResponses, Modify};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Answers that every request may get.
#[derive(IntoResponses)]
#[expect(
    dead_code,
    reason = "describes answers; the answers are made in `error`"
)]
pub(super) enum Always {
    /// The request makes no sense.
    #[response(status = 400)]
    Invalid(Problem),
    /// No token, or a wrong one (TCP only).
    #[response(status = 401)]
    Unauthorized(Problem),
    /// A page of another origin, or a browser that may only look (TCP only).
    #[response(status = 403)]
    Forbidden(Problem),
    /// There is no such run, method, attempt or file.
    #[response(status = 404)]
    Unknown(Problem),
    /// The request did not come in in time.
    #[response(status = 408)]
    TooSlow(Problem),
    /// The body is too large.
    #[response(status = 413)]
    TooLarge(Problem),
    /// Too many requests; wait a second.
    #[response(status = 429)]
    TooMany(Problem),
    /// Our side failed.
    #[response(status = 500)]
    Internal(Problem),
    /// The daemon is stopping, or too much is going on.
    #[response(status = 503)]
    Unavailable(Problem),
}

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut OpenApi) {
        let components = document.components.get_or_insert_with(Default::default);
        components.add_security_scheme(
            "token",
            SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)),
        );
    }
}

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Proctor daemon",
        description = "A queue of runs. Over the Unix socket no token is needed; over TCP every request but /healthz needs it.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
        contact()
    ),
    security(("token" = [])),
    modifiers(&Bearer)
)]
struct Described;

/// Every route with its description.
pub(super) fn router() -> OpenApiRouter<Api> {
    OpenApiRouter::with_openapi(<Described as utoipa::OpenApi>::openapi())
        .routes(routes!(runs::health))
        .routes(routes!(document))
        .routes(routes!(runs::queue))
        .routes(routes!(runs::list, runs::submit))
        .routes(routes!(runs::show))
        .routes(routes!(runs::cancel))
        .routes(routes!(files::log))
        .routes(routes!(files::bundle_file))
        .routes(routes!(events::all))
        .routes(routes!(events::of_run))
}

/// The document.
pub fn openapi() -> OpenApi {
    router().split_for_parts().1
}

/// This document.
#[utoipa::path(get, path = "/v1/openapi.json", responses((status = 200, description = "The OpenAPI document", content_type = "application/json", body = utoipa::openapi::Object), Always))]
async fn document() -> Json<OpenApi> {
    Json(openapi())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_copy_in_the_documentation_is_true() {
        let now = super::openapi().to_pretty_json().unwrap() + "\n";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
        if std::env::var_os("PROCTOR_UPDATE").is_some() {
            std::fs::write(&path, &now).unwrap();
        }
        let copy = std::fs::read_to_string(&path).unwrap();
        assert!(
            copy == now,
            "docs/openapi.json is not what the code says; PROCTOR_UPDATE=1 ./test the_copy writes it anew"
        );
    }
}
