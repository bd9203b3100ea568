//! Reading what the rogue `recorder` wrote down.

use std::process::Command;

use serde_json::{Value, json};

use super::bench::Bench;

/// The rogue `recorder` as a method of this name, writing to the file of this name in the bench's folder.
pub fn recorder(bench: &Bench, name: &str) -> Value {
    let variable = format!("RECORD_{name}");
    let mut method = bench.rogue("recorder", &[&variable]);
    method["name"] = json!(name);
    method["env"] = json!([variable]);
    method
}

/// The command that runs the recorders of these names, each told where to write.
pub fn run_recorders(bench: &Bench, names: &[&str], more: &[&str]) -> Command {
    let methods: Vec<Value> = names.iter().map(|name| recorder(bench, name)).collect();
    let mut run = bench.run_command(&methods, more);
    for name in names {
        run.env(format!("RECORD_{name}"), bench.path(name));
    }
    run
}

/// What the recorder saw, line by line.
#[derive(Debug)]
pub struct Record {
    /// The lines of its record.
    pub lines: Vec<String>,
}

impl Record {
    /// Reads the record that the recorder wrote to this file of the bench's folder.
    pub fn of(bench: &Bench, file: &str) -> Self {
        let text =
            std::fs::read_to_string(bench.path(file)).expect("the recorder wrote its record");
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
