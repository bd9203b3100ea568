//! Reading a bundle.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::json;

/// A bundle directory and its payload.
#[derive(Debug)]
pub struct Bundle {
    /// The directory.
    pub dir: PathBuf,
    /// The Matheel-form payload.
    pub payload: Value,
    file: String,
}

impl Bundle {
    /// Reads a bundle directory.
    pub fn open(dir: &Path) -> Self {
        let index = json(&dir.join("bundle.json"));
        let name = index["payload"]
            .as_str()
            .expect("bundle.json names the payload");
        Self {
            dir: dir.to_path_buf(),
            payload: json(&dir.join(name)),
            file: name.to_owned(),
        }
    }

    /// The file of the payload.
    pub fn payload_file(&self) -> PathBuf {
        self.dir.join(&self.file)
    }

    /// The per-dataset rows.
    pub fn rows(&self) -> &[Value] {
        self.payload["per_dataset"].as_array().expect("rows")
    }

    /// The rows of a method, by display name.
    pub fn rows_of(&self, name: &str) -> Vec<&Value> {
        let rows: Vec<_> = self
            .rows()
            .iter()
            .filter(|row| row["algorithm_name"] == name)
            .collect();
        assert!(!rows.is_empty(), "no rows of {name}");
        rows
    }

    /// The id of a method, by display name.
    pub fn id_of(&self, name: &str) -> &str {
        self.rows_of(name)[0]["algorithm_id"]
            .as_str()
            .expect("an id")
    }

    /// The supervised execution of a method, by display name.
    pub fn execution(&self, name: &str) -> &Value {
        let id = self.id_of(name);
        self.payload["metadata"]["supervised_executions"]
            .as_array()
            .expect("supervised executions")
            .iter()
            .find(|execution| execution["algorithm_id"] == id)
            .unwrap_or_else(|| panic!("no supervised execution of {name}"))
    }

    /// The outcome of a method, by display name, in the short form: `timeout`, `signal(11)`.
    pub fn outcome(&self, name: &str) -> String {
        let outcome = &self.execution(name)["outcome"];
        let kind = outcome["kind"].as_str().expect("an outcome has a kind");
        let detail = match kind {
            "signal" => outcome["signal"].to_string(),
            "exit" => outcome["code"].to_string(),
            "incomplete" => format!("{}/{}", outcome["done"], outcome["total"]),
            "dataset_errors" => format!("{}/{}", outcome["failed"], outcome["total"]),
            _ => return kind.to_owned(),
        };
        format!("{kind}({detail})")
    }

    /// The score files of a method, by display name; each under what precedes the method's id in its name.
    pub fn score_files(&self, name: &str) -> std::collections::BTreeMap<String, Vec<u8>> {
        let id = format!("_{}_", &self.id_of(name)[..20]);
        let folder = self.dir.join("scores");
        // A bundle without any score has no such folder.
        if !folder.exists() {
            return std::collections::BTreeMap::new();
        }
        super::tree(&folder)
            .into_iter()
            .filter_map(|(file, bytes)| Some((file.split_once(&id)?.0.to_owned(), bytes)))
            .collect()
    }

    /// Names of the datasets a method has finite scores on.
    pub fn scored(&self, name: &str) -> Vec<&str> {
        let mut names: Vec<_> = self
            .rows_of(name)
            .into_iter()
            .filter(|row| row["score"].is_number())
            .map(|row| row["dataset_name"].as_str().expect("a name"))
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
