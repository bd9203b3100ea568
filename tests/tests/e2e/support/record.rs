//! Reading what the rogue `recorder` wrote down.

use std::process::Command;

use serde_json::{Value, json};

use super::bench::Bench;

/// The command that runs recorders of these names.
pub fn run_recorders(bench: &Bench, names: &[&str], more: &[&str]) -> Command {
    let recorder = |name: &&str| {
        let mut method = bench.rogue("recorder", &[name]);
        method["name"] = json!(shown(name));
        method
    };
    let methods: Vec<Value> = names.iter().map(recorder).collect();
    bench.run_command(&methods, more)
}

/// The display name of a recorder; no worker may learn it.
pub fn shown(name: &str) -> String {
    format!("Display name of {name}")
}

/// What the recorder saw, line by line.
#[derive(Debug)]
pub struct Record {
    /// The lines of its record.
    pub lines: Vec<String>,
}

impl Record {
    /// Reads the record of this recorder, which is its stderr.
    pub fn of(bench: &Bench, name: &str) -> Self {
        let text = std::fs::read_to_string(bench.stderr_log(&shown(name)));
        let text = text.expect("the log is kept");
        Self {
            lines: text.lines().map(str::to_owned).collect(),
        }
    }

    /// The messages it received.
    pub fn messages(&self) -> Vec<Value> {
        let messages = self.lines.iter().filter(|line| line.starts_with('{'));
        messages
            .map(|line| serde_json::from_str(line).expect("a message"))
            .collect()
    }

    /// The texts in the order they came.
    pub fn texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        for message in self.messages() {
            if message["type"] == "texts" {
                let values = message["values"].as_array().expect("texts");
                texts.extend(
                    values
                        .iter()
                        .map(|v| v.as_str().expect("a text").to_owned()),
                );
            }
        }
        texts
    }

    /// What follows a word at the beginning of a line.
    pub fn about<'a>(&'a self, what: &'a str) -> impl Iterator<Item = &'a str> {
        self.lines
            .iter()
            .filter_map(move |line| line.strip_prefix(what)?.strip_prefix(' '))
    }
}
