//! The live page: what the daemon shows, as HTML that is whole without a script. Every page is a pure function of a view;
//! the script only asks for the same page again when the daemon says that something changed, and puts what is new in
//! its place. There is one rendering, in one language, and no state in the browser that could be wrong.

mod files;
mod form;
mod machine;
mod method;
mod overview;
mod routes;
mod run;
#[cfg(test)]
pub(super) mod sample;
#[cfg(test)]
mod tests;
mod timeline;
mod words;

pub use files::{Served, served};
pub use form::{cancel_page, from_here, login_page, problem_page};
pub use overview::{list_page, overview_page};
pub use routes::{login_again, router};
pub use run::run_page;

use crate::render::{brief, message};
use maud::{DOCTYPE, Markup, html};
use words::time;

/// The styles of the live page, which come after those of the bundles' pages: both are to look the same.
const STYLE: &str = include_str!("page.css");
/// The script of the live page.
pub const SCRIPT: &str = include_str!("page.js");

/// The icon of the live page.
pub const ICON: &str = include_str!("page.svg");

/// What a page may do: its own style, its own script, talk to its own daemon. Nothing inline, nothing from elsewhere.
pub const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Without a script a page loads itself again after so many seconds.
const RELOAD_SECONDS: u32 = 5;

/// The style sheet of every page.
pub fn style() -> String {
    format!("{}{STYLE}", proctor_protocol::bundle::STYLE)
}

/// How a page keeps up with what it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep<'a> {
    /// It follows this event stream, or reloads itself where there is no script.
    Live(&'a str),
    /// It is asked for again now and then, since nothing is expected to change.
    Slow,
    /// It stays as it is, because the reader asked for that.
    Still,
    /// It is a form, which shows nothing that changes.
    Form,
}

/// When and by what a page is made.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// The time of day, in UTC to the second.
    pub now_utc: &'a str,
    /// Version of the daemon.
    pub version: &'a str,
    /// The machine's name.
    pub host: &'a str,
}

/// The parts of a page.
struct Page<'a> {
    moment: Moment<'a>,
    keep: Keep<'a>,
    /// The address of this page, with its query.
    address: &'a str,
    title: &'a str,
    /// What stands in the first heading.
    heading: Markup,
    /// The line below it.
    facts: Markup,
    main: Markup,
}

impl Page<'_> {
    fn text(self) -> String {
        let Self { moment, keep, .. } = self;
        let events = match keep {
            Keep::Live(events) => Some(events),
            Keep::Slow | Keep::Still | Keep::Form => None,
        };
        let moves = matches!(keep, Keep::Live(_) | Keep::Slow);
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="referrer" content="same-origin";
                    title { (self.title) }
                    link rel="icon" href="/page.svg" type="image/svg+xml";
                    link rel="stylesheet" href="/page.css";
                    @if moves {
                        script src="/page.js" defer {}
                        noscript { meta http-equiv="refresh" content=(RELOAD_SECONDS); }
                    }
                }
                body data-version=(brief(moment.version)) {
                    a.skip href="#main" { "To the content" }
                    header data-events=[events] {
                        h1 { (self.heading) }
                        p.facts { (self.facts) }
                        @if self.address != "/login" { nav aria-label="Pages" {
                            @for (address, label) in [("/", "Overview"), ("/runs", "All runs"), ("/metrics", "Metrics")] {
                                @if address == self.address {
                                    a href=(address) aria-current="page" { (label) }
                                } @else {
                                    a href=(address) { (label) }
                                }
                            }
                        } }
                        @if keep != Keep::Form { (status(moment, keep, self.address)) }
                    }
                    main id="main" tabindex="-1" { (self.main) }
                    footer { p {
                        "Proctor " (brief(moment.version)) " on " bdi { (brief(moment.host)) } ". Times of day are UTC."
                    } }
                }
            }
        };
        page.into_string()
    }
}

/// How fresh the page is. The script rewrites it; without one it is true all the same.
fn status(moment: Moment<'_>, keep: Keep<'_>, address: &str) -> Markup {
    let join = if address.contains('?') { '&' } else { '?' };
    html! {
        div.status {
            p id="live" {
                span.dot aria-hidden="true" {}
                // Told to a screen reader when it changes; the time beside it would be told every second.
                span role="status" { "As of" } " "
                (time(moment.now_utc))
            }
            @if keep == Keep::Still {
                p { a href=(address) { "Resume updates" } }
            } @else {
                noscript { p { "This page reloads itself every " (RELOAD_SECONDS) " seconds." } }
                p { a href=(format!("{address}{join}still")) { "Pause updates" } }
            }
        }
    }
}

/// Somebody's name: harmless, bounded, and kept from turning the text around it.
fn name(text: &str) -> Markup {
    html! { bdi { (brief(text)) } }
}

/// Somebody's sentence: harmless, bounded, with a capital letter and a full stop.
fn sentence(text: &str) -> Markup {
    let text = message(text);
    let mut characters = text.chars();
    let start: String = characters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    let rest = characters.as_str();
    let end = if text.is_empty() || text.ends_with(['.', '!', '?']) {
        ""
    } else {
        "."
    };
    html! { bdi { (start) (rest) (end) } }
}

fn chip(standing: words::Standing, text: &str) -> Markup {
    html! { span class=(format!("chip {}", standing.class())) { (text) } }
}

/// The beginning of a digest.
fn short(digest: &str) -> String {
    brief(&digest.chars().take(12).collect::<String>())
}

/// Any text as one part of an address.
fn address(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"._-".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
