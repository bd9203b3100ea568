//! Methods: the methods file, effective configurations, identities and eligibility.
//!
//! Nothing here imports or runs the code of a method; files are hashed as they lie.

mod builtin;
mod defaults;
mod eligibility;
mod file_hash;
mod launch;
mod preset;
mod program;
#[cfg(test)]
mod tests;
mod to_serde;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub use defaults::MATHEEL_VERSION;
pub use eligibility::{excluded_datasets, exclusion_reason};
pub use file_hash::{FileHashes, sha256_file};
pub use preset::preset_names;
pub use program::SEARCH_PATH;
pub use to_serde::to_serde;
use to_serde::too_long;

use crate::canonical::{Limits, Object, Value, caseless, digest, is_unseen, py_strip};
use crate::coerce;
use crate::frozen::{DatasetEntry, Protocol};
use crate::input::{InputError, Refusal, index, member, read_named_json};
use crate::public_metadata::{check_credentials, check_public};

/// Why a methods file is refused.
pub type MethodError = InputError;

/// A methods file is written by hand; this is room for thousands of methods.
const LIMITS: Limits = Limits {
    bytes: 16 << 20,
    depth: 64,
    nodes: 1_000_000,
};

/// The longest display name, in characters.
const MAX_NAME: usize = 200;

/// A method: one identified configuration under a display name.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    /// The display name; not part of the identity.
    pub name: String,
    /// The method id: SHA-256 of `configuration`.
    pub id: String,
    /// The effective configuration that is hashed.
    pub configuration: Value,
    /// The row of a bundle's `manifest.algorithms`; `algorithm_path` is null in it.
    pub manifest_entry: Value,
    /// What runs it.
    pub kind: MethodKind,
}

/// What runs a method.
#[derive(Debug, Clone, PartialEq)]
pub enum MethodKind {
    /// The built-in worker.
    Builtin,
    /// A program of the user.
    Program(Program),
    /// Identified, but nothing here can run it; the reason.
    Unsupported(String),
}

/// A program as a method (design section 8).
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// The command with absolute paths for the executable and for every argument that is a declared file.
    pub command: Vec<String>,
    /// The executable, absolute; links are not followed, since an interpreter may find its home by its own path.
    pub executable: PathBuf,
    /// The declared files, absolute, in the order declared.
    pub files: Vec<PathBuf>,
    /// Options for the worker.
    pub options: Value,
    /// Names of environment variables to pass on, sorted.
    pub env: Vec<String>,
}

/// Reads a methods file: a list, or an object with `algorithms`.
///
/// # Errors
/// The file cannot be read, is not JSON, or breaks a rule of specs/matheel.md section c or design section 8.
pub fn load_methods(path: &Path) -> Result<Vec<Method>, MethodError> {
    let value = read_named_json(path, LIMITS)?;
    // Programs run elsewhere, so their files must be found from anywhere.
    let absolute = std::path::absolute(path).map_err(|source| InputError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    let base = absolute.parent().unwrap_or(Path::new("/"));
    methods_from_value(&value, base).map_err(|error| error.in_file(path))
}

/// Reads the methods of a document; relative paths count from `base`, an absolute folder.
///
/// # Errors
/// As [`load_methods`].
pub fn methods_from_value(value: &Value, base: &Path) -> Result<Vec<Method>, MethodError> {
    check_credentials(value)?;
    let (items, field) = match value {
        Value::Array(items) => (items.as_slice(), ""),
        Value::Object(object) => match object.get("algorithms") {
            Some(Value::Array(items)) => (items.as_slice(), "algorithms"),
            Some(other) => {
                let problem = format!("is {}; it must be a list of methods", other.type_name());
                return Err(Refusal::new("algorithms", problem).into());
            }
            None => {
                let problem = "is missing; list the methods under it";
                return Err(Refusal::new("algorithms", problem).into());
            }
        },
        other => {
            let problem = format!(
                "the document is {}; it must be a list of methods, or an object with algorithms",
                other.type_name()
            );
            return Err(Refusal::new("", problem).into());
        }
    };
    if items.is_empty() {
        let problem = "there are no methods; list at least one, such as \"Levenshtein\"";
        return Err(Refusal::new(field, problem).into());
    }
    let mut methods = Vec::with_capacity(items.len());
    let mut names = HashMap::new();
    let mut ids = HashMap::new();
    let mut hashes = FileHashes::default();
    for (at, item) in items.iter().enumerate() {
        let field = index(field, at);
        let method = read_method(item, &field, at + 1, base, &mut hashes)?;
        let name = caseless(py_strip(&method.name));
        if let Some(other) = names.insert(name, field.clone()) {
            let problem = format!(
                "{:?} is also the name of {other}, apart from case, spaces and how accents are composed; give each method its own name",
                method.name
            );
            return Err(Refusal::new(member(&field, "name"), problem).into());
        }
        if let Some(other) = ids.insert(method.id.clone(), field.clone()) {
            let problem = format!(
                "{:?} is the same configuration as {other} (method id {}); remove one of them, another name does not \
                 make another method",
                method.name, method.id
            );
            return Err(Refusal::new(field, problem).into());
        }
        methods.push(method);
    }
    Ok(methods)
}

fn read_method(
    item: &Value,
    field: &str,
    at: usize,
    base: &Path,
    hashes: &mut FileHashes,
) -> Result<Method, Refusal> {
    match item {
        Value::String(preset) if preset::find(preset).is_none() => {
            Err(Refusal::new(field, builtin::unknown_preset(preset)))
        }
        Value::String(preset) => {
            let item: Object = [("preset", Value::String(preset.clone()))]
                .into_iter()
                .collect();
            builtin::read(&item, field, at, base, hashes)
        }
        Value::Object(item) if item.contains_key("command") => {
            program::read(item, field, at, base, hashes)
        }
        Value::Object(item) => builtin::read(item, field, at, base, hashes),
        other => {
            let problem = format!(
                "is {}; a method is the name of a preset or an object",
                other.type_name()
            );
            Err(Refusal::new(field, problem))
        }
    }
}

/// What every kind of method has: a name and declarations of eligibility.
struct Common {
    name: String,
    declarations: Vec<(&'static str, Object)>,
}

impl Common {
    fn read(
        item: &Object,
        field: &str,
        default_name: impl FnOnce() -> String,
    ) -> Result<Self, Refusal> {
        let name = match item.get("name") {
            None | Some(Value::Null) => Some(default_name()),
            Some(given) => coerce::text(given),
        };
        let name = name.unwrap_or_default();
        let problem = if py_strip(&name).is_empty() {
            Some("must be a text that is not blank; leave it out for the default".to_owned())
        } else if let Some(unseen) = name.chars().find(|c| is_unseen(*c)) {
            let code = u32::from(unseen);
            Some(format!(
                "holds the character U+{code:04X}, which cannot be seen; a name is what people tell methods apart by"
            ))
        } else {
            let length = name.chars().count();
            (length > MAX_NAME)
                .then(|| format!("has {length} characters; a name may have {MAX_NAME}"))
        };
        if let Some(problem) = problem {
            return Err(Refusal::new(member(field, "name"), problem));
        }
        let mut declarations = Vec::new();
        if let Some(value) = item.get("task_eligibility") {
            let field = member(field, "task_eligibility");
            declarations.push((
                "task_eligibility",
                eligibility::task_eligibility(value, &field)?,
            ));
        }
        if let Some(value) = item.get("dataset_exclusions") {
            let field = member(field, "dataset_exclusions");
            declarations.push((
                "dataset_exclusions",
                eligibility::dataset_exclusions(value, &field)?,
            ));
        }
        Ok(Self { name, declarations })
    }

    /// Writes the declarations into a configuration or manifest entry.
    fn declare(&self, object: &mut Object) {
        for (key, declared) in &self.declarations {
            object.insert(*key, declared.clone());
        }
    }

    fn into_method(
        self,
        field: &str,
        configuration: Value,
        mut entry: Object,
        kind: MethodKind,
    ) -> Result<Method, Refusal> {
        check_public(&configuration)
            .map_err(|refusal| Refusal::new(member(field, &refusal.field), refusal.problem))?;
        if !matches!(kind, MethodKind::Unsupported(_))
            && let Some(place) = too_long(&configuration)
        {
            let problem =
                "has more than 64 bits, so a worker cannot be told it exactly; write it as a text";
            return Err(Refusal::new(member(field, &place), problem));
        }
        entry.insert("name", self.name.as_str());
        Ok(Method {
            name: self.name,
            id: digest(&configuration),
            configuration,
            manifest_entry: Value::Object(entry),
            kind,
        })
    }
}

impl Method {
    /// Why the method is declared not to apply to a dataset; `None` when it applies.
    pub fn exclusion(&self, dataset: &DatasetEntry) -> Option<String> {
        // The declarations were checked when the method was read.
        exclusion_reason(&self.configuration, &dataset.name, dataset.family).unwrap_or_default()
    }

    /// Checks what a methods file says of a protocol: excluded datasets must exist.
    ///
    /// # Errors
    /// An exclusion that names no dataset of the protocol, or a program that declares a file with the answers.
    pub fn check_against(&self, protocol: &Protocol) -> Result<(), MethodError> {
        self.check_exclusions(protocol)?;
        self.check_files(protocol)
    }

    fn check_exclusions(&self, protocol: &Protocol) -> Result<(), MethodError> {
        let known = |name: &str| protocol.datasets().iter().any(|entry| entry.name == name);
        match excluded_datasets(&self.configuration)?
            .into_iter()
            .find(|name| !known(name))
        {
            None => Ok(()),
            Some(name) => {
                let names: Vec<_> = protocol
                    .datasets()
                    .iter()
                    .map(|entry| entry.name.as_str())
                    .collect();
                let problem = format!(
                    "method {:?} excludes it, but the protocol has no such dataset; its datasets are {}",
                    self.name,
                    names.join(", ")
                );
                Err(Refusal::new(member("dataset_exclusions", &name), problem).into())
            }
        }
    }

    /// Labels never enter a worker, so a program may not declare the tables of the benchmark, by whatever name.
    fn check_files(&self, protocol: &Protocol) -> Result<(), MethodError> {
        use std::os::unix::fs::MetadataExt as _;
        let MethodKind::Program(program) = &self.kind else {
            return Ok(());
        };
        let identity = |path: &PathBuf| {
            let found = std::fs::metadata(path).ok()?;
            Some((found.dev(), found.ino()))
        };
        for entry in protocol.datasets() {
            let answers: Vec<_> = entry.answer_files().iter().filter_map(identity).collect();
            let declared = program.files.iter().chain([&program.executable]);
            for file in declared {
                if identity(file).is_some_and(|found| answers.contains(&found)) {
                    let problem = format!(
                        "method {:?} declares {}, a table of dataset {:?} with its answers; take it out",
                        self.name,
                        file.display(),
                        entry.name
                    );
                    return Err(Refusal::new("files", problem).into());
                }
            }
        }
        Ok(())
    }

    /// What a worker is told of the method: `{"kind": "builtin", "configuration": {...}}` or
    /// `{"kind": "program", "options": {...}}`. The declarations of eligibility stay out, since they name datasets.
    pub fn wire_value(&self) -> serde_json::Value {
        if let MethodKind::Program(program) = &self.kind {
            return serde_json::json!({ "kind": "program", "options": to_serde(&program.options) });
        }
        let mut configuration = self.configuration.clone();
        if let Some(object) = configuration.as_object_mut() {
            object.remove("task_eligibility");
            object.remove("dataset_exclusions");
        }
        serde_json::json!({ "kind": "builtin", "configuration": to_serde(&configuration) })
    }
}
