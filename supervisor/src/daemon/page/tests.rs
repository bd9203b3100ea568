//! Pages as a whole: what they show, and that nothing of anybody's text is ever taken for a part of the page.

use super::sample::{method, moment, outcome, queue, run, summary};
use super::words::{Standing, bytes, clock, left, time};
use super::*;
use crate::daemon::view::{
    MethodState, MethodView, Problem, QueueView, RunPage, RunState, RunView,
};
use proptest::prelude::*;

const LIVE: Keep<'static> = Keep::Live("/v1/events");

fn every_page(queue: &QueueView, run: &RunView) -> Vec<String> {
    let list = RunPage {
        runs: queue.recent.clone(),
        next_before: Some(3),
    };
    vec![
        overview_page(queue, sample::NOW, LIVE),
        list_page(&list, Some(9), moment(), Keep::Slow),
        run_page(run, 1, moment(), Keep::Live("/v1/runs/7/events")),
        cancel_page(
            run,
            run.methods.first(),
            true,
            Some("the token is wrong"),
            moment(),
        ),
        problem_page(
            &Problem {
                code: queue.version.clone(),
                message: run.summary.sentence.clone(),
                help: run.run_id.clone(),
            },
            moment(),
        ),
        login_page(
            Some("the token is wrong"),
            Moment {
                host: &queue.machine.host,
                ..moment()
            },
        ),
    ]
}

/// The tags of a page with the names of their attributes, and nothing of any text or value.
fn skeleton(page: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let (mut quoted, mut tag, mut end) = (false, String::new(), rest.len());
        for (at, character) in rest.char_indices() {
            match character {
                '"' => quoted = !quoted,
                '>' if !quoted => {
                    end = at;
                    break;
                }
                _ if quoted => {}
                other => tag.push(other),
            }
        }
        tags.push(tag);
        rest = &rest[end..];
    }
    tags
}

/// The views with `text` in the place of every text that comes from outside.
fn filled(text: &str) -> (QueueView, RunView) {
    let fill = |target: &mut String| *target = text.to_owned();
    let mut run = run();
    fill(&mut run.summary.benchmark_id);
    fill(&mut run.summary.protocol_id);
    fill(&mut run.summary.sentence);
    fill(&mut run.run_id);
    run.degraded.iter_mut().for_each(fill);
    for method in &mut run.methods {
        fill(&mut method.name);
        fill(&mut method.id);
        fill(&mut method.sentence);
        method.dataset.iter_mut().for_each(fill);
        method.stderr.iter_mut().for_each(fill);
        for attempt in &mut method.attempts {
            fill(&mut attempt.id);
            attempt.remarks.iter_mut().for_each(fill);
        }
        let outcomes = method
            .attempts
            .iter_mut()
            .filter_map(|attempt| attempt.outcome.as_mut());
        for outcome in outcomes.chain(&mut method.outcome) {
            fill(&mut outcome.kind);
            fill(&mut outcome.sentence);
        }
    }
    for file in &mut run.bundle.as_mut().expect("the sample has one").files {
        fill(&mut file.path);
    }
    let mut queue = queue();
    fill(&mut queue.machine.host);
    fill(&mut queue.version);
    queue.waits_for.iter_mut().for_each(fill);
    let runs = queue.running.iter_mut().chain(&mut queue.next);
    for one in runs.chain(&mut queue.recent) {
        fill(&mut one.benchmark_id);
        fill(&mut one.sentence);
        fill(&mut one.submitted_utc);
    }
    (queue, run)
}

fn is_harmful(character: char) -> bool {
    let turns = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (character.is_control() && character != '\n')
}

#[test]
fn a_page_is_whole_without_a_script_and_has_nothing_inline() {
    for page in every_page(&queue(), &run()) {
        for must in [
            "<!DOCTYPE html>",
            "<html lang=\"en\">",
            "<main id=\"main\"",
            "name=\"viewport\"",
            "href=\"/page.css\"",
        ] {
            assert!(page.contains(must), "{must}: {page}");
        }
        assert_eq!(page.matches("<h1>").count(), 1);
        for tag in skeleton(&page) {
            let inline = tag.contains("style=") || tag.contains(" on") || tag.starts_with("style");
            assert!(!inline, "{tag}");
            assert!(!tag.starts_with("th ") || tag.contains("scope="), "{tag}");
            assert!(
                !tag.starts_with("progress") || tag.contains("aria-label="),
                "{tag}"
            );
        }
    }
    assert!(!POLICY.contains("unsafe") && !POLICY.contains('*'));
    assert!(!SCRIPT.contains("innerHTML") && !SCRIPT.contains("eval"));
    assert!(!style().contains("url(") && !style().contains("@import"));
}

#[test]
fn without_a_script_a_page_reloads_itself_unless_it_is_held() {
    let reload = "<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>";
    let page = |keep| run_page(&run(), 1, moment(), keep);
    assert!(page(LIVE).contains(reload));
    assert!(page(LIVE).contains("data-events=\"/v1/events\""));
    assert!(page(Keep::Slow).contains(reload));
    assert!(!page(Keep::Slow).contains("data-events"));
    let still = page(Keep::Still);
    assert!(!still.contains("http-equiv=\"refresh\"") && !still.contains("<script"));
}

#[test]
fn a_form_stays_still_and_asks_for_the_token_where_one_is_needed() {
    let form = |ask_token| cancel_page(&run(), None, ask_token, None, moment());
    for page in [form(true), form(false), login_page(None, moment())] {
        assert!(
            !page.contains("http-equiv") && !page.contains("<script"),
            "{page}"
        );
        assert!(page.contains("method=\"post\"") && !page.contains("role=\"alert\""));
    }
    assert!(form(true).contains("name=\"token\" type=\"password\" required"));
    assert!(!form(false).contains("token"));
}

#[test]
fn the_overview_says_what_runs_what_waits_and_why() {
    let page = overview_page(&queue(), sample::NOW, LIVE);
    for must in [
        "1 running · 3 queued · 25 ended",
        "Run 7: <bdi>Fixture benchmark</bdi>",
        "</time>, for 5:00",
        "3 of 8 methods ended.",
        "1 method running, 1 failed, 1 without a result · priority 5",
        "Waits for 2 cores; run 7 has them.",
        "Run 8 waits for 2 cores.",
        "and 1 more behind these",
        "All 25 that ended",
        "8 methods ended, 2 of them failed.",
        "<b>3 of 4</b>",
        "free: 3",
        "<b>1.50</b>",
        "programs wait for a core 12 % of the time",
        "<b>2.0 GiB</b>",
    ] {
        assert!(page.contains(must), "{must}: {page}");
    }
    let mut empty = queue();
    empty.running.clear();
    empty.next.clear();
    empty.recent.clear();
    empty.stopping = true;
    let page = overview_page(&empty, sample::NOW, LIVE);
    for must in [
        "Nothing runs.",
        "Nothing waits.",
        "Nothing has ended yet.",
        "The daemon is stopping.",
    ] {
        assert!(page.contains(must), "{must}: {page}");
    }
}

#[test]
fn a_run_says_of_each_method_where_it_is_with_its_numbers() {
    let page = run_page(&run(), 1, moment(), LIVE);
    for must in [
        "Used up its budget of 10 min 00 s and was killed; 1 of 3 datasets finished.",
        "<span class=\"chip bad\">timeout</span>",
        "<span class=\"chip running\">running</span>",
        "<span class=\"chip owed\">infrastructure</span>",
        "On <b><bdi>pairs of words</bdi></b>: 250 of 1000 items.",
        "About 1:35 left at the pace so far.",
        "2:00 / 10:00",
        "0 s / 10:00",
        "still at item 17",
        "Cancel this run",
        "aria-label=\"Cancel neighbours of words\"",
        "/v1/runs/7/bundles/0001/scores%2Fa%20b.csv",
        "/v1/runs/7/bundles/0001/results.html",
        "Timeline of attempts",
        "supervisor lost",
        "1:55 so far",
        "Left 1 process behind, which the room ended.",
        "Its methods were isolated less than they were to be.",
        "Network: no network namespace can be made here.",
        "2: a hanging one, timeout, from 0 s to 3:00, with 1 pause",
    ] {
        assert!(page.contains(must), "{must}: {page}");
    }
    // The words of a method that did well are of no interest.
    assert_eq!(page.matches("<pre class=\"stderr\"").count(), 1);
    let mut over = run();
    over.summary.state = RunState::Ended;
    assert!(!run_page(&over, 1, moment(), LIVE).contains("Cancel this run"));
}

#[test]
fn a_time_left_is_told_only_when_it_is_known() {
    let mut method = method("m", MethodState::Running, None);
    assert_eq!(left(&method), "about 1:35 left at the pace so far");
    method.eta_seconds = Some(481.0);
    assert_eq!(
        left(&method),
        "about 8:01 left at the pace so far, more than its budget has"
    );
    for unknown in [None, Some(f64::NAN), Some(f64::INFINITY), Some(-1.0)] {
        method.eta_seconds = unknown;
        assert_eq!(left(&method), "time left unknown: nothing is answered yet");
    }
}

#[test]
fn an_ending_is_told_apart_by_a_word_and_not_by_colour_alone() {
    let stand = |succeeded, charged| Standing::of(&outcome("x", "y", succeeded, charged));
    assert_eq!(stand(true, true), Standing::Completed);
    assert_eq!(stand(false, true), Standing::Failed);
    assert_eq!(stand(false, false), Standing::Owed);
    let mut run = summary(1, RunState::Ended);
    for (code, word) in [
        (Some(0), "completed"),
        (Some(1), "methods failed"),
        (Some(3), "could not finish"),
        (Some(130), "methods cancelled"),
        (None, "could not finish"),
    ] {
        run.exit_code = code;
        assert_eq!(Standing::of_run(&run).1, word);
    }
    run.cancelled = true;
    assert_eq!(Standing::of_run(&run), (Standing::Owed, "cancelled"));
}

#[test]
fn numbers_and_times_read_well() {
    assert_eq!(bytes(1023), "1023 B");
    assert_eq!(bytes(1536), "1.5 KiB");
    assert_eq!(bytes(u64::MAX), "16384.0 PiB");
    assert_eq!(clock(f64::NAN), "unknown");
    assert_eq!(clock(-1.0), "unknown");
    assert_eq!(
        time("2026-01-01T00:00:09Z").into_string(),
        "<time datetime=\"2026-01-01T00:00:09Z\">2026-01-01 00:00:09 UTC</time>"
    );
    assert_eq!(
        time("soon").into_string(),
        "<time datetime=\"soon\">soon</time>"
    );
}

#[test]
fn a_page_is_bounded_however_much_there_is() {
    let mut run = run();
    let sample = run.methods[1].clone();
    run.methods = (0..1000)
        .map(|at| MethodView {
            name: format!("method {at}"),
            id: format!("{at:064}"),
            stderr: vec!["x".repeat(10_000); 50],
            ..sample.clone()
        })
        .collect();
    run.methods[999] = method("the running one", MethodState::Running, None);
    let page = run_page(&run, 1, moment(), LIVE);
    assert!(page.contains("part 1 of 20"), "{page}");
    assert_eq!(page.matches("<tbody id=\"method-").count(), 50);
    assert_eq!(page.matches("<svg x=").count(), 400);
    assert!(page.contains("600 earlier ones are not shown"));
    assert!(page.len() < 1_000_000, "{}", page.len());
    let first = page.find("the running one").expect("it comes first");
    assert!(first < page.find("method 0<").expect("it comes later"));
    let last = run_page(&run, 99, moment(), LIVE);
    assert!(last.contains("part 20 of 20") && last.contains("Earlier part"));
}

#[test]
fn a_script_in_a_name_and_escapes_in_stderr_stay_harmless_text() {
    let mut run = run();
    run.methods[1].name = "<script>alert(1)</script>".into();
    run.methods[1].stderr = vec![
        "\u{1b}[31mred\u{1b}[0m \u{202e}txt.exe\u{7} <img src=x onerror=alert(1)> \"'&".into(),
    ];
    run.summary.benchmark_id = "\"><svg onload=alert(1)>".into();
    for page in every_page(&queue(), &run) {
        assert!(
            !page.contains("<script>alert")
                && !page.contains("<img")
                && !page.contains("<svg onload")
        );
        assert!(!page.chars().any(is_harmful));
    }
    let page = run_page(&run, 1, moment(), LIVE);
    assert!(
        page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"),
        "{page}"
    );
    assert!(
        page.contains(r"\u{1b}[31mred\u{1b}[0m \u{202e}txt.exe\u{7} &lt;img src=x"),
        "{page}"
    );
}

proptest! {
    /// Whatever a text holds, the tags of the page and their attributes are those of a harmless text.
    #[test]
    fn no_text_ever_becomes_a_part_of_a_page(text in "(\\PC|[<>\"'&=/ \u{0}-\u{1f}\u{202a}-\u{202e}\u{2066}-\u{2069}]|</?(script|td|svg|pre|title|noscript)[ >]|<!--|-->|]]>|&lt;|&#60;){1,40}") {
        let (queue, run) = filled(&text);
        let (plain_queue, plain_run) = filled("x");
        let pages = every_page(&queue, &run);
        for (page, plain) in pages.iter().zip(every_page(&plain_queue, &plain_run)) {
            prop_assert_eq!(skeleton(page), skeleton(&plain));
            prop_assert!(!page.chars().any(is_harmful));
        }
    }
}
