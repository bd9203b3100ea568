//! What the daemon counts, in the text form that Prometheus reads (exposition format 0.0.4). No label holds the name of a
//! run or a method, so the number of series is fixed however much is run.

use super::view::QueueView;
use std::fmt::Write;

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What is known of the daemon's own process.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Process {
    /// Memory that is in use, in bytes.
    pub resident_bytes: Option<u64>,
    /// Descriptors that are open.
    pub open_files: Option<u64>,
    /// Processor time so far, in seconds.
    pub cpu_seconds: Option<f64>,
}

impl Process {
    /// This process, as far as the kernel tells.
    pub fn own() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        let open = std::fs::read_dir("/proc/self/fd").map(Iterator::count);
        let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF);
        let seconds = |time: nix::sys::time::TimeVal| {
            time.tv_sec() as f64 + time.tv_usec() as f64 / 1_000_000.0
        };
        Self {
            resident_bytes: kilobytes.map(|number| number * 1024),
            // The folder that is read is one of them.
            open_files: open.ok().map(|count| (count as u64).saturating_sub(1)),
            cpu_seconds: usage
                .ok()
                .map(|usage| seconds(usage.user_time()) + seconds(usage.system_time())),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Gauge,
    Counter,
}

/// A text under way.
#[derive(Debug, Default)]
struct Exposition {
    text: String,
}

impl Exposition {
    /// One metric with its samples: the labels of each, and its value. A metric without samples is left out.
    fn metric(&mut self, name: &str, kind: Kind, help: &str, samples: &[(&[(&str, &str)], f64)]) {
        if samples.is_empty() {
            return;
        }
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let labels: Vec<String> = labels
                .iter()
                .map(|(label, value)| format!("{label}=\"{}\"", label_value(value)))
                .collect();
            let labels = match labels.as_slice() {
                [] => String::new(),
                labels => format!("{{{}}}", labels.join(",")),
            };
            let _ = writeln!(self.text, "{name}{labels} {}", number(*value));
        }
    }

    /// A metric of one sample without labels; one that is not known is left out.
    fn one(&mut self, name: &str, kind: Kind, help: &str, value: Option<f64>) {
        let sample = value.map(|value| (&[][..], value));
        self.metric(name, kind, help, sample.as_slice());
    }
}

/// A label's value, escaped.
fn label_value(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// A number as Prometheus writes it.
fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".into()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf" } else { "-Inf" }.into()
    } else {
        value.to_string()
    }
}

/// The whole text.
pub fn exposition(queue: &QueueView, now_utc: &str, process: Process) -> String {
    use Kind::{Counter, Gauge};
    let mut out = Exposition::default();
    let count = |number: usize| number as f64;
    let machine = &queue.machine;
    let instant = |utc: &str| {
        let time: Option<jiff::Timestamp> = utc.parse().ok();
        time.map(|time| time.as_second() as f64)
    };
    out.metric(
        "proctor_build_info",
        Gauge,
        "Always 1; the version is in its label.",
        &[(&[("version", &queue.version)], 1.0)],
    );
    out.metric(
        "proctor_runs",
        Gauge,
        "Runs that have not ended, by state.",
        &[
            (&[("state", "queued")], queue.queued as f64),
            (&[("state", "running")], count(queue.running.len())),
        ],
    );
    out.one(
        "proctor_runs_ended_total",
        Counter,
        "Runs that ended, over all the time of the state directory.",
        Some(queue.ended as f64),
    );
    let running = queue.running.iter().map(|run| run.methods.running);
    out.one(
        "proctor_methods_running",
        Gauge,
        "Methods that run now.",
        Some(running.sum::<u64>() as f64),
    );
    let head = queue.next.first().map(|run| run.submitted_utc.as_str());
    let since = head.and_then(instant).zip(instant(now_utc));
    out.one(
        "proctor_queue_head_age_seconds",
        Gauge,
        "How long the next run has been queued; 0 when nothing waits.",
        match head {
            Some(_) => since.map(|(since, now)| (now - since).max(0.0)),
            None => Some(0.0),
        },
    );
    out.one(
        "proctor_stopping",
        Gauge,
        "1 while the daemon is stopping, else 0.",
        Some(f64::from(u8::from(queue.stopping))),
    );
    let free = machine.free_cores.len();
    out.metric(
        "proctor_cores",
        Gauge,
        "Cores that the daemon gives out, by whether a run has them.",
        &[
            (
                &[("state", "given")],
                count(machine.cores.len().saturating_sub(free)),
            ),
            (&[("state", "free")], count(free)),
        ],
    );
    out.metric(
        "proctor_load_average",
        Gauge,
        "Load average of the machine over so many minutes.",
        &[
            (&[("minutes", "1")], machine.load[0]),
            (&[("minutes", "5")], machine.load[1]),
            (&[("minutes", "15")], machine.load[2]),
        ],
    );
    out.one(
        "proctor_cpu_pressure_ratio",
        Gauge,
        "Share of the last ten seconds in which something waited for a processor.",
        machine.cpu_pressure.map(|percent| percent / 100.0),
    );
    let known = machine.memory_total_bytes > 0;
    for (name, help, bytes) in [
        (
            "proctor_memory_total_bytes",
            "Memory of the machine.",
            machine.memory_total_bytes,
        ),
        (
            "proctor_memory_available_bytes",
            "Memory that new programs could use.",
            machine.memory_available_bytes,
        ),
    ] {
        out.one(name, Gauge, help, known.then_some(bytes as f64));
    }
    out.one(
        "process_start_time_seconds",
        Gauge,
        "When the daemon was started, in seconds since 1970.",
        instant(&queue.started_utc),
    );
    out.one(
        "process_cpu_seconds_total",
        Counter,
        "Processor time of the daemon itself.",
        process.cpu_seconds,
    );
    out.one(
        "process_resident_memory_bytes",
        Gauge,
        "Memory of the daemon itself.",
        process.resident_bytes.map(|number| number as f64),
    );
    out.one(
        "process_open_fds",
        Gauge,
        "Descriptors of the daemon that are open.",
        process.open_files.map(|number| number as f64),
    );
    out.text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::page::sample;
    use std::collections::BTreeSet;

    fn text() -> String {
        let process = Process {
            resident_bytes: Some(1 << 20),
            open_files: Some(12),
            cpu_seconds: Some(0.25),
        };
        exposition(&sample::queue(), sample::NOW, process)
    }

    #[test]
    fn the_numbers_are_those_of_the_queue() {
        let text = text();
        for line in [
            "# HELP proctor_runs Runs that have not ended, by state.",
            "# TYPE proctor_runs gauge",
            "proctor_build_info{version=\"0.1.0\"} 1",
            "proctor_runs{state=\"queued\"} 3",
            "proctor_runs{state=\"running\"} 1",
            "# TYPE proctor_runs_ended_total counter",
            "proctor_runs_ended_total 25",
            "proctor_methods_running 1",
            "proctor_queue_head_age_seconds 360",
            "proctor_stopping 0",
            "proctor_cores{state=\"given\"} 3",
            "proctor_cores{state=\"free\"} 1",
            "proctor_load_average{minutes=\"1\"} 1.5",
            "proctor_cpu_pressure_ratio 0.125",
            "proctor_memory_total_bytes 8589934592",
            "process_start_time_seconds 1767254400",
            "process_cpu_seconds_total 0.25",
            "process_resident_memory_bytes 1048576",
            "process_open_fds 12",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
        assert!(text.ends_with('\n'));
    }

    #[test]
    fn every_metric_is_explained_once_and_before_its_samples() {
        let mut names = BTreeSet::new();
        let mut current = String::new();
        for line in text().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["#", "HELP", name, _, ..] => {
                    assert!(names.insert((*name).to_owned()), "{name} comes twice");
                    assert!(
                        name.bytes()
                            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
                    );
                    (*name).clone_into(&mut current);
                }
                ["#", "TYPE", name, "gauge" | "counter"] => assert_eq!(*name, current),
                [sample, value] => {
                    assert_eq!(sample.split('{').next(), Some(current.as_str()));
                    assert!(value.parse::<f64>().is_ok(), "{line}");
                }
                _ => panic!("{line}"),
            }
        }
    }

    #[test]
    fn labels_and_odd_numbers_are_written_as_the_format_demands() {
        assert_eq!(label_value("a\"b\\c\nd"), r#"a\"b\\c\nd"#);
        assert_eq!(
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.1].map(number),
            ["NaN", "+Inf", "-Inf", "0.1"]
        );
        let mut out = Exposition::default();
        out.metric(
            "m",
            Kind::Gauge,
            "one\\two\nthree",
            &[(&[("a", "x"), ("b", "\"")], 1.0)],
        );
        assert_eq!(
            out.text,
            "# HELP m one\\\\two\\nthree\n# TYPE m gauge\nm{a=\"x\",b=\"\\\"\"} 1\n"
        );
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let mut queue = sample::queue();
        queue.machine.memory_total_bytes = 0;
        queue.started_utc = "soon".into();
        queue.next.clear();
        let text = exposition(&queue, sample::NOW, Process::default());
        assert!(
            !text.contains("memory") && !text.contains("start_time") && !text.contains("process_")
        );
        assert!(text.contains("proctor_queue_head_age_seconds 0\n"));
    }

    #[test]
    fn this_process_has_memory_and_files() {
        let own = Process::own();
        assert!(own.resident_bytes.is_some_and(|bytes| bytes > 1 << 20));
        assert!(own.open_files.is_some_and(|count| count >= 3));
        assert!(own.cpu_seconds.is_some_and(|seconds| seconds >= 0.0));
    }
}
