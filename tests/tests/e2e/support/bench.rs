//! Benchmarks and methods for a test, in a folder of its own.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::proctor::{self, Done};
use super::{json, repository, rogue, write_json};
use crate::args;

/// A folder with a frozen benchmark in it.
#[derive(Debug)]
pub struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    /// The fixtures with this budget in seconds.
    pub fn fixtures(budget: f64) -> Self {
        Self::of(&repository().join("fixtures/manifest.json"), |manifest| {
            manifest["execution_policy"]["max_method_seconds"] = json!(budget);
        })
    }

    /// Any manifest file, edited, with its paths made absolute.
    pub fn of(manifest_file: &Path, edit: impl FnOnce(&mut Value)) -> Self {
        let bench = Self::empty();
        let mut manifest = json(manifest_file);
        let base = manifest_file.parent().expect("a file has a folder");
        for dataset in manifest["datasets"].as_array_mut().expect("datasets") {
            for key in ["path", "validation_path"] {
                if let Some(path) = dataset[key].as_str() {
                    dataset[key] = json!(base.join(path));
                }
            }
        }
        edit(&mut manifest);
        let file = bench.path("manifest.json");
        write_json(&file, &manifest);
        proctor::freeze(&file, &bench.protocol());
        bench
    }

    /// A folder with nothing in it.
    pub fn empty() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The protocol file.
    pub fn protocol(&self) -> PathBuf {
        self.path("protocol.json")
    }

    /// Writes a methods file and gives its path.
    pub fn methods(&self, methods: &[Value]) -> PathBuf {
        let file = self.path("methods.json");
        write_json(&file, &json!({ "algorithms": methods }));
        file
    }

    /// A rogue as a method. The program is copied into the folder first, so that whatever of it stays alive can be
    /// told from the processes of other tests.
    pub fn rogue<A: ToString>(&self, name: &str, arguments: &[A]) -> Value {
        let program = self.path(&format!("rogue-{name}"));
        if !program.exists() {
            std::fs::copy(rogue(name), &program).expect("the program can be copied");
        }
        let mut command = vec![json!(program)];
        command.extend(arguments.iter().map(|argument| json!(argument.to_string())));
        json!({ "name": name, "command": command })
    }

    /// The command that runs methods into the folder `run`.
    pub fn run_command(&self, methods: &[Value], more: &[&str]) -> std::process::Command {
        let file = self.methods(methods);
        let mut command =
            proctor::command(args!["run", self.protocol(), file, "-o", self.run_dir()]);
        command.args(more);
        command
    }

    /// Runs methods into the folder `run`.
    pub fn run(&self, methods: &[Value]) -> Done {
        proctor::finish(self.run_command(methods, &[]))
    }

    /// The run directory.
    pub fn run_dir(&self) -> PathBuf {
        self.path("run")
    }

    /// The log of a method's stderr, by display name.
    pub fn stderr_log(&self, name: &str) -> PathBuf {
        let bundle = self.bundle();
        let attempts = self
            .run_dir()
            .join("methods")
            .join(bundle.id_of(name))
            .join("attempts");
        attempts.join("0001.local.r0/stderr")
    }

    /// The bundle of the run.
    pub fn bundle(&self) -> super::bundle::Bundle {
        super::bundle::Bundle::open(&self.run_dir().join("bundle"))
    }
}
