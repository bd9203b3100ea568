//! Matheel's own methods: presets, options and custom algorithm files become effective configurations.

use std::path::{Path, PathBuf};

use super::file_hash::FileHashes;
use super::{Common, Method, MethodKind, defaults, preset, to_serde};
use crate::canonical::{Object, Value, py_strip};
use crate::input::{Refusal, member};

/// Keys of a method that are not scoring options.
const OWN_KEYS: &[&str] = &[
    "name",
    "preset",
    "algorithm_preset",
    "algorithm_path",
    "algorithm_options",
    "threshold",
    "k",
    "model_revision",
    "task_eligibility",
    "dataset_exclusions",
    "retrieval_options",
    "options",
    "similarity_options",
];

/// Reads one method of Matheel's form. `at` is its number in the file, from 1; `base` the folder of the file.
pub(super) fn read(
    item: &Object,
    field: &str,
    at: usize,
    base: &Path,
    hashes: &mut FileHashes,
) -> Result<Method, Refusal> {
    for key in ["threshold", "k"] {
        if item.get(key).is_some_and(|value| !value.is_null()) {
            return Err(Refusal::new(
                member(field, key),
                "belongs to the protocol, not to a method; remove it",
            ));
        }
    }
    if item.contains_key("retrieval_options") {
        return Err(Refusal::new(
            member(field, "retrieval_options"),
            "asks for two-stage retrieval, but a protocol scores every candidate; remove it",
        ));
    }
    let preset = chosen_preset(item, field)?;
    let own = own_options(item, field, preset.as_ref().map(|(_, options)| options))?;
    let algorithm = custom_algorithm(item, field, base, hashes)?;
    if let (Some((name, _)), Some(_)) = (&preset, &algorithm) {
        return Err(Refusal::new(
            member(field, "algorithm_path"),
            format!("cannot be combined with the preset {name}; keep one of the two"),
        ));
    }
    let common = Common::read(item, field, || {
        preset
            .as_ref()
            .map_or_else(|| format!("algorithm_{at}"), |(name, _)| (*name).to_owned())
    })?;
    let algorithm_options = algorithm_options(item, field)?;

    let mut effective = defaults::similarity_options();
    for (key, value) in own.iter() {
        effective.insert(key, value.clone());
    }
    let mut entry = Object::new();
    entry.insert("algorithm_options", algorithm_options);
    entry.insert("k", Value::Null);
    entry.insert("threshold", Value::Null);
    if let Some(revision) = item
        .get("model_revision")
        .filter(|revision| revision.truthy())
    {
        entry.insert("model_revision", revision.clone());
    }
    common.declare(&mut entry);

    let mut configuration = entry.clone();
    configuration.insert("matheel_version", defaults::MATHEEL_VERSION);
    configuration.insert("similarity_options", effective);
    if let Some(algorithm) = &algorithm {
        configuration.insert("algorithm_sha256", algorithm.sha256.as_str());
    }
    entry.insert("similarity_options", own);
    entry.insert("algorithm_path", Value::Null);

    let configuration = Value::Object(configuration);
    let kind = if let Some(algorithm) = algorithm {
        MethodKind::Unsupported(format!(
            "needs an external worker: {} is a custom algorithm of Matheel, Python code that is never imported here",
            algorithm.path.display()
        ))
    } else {
        scorable(&configuration)
    };
    common.into_method(field, configuration, entry, kind)
}

/// The preset an item asks for, with its options.
fn chosen_preset(item: &Object, field: &str) -> Result<Option<(&'static str, Object)>, Refusal> {
    let mut named = ["preset", "algorithm_preset"]
        .into_iter()
        .filter_map(|key| Some((key, item.get(key).filter(|value| !value.is_null())?)));
    let Some((key, value)) = named.next() else {
        return Ok(None);
    };
    if let Some((other, _)) = named.next() {
        return Err(Refusal::new(
            member(field, other),
            format!("is another word for {key}; keep one of the two"),
        ));
    }
    let name = value.as_str().unwrap_or_default();
    match preset::find(name) {
        Some(found) => Ok(Some(found)),
        None => Err(Refusal::new(member(field, key), unknown_preset(name))),
    }
}

/// What to say of a name that is no preset.
pub(super) fn unknown_preset(name: &str) -> String {
    let names: Vec<_> = preset::preset_names().collect();
    format!(
        "{name:?} is not a preset; the presets are {}",
        names.join(", ")
    )
}

/// The method's own scoring options. Precedence, low to high: preset, `options`, `similarity_options`, stray keys.
fn own_options(item: &Object, field: &str, preset: Option<&Object>) -> Result<Object, Refusal> {
    let mut own = preset.cloned().unwrap_or_default();
    for key in ["options", "similarity_options"] {
        let Some(value) = item.get(key) else {
            continue;
        };
        let given = value.as_object().ok_or_else(|| {
            let problem = format!("is {}; it must be an object of options", value.type_name());
            Refusal::new(member(field, key), problem)
        })?;
        for (name, value) in given.iter() {
            own.insert(name, value.clone());
        }
    }
    for (name, value) in item.iter().filter(|(name, _)| !OWN_KEYS.contains(name)) {
        own.insert(name, value.clone());
    }
    Ok(own)
}

/// The options of a custom algorithm, keys stripped.
fn algorithm_options(item: &Object, field: &str) -> Result<Object, Refusal> {
    let field = member(field, "algorithm_options");
    let given = match item.get("algorithm_options") {
        None | Some(Value::Null) => return Ok(Object::new()),
        Some(Value::Object(given)) => given,
        Some(other) => {
            let problem = format!("is {}; it must be an object of options", other.type_name());
            return Err(Refusal::new(field, problem));
        }
    };
    let mut options = Object::new();
    for (key, value) in given.iter() {
        let name = py_strip(key);
        if name.is_empty() || options.insert(name, value.clone()).is_some() {
            let problem = "is blank or there twice once spaces are stripped; rename it";
            return Err(Refusal::new(member(&field, key), problem));
        }
    }
    Ok(options)
}

/// A custom algorithm file: hashed, never imported.
struct CustomAlgorithm {
    path: PathBuf,
    sha256: String,
}

fn custom_algorithm(
    item: &Object,
    field: &str,
    base: &Path,
    hashes: &mut FileHashes,
) -> Result<Option<CustomAlgorithm>, Refusal> {
    let field = member(field, "algorithm_path");
    let text = match item.get("algorithm_path") {
        Some(value) if value.truthy() => value
            .as_str()
            .ok_or_else(|| Refusal::new(field.as_str(), "must be the path of a Python file"))?,
        _ => return Ok(None),
    };
    let text = py_strip(text);
    let looks_like_path = text.starts_with('.')
        || Path::new(text).extension().is_some_and(|end| end == "py")
        || text.contains(['/', '\\']);
    if !looks_like_path {
        return Err(Refusal::new(
            field,
            format!(
                "{text:?} is the name of a Python module, whose identity only an import could tell; give the path of \
                 its file, such as \"./{text}.py\""
            ),
        ));
    }
    let path = base.join(text);
    let unreadable = |error: &dyn std::fmt::Display| {
        Refusal::new(
            field.as_str(),
            format!("{}: cannot be read: {error}", path.display()),
        )
    };
    let sha256 = hashes.sha256(&path).map_err(|error| unreadable(&error))?;
    let source = std::fs::read(&path).map_err(|error| unreadable(&error))?;
    // Such a module computes its own published options when it is run, so its identity cannot be told by reading it.
    let hook = b"portable_configuration";
    if source.windows(hook.len()).any(|part| part == hook) {
        return Err(Refusal::new(
            field,
            format!(
                "{}: defines portable_configuration, so only running it could tell its identity; remove the hook and \
                 list the options under algorithm_options",
                path.display()
            ),
        ));
    }
    Ok(Some(CustomAlgorithm { path, sha256 }))
}

/// Whether the built-in worker scores a configuration.
fn scorable(configuration: &Value) -> MethodKind {
    proctor_wire::builtin::unsupported(&to_serde(configuration))
        .map_or(MethodKind::Builtin, MethodKind::Unsupported)
}
