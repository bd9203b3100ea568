//! The pages with a form: the one that cancels a run or a method, and the one that asks for the token.

use super::{Keep, Moment, Page, name, sentence};
use crate::daemon::view::{MethodView, Problem, RunView};
use crate::render::brief;
use maud::{Markup, html};

/// Asks whether a run, or one method of it, is to be cancelled. `ask_token` says whether the token must be shown for that;
/// `problem` is what was wrong with the last try.
pub fn cancel_page(
    run: &RunView,
    method: Option<&MethodView>,
    ask_token: bool,
    problem: Option<&str>,
    moment: Moment<'_>,
) -> String {
    let id = run.summary.id;
    let address = format!("/runs/{id}/cancel");
    let title = format!("Cancel run {id} - Proctor");
    let page = Page {
        moment,
        keep: Keep::Form,
        address: &address,
        title: &title,
        heading: html! { "Cancel run " (id) "?" },
        facts: html! { a href=(format!("/runs/{id}")) { "Back to " (name(&run.summary.benchmark_id)) } },
        main: html! {
            (alarm("Nothing was cancelled.", problem))
            @match method {
                Some(method) => p { "The method " b { (name(&method.name)) } " is stopped. The other methods go on." },
                None => p { "What runs of it is stopped, and what has not started will not." },
            }
            p.note { "Datasets that are finished keep their scores. A cancelled method is not ranked, and it is not held against it." }
            form method="post" action=(address) {
                @if let Some(method) = method { input type="hidden" name="method" value=(brief(&method.id)); }
                @if ask_token { (token_field("off")) }
                button type="submit" { @if method.is_some() { "Cancel this method" } @else { "Cancel this run" } }
            }
        },
    };
    page.text()
}

/// Asks for the token before anything is shown.
pub fn login_page(problem: Option<&str>, moment: Moment<'_>) -> String {
    let page = Page {
        moment,
        keep: Keep::Form,
        address: "/login",
        title: "Proctor",
        heading: html! { "Proctor on " (name(moment.host)) },
        facts: html! { "What runs here is shown to those who know the daemon's token" },
        main: html! {
            (alarm("Not opened.", problem))
            form method="post" action="/login" {
                (token_field("current-password"))
                button.plain type="submit" { "Show the runs" }
            }
            p.note {
                "It is the line in the file that was given as " code { "--token-file" } ". This browser may then look; \
                 whatever changes something asks for the token again."
            }
        },
    };
    page.text()
}

/// Says why something cannot be shown.
pub fn problem_page(problem: &Problem, moment: Moment<'_>) -> String {
    let page = Page {
        moment,
        keep: Keep::Form,
        address: "",
        title: "Proctor",
        heading: html! { "This cannot be shown" },
        facts: html! { (brief(&problem.code)) },
        main: html! { p.lead { (sentence(&problem.message)) } p.note { (sentence(&problem.help)) } },
    };
    page.text()
}

fn token_field(autocomplete: &str) -> Markup {
    html! {
        label for="token" { "Token of the daemon" }
        input id="token" name="token" type="password" required autocomplete=(autocomplete) spellcheck="false";
    }
}

fn alarm(what: &str, problem: Option<&str>) -> Markup {
    html! {
        @if let Some(problem) = problem {
            div.banner.alarm role="alert" { strong.bad { (what) } " " (sentence(problem)) }
        }
    }
}

/// True when a request that changes something came from our own page, or from no browser at all. A browser names the
/// origin of every form that is sent; `host` is the `Host` header.
pub fn from_here(origin: Option<&str>, fetch_site: Option<&str>, host: Option<&str>) -> bool {
    let site = fetch_site.is_none_or(|site| matches!(site, "same-origin" | "none"));
    let same = |origin: &str| {
        let bare = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        bare.is_some() && bare == host
    };
    site && origin.is_none_or(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_page_may_send_the_form() {
        let here = Some("127.0.0.1:8080");
        assert!(from_here(
            Some("http://127.0.0.1:8080"),
            Some("same-origin"),
            here
        ));
        assert!(from_here(Some("http://127.0.0.1:8080"), None, here));
        assert!(from_here(None, None, here));
        assert!(from_here(None, None, None));
        for (origin, site) in [
            (Some("http://evil.example"), None),
            (Some("http://127.0.0.1:8081"), None),
            (Some("http://127.0.0.1:8080.evil.example"), None),
            (Some("null"), None),
            (Some(""), None),
            (Some("127.0.0.1:8080"), None),
            (Some("http://127.0.0.1:8080"), Some("cross-site")),
            (None, Some("same-site")),
            (None, Some("")),
        ] {
            assert!(!from_here(origin, site, here), "{origin:?} {site:?}");
        }
        assert!(!from_here(Some("http://127.0.0.1:8080"), None, None));
    }
}
