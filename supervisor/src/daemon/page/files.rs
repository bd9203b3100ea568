//! The files of a bundle: which are listed, and how each may be shown by a browser.

use super::address;
use super::words::{bytes, count};
use crate::daemon::view::RunView;
use crate::render::brief;
use maud::{Markup, html};

/// The most files that are listed; the page of the bundle itself has all its links.
const LISTED: usize = 100;

/// The bundle of a run, with links to its files.
pub(super) fn section(run: &RunView) -> Markup {
    let id = run.summary.id;
    let Some(bundle) = &run.bundle else {
        return html! {
            section aria-labelledby="bundle" {
                h2 id="bundle" { "Bundle" }
                p.note { "There is none yet." }
            }
        };
    };
    let link = |path: &str| {
        format!(
            "/v1/runs/{id}/bundles/{}/{}",
            address(&bundle.number),
            address(path)
        )
    };
    let more = bundle.files.len().saturating_sub(LISTED);
    html! {
        section aria-labelledby="bundle" {
            h2 id="bundle" { "Bundle" }
            @if let Some(page) = &bundle.page {
                p { a.big href=(link(page)) { "Rankings and results" } }
            }
            details id="files" {
                summary { (count(bundle.files.len() as u64, "file")) }
                div.body { div.wide { table {
                    thead { tr { th scope="col" { "File" } th.number scope="col" { "Size" } } }
                    tbody { @for file in bundle.files.iter().take(LISTED) { tr {
                        td { a href=(link(&file.path)) { (brief(&file.path)) } }
                        td.number { (bytes(file.bytes)) }
                    } } }
                } }
                @if more > 0 { p.note { "and " (more) " more" } } }
            }
        }
    }
}

/// How a file of a bundle is given to a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// Its media type. What is not known to be ours is plain text, whatever is in it.
    pub content_type: &'static str,
    /// Its content security policy: even our own pages get no script, no form and nothing from elsewhere. They keep their
    /// origin, since a browser sends its cookie only then when one leads to the other.
    pub policy: &'static str,
}

/// How the file at `path` of a bundle is served. Only the two pages at the top, which we wrote ourselves, are HTML.
pub fn served(path: &str) -> Served {
    let ours = !path.contains('/');
    let ends = |end: &str| path.len() > end.len() && path.ends_with(end);
    let content_type = if ours && ends(".html") {
        "text/html; charset=utf-8"
    } else if ends(".json") {
        "application/json"
    } else {
        "text/plain; charset=utf-8"
    };
    Served {
        content_type,
        policy: "sandbox allow-same-origin; default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_pages_are_html() {
        assert_eq!(
            served("bundle.html").content_type,
            "text/html; charset=utf-8"
        );
        assert_eq!(served("bundle.json").content_type, "application/json");
        for plain in [
            "scores/x.html",
            "scores/a.csv",
            ".html",
            "x.svg",
            "x.xhtml",
            "x.HTML",
            "",
        ] {
            assert_eq!(
                served(plain).content_type,
                "text/plain; charset=utf-8",
                "{plain}"
            );
        }
        let policy = served("bundle.html").policy;
        assert!(
            policy.starts_with("sandbox ")
                && !policy.contains("allow-scripts")
                && !policy.contains("script-src")
        );
    }
}
