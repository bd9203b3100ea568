//! The display while a run goes on: a line per running method that is redrawn on a terminal, plain lines elsewhere.

use super::sentence::sentence;
use super::{output, plain};
pub use crate::room::core_list as ranges;
use crate::run::live::Glance;
use crate::run::{Ended, Entry, Observer, Session, Starting};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// A plain line about a method that goes on comes this often.
const PLAIN_EVERY: Duration = Duration::from_secs(15);

/// The display of one run.
#[derive(Debug)]
pub struct Progress {
    entries: Vec<Entry>,
    budget: f64,
    drawn: Option<MultiProgress>,
    running: BTreeMap<usize, Running>,
    /// The line of the next method while it waits.
    waiting: Option<(usize, Running)>,
    ended: usize,
    /// What is told first.
    outlook: Vec<String>,
}

#[derive(Debug)]
struct Running {
    bar: Option<ProgressBar>,
    last_line: Instant,
}

impl Progress {
    /// A display of a session on stderr, drawn when that is a terminal. It tells `outlook` when the session begins.
    pub fn of(session: &Session, outlook: Vec<String>) -> Self {
        let methods = 0..session.plan().methods.len();
        let told = |method: &usize| {
            session.assignment(*method).is_some() || session.not_applicable(*method).is_some()
        };
        let ended = methods.filter(|method| !told(method)).count();
        Self {
            outlook,
            ..Self::new(
                session.entries(),
                session.plan().policy.budget_seconds,
                ended,
            )
        }
    }

    fn new(entries: Vec<Entry>, budget: f64, ended: usize) -> Self {
        Self {
            entries,
            budget,
            drawn: std::io::stderr().is_terminal().then(MultiProgress::new),
            running: BTreeMap::new(),
            waiting: None,
            ended,
            outlook: Vec::new(),
        }
    }

    /// A line about the run as a whole.
    fn tell(&self, line: &str) {
        let line = &plain(line);
        match &self.drawn {
            Some(drawn) => drawn.suspend(|| output::tell(line)),
            None => output::tell(line),
        }
    }

    fn say(&self, method: usize, what: &str) {
        let name = &self.entries[method].name;
        self.tell(&format!(
            "[{}/{}] {name}: {what}",
            self.ended,
            self.entries.len()
        ));
    }

    /// A line for a method, where lines are drawn.
    fn bar(&self, method: usize) -> Option<ProgressBar> {
        let entry = &self.entries[method];
        self.drawn.as_ref().map(|drawn| {
            let bar = drawn.add(ProgressBar::new(entry.items.max(1)));
            if let Ok(style) = ProgressStyle::with_template("{prefix:20!} {bar:12} {wide_msg}") {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_prefix(plain(&entry.name));
            bar
        })
    }

    fn waits_no_more(&mut self, method: usize) {
        let waiting = self.waiting.take_if(|(other, _)| *other == method);
        if let Some(bar) = waiting.and_then(|(_, waiting)| waiting.bar) {
            bar.finish_and_clear();
        }
    }

    fn line(&self, method: usize, glance: Glance) -> String {
        let entry = &self.entries[method];
        let Some(elapsed) = glance.elapsed else {
            return "making its room".into();
        };
        let (number, part) = entry
            .parts
            .get(glance.part as usize)
            .map_or((0, ""), |(number, label)| (*number, label.as_str()));
        let left = eta(glance.answered, entry.items, elapsed)
            .map_or_else(String::new, |left| format!("{} left, ", clock(left)));
        // What may be long comes last: on a narrow terminal the end is cut.
        format!(
            "{} of {}, {left}dataset {}/{}, {} of {} items, {}",
            clock(entry.earlier_seconds + elapsed),
            clock(self.budget),
            number,
            entry.datasets,
            glance.items,
            glance.total,
            plain(part),
        )
    }
}

impl Observer for Progress {
    fn begins(&mut self) {
        for line in std::mem::take(&mut self.outlook) {
            self.tell(&line);
        }
    }

    fn started(&mut self, starting: Starting<'_>) {
        let method = starting.method;
        self.waits_no_more(method);
        let bar = self.bar(method);
        if bar.is_none() {
            self.say(
                method,
                &format!("starts on cores {}", ranges(starting.cores)),
            );
        }
        let running = Running {
            bar,
            last_line: Instant::now(),
        };
        self.running.insert(method, running);
    }

    fn waiting(&mut self, method: usize, reason: &str) {
        let line = format!("waiting: {}", plain(reason));
        let other = self.waiting.as_ref().map(|(other, _)| *other);
        if other != Some(method) {
            self.waits_no_more(other.unwrap_or(method));
            let bar = self.bar(method);
            if bar.is_none() {
                self.say(method, &line);
            }
            let last_line = Instant::now();
            self.waiting = Some((method, Running { bar, last_line }));
        }
        let Some((_, waiting)) = &mut self.waiting else {
            return;
        };
        if let Some(bar) = &waiting.bar {
            bar.set_message(line);
        } else if waiting.last_line.elapsed() >= PLAIN_EVERY {
            waiting.last_line = Instant::now();
            self.say(method, &line);
        }
    }

    fn progress(&mut self, method: usize, glance: Glance) {
        let line = self.line(method, glance);
        let Some(running) = self.running.get_mut(&method) else {
            return;
        };
        if let Some(bar) = &running.bar {
            bar.set_position(glance.answered);
            bar.set_message(line);
        } else if running.last_line.elapsed() >= PLAIN_EVERY {
            running.last_line = Instant::now();
            self.say(method, &line);
        }
    }

    fn ended(&mut self, ended: Ended<'_>) {
        let method = ended.method;
        self.ended += 1;
        self.waits_no_more(method);
        if let Some(bar) = self.running.remove(&method).and_then(|running| running.bar) {
            bar.finish_and_clear();
        }
        self.say(method, &sentence(ended.outcome, ended.numbers));
        for line in ended.stderr {
            self.tell(&format!("        stderr: {line}"));
        }
    }

    fn note(&mut self, text: &str) {
        self.tell(text);
    }
}

/// Seconds in a form that does not jump about: `7 s`, `4:05`, `1:04:05`.
pub(crate) fn clock(seconds: f64) -> String {
    if seconds >= 1e9 {
        return super::seconds(seconds);
    }
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{}:{:02}", whole / 60, whole % 60),
        _ => format!("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60),
    }
}

/// Seconds until all items are answered at the pace so far; `None` before the first.
fn eta(answered: u64, items: u64, elapsed: f64) -> Option<f64> {
    (answered > 0).then(|| elapsed * items.saturating_sub(answered) as f64 / answered as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_state_datasets_items_budget_and_eta() {
        let entry = Entry {
            name: "m".into(),
            parts: vec![(1, "a (validation)".into()), (1, "a".into())],
            datasets: 1,
            items: 100,
            earlier_seconds: 0.0,
        };
        let progress = Progress::new(vec![entry], 60.0, 0);
        let glance = Glance {
            elapsed: Some(5.0),
            part: 1,
            items: 10,
            total: 60,
            answered: 50,
        };
        assert_eq!(
            progress.line(0, glance),
            "5 s of 1:00, 5 s left, dataset 1/1, 10 of 60 items, a"
        );
        assert_eq!(progress.line(0, Glance::default()), "making its room");
        assert_eq!(eta(0, 10, 3.0), None);
        assert_eq!(
            (clock(59.4), clock(245.0), clock(3845.0)),
            ("59 s".into(), "4:05".into(), "1:04:05".into())
        );
    }
}
