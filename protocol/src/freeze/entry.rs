//! The rules of one dataset of a manifest, and its freezing.

use std::collections::HashMap;
use std::path::Path;

use proctor_wire::Family;

use super::manifest::Policies;
use crate::canonical::{Object, Value, casefold, py_lower, py_strip};
use crate::coerce;
use crate::dataset::{Dataset, task_type};
use crate::frozen::check::{DOMAIN, code_language, resolve};
use crate::frozen::data::{
    check_disjoint, check_domain, check_selection, excludes_same_file, expected_result_count, load,
};
use crate::input::{Refusal, index, member};
use crate::object;

/// Names of revisions that move.
const MOVING: &[&str] = &["main", "master", "head", "latest", "develop", "development"];

/// The cut-off of a dataset that sets none.
const DEFAULT_K: i64 = 10;

/// A dataset of a manifest that passed every check that needs no data.
pub(super) struct Draft {
    name: String,
    family: Family,
    path: String,
    /// Folder and split of the validation data.
    validation: Option<(String, String)>,
    source_url: String,
    source_revision: String,
    split: String,
    selection: Value,
    source_checksum: Value,
    similarity_options: Object,
    k: i64,
}

/// Reads every dataset of a manifest.
pub(super) fn read_all(
    manifest: &Object,
    base: &Path,
    policies: &Policies,
) -> Result<Vec<Draft>, Refusal> {
    let items = match manifest.get("datasets") {
        None | Some(Value::Null) => &[],
        Some(Value::Array(items)) => items.as_slice(),
        Some(other) => {
            let problem = format!("is {}; it must be a list of datasets", other.type_name());
            return Err(Refusal::new("datasets", problem));
        }
    };
    if items.is_empty() {
        let problem = "there are none; list at least one dataset";
        return Err(Refusal::new("datasets", problem));
    }
    let mut drafts = Vec::with_capacity(items.len());
    let mut names = HashMap::new();
    for (at, item) in items.iter().enumerate() {
        let field = index("datasets", at);
        let item = item.as_object().ok_or_else(|| {
            Refusal::new(
                &field,
                format!("is {}; a dataset is an object", item.type_name()),
            )
        })?;
        let draft = Draft::read(item, &field, at + 1, base, policies)?;
        if let Some(other) = names.insert(casefold(py_strip(&draft.name)), field.clone()) {
            let problem = format!(
                "{:?} is also the name of {other}, apart from case and spaces; give each dataset its own name",
                draft.name
            );
            return Err(Refusal::new(member(&field, "name"), problem));
        }
        drafts.push(draft);
    }
    Ok(drafts)
}

/// The first of several keys that says anything.
fn first<'a>(item: &'a Object, keys: &[&'static str]) -> Option<(&'static str, &'a Value)> {
    keys.iter()
        .find_map(|key| Some((*key, item.get(key).filter(|value| value.truthy())?)))
}

/// A required text (or number), as Python's `str` gives it.
fn required_text(item: &Object, key: &str, field: &str, problem: &str) -> Result<String, Refusal> {
    item.get(key)
        .filter(|value| value.truthy())
        .and_then(coerce::text)
        .ok_or_else(|| Refusal::new(member(field, key), problem))
}

impl Draft {
    fn read(
        item: &Object,
        field: &str,
        at: usize,
        base: &Path,
        policies: &Policies,
    ) -> Result<Self, Refusal> {
        let family = family(item, field)?;
        let name = match item.get("name").filter(|name| name.truthy()) {
            None => Some(format!("{}_dataset_{at}", family.name())),
            Some(name) => coerce::text(name).filter(|name| !py_strip(name).is_empty()),
        };
        let name = name.ok_or_else(|| {
            Refusal::new(member(field, "name"), "must be a text that is not blank")
        })?;
        if item
            .get("source")
            .is_some_and(|source| source.as_str() != Some("local"))
        {
            return Err(Refusal::new(
                member(field, "source"),
                "must be local; download and normalize the data first",
            ));
        }
        if item.get("adapter").is_some_and(Value::truthy) {
            return Err(Refusal::new(
                member(field, "adapter"),
                "is not run here; adapt the data to the normalized form first",
            ));
        }
        let similarity_options = match item.get("similarity_options") {
            None => Object::new(),
            Some(Value::Object(options)) => options.clone(),
            Some(other) => {
                let problem = format!("is {}; it must be an object", other.type_name());
                return Err(Refusal::new(member(field, "similarity_options"), problem));
            }
        };
        code_language(&similarity_options, field)?;
        let source_revision = item
            .get("source_revision")
            .filter(|revision| revision.truthy())
            .and_then(coerce::text)
            .map(|revision| py_strip(&revision).to_owned())
            .filter(|revision| !revision.is_empty() && !MOVING.contains(&casefold(revision).as_str()))
            .ok_or_else(|| {
                Refusal::new(
                    member(field, "source_revision"),
                    "must name a state of the source that cannot move: a commit, a versioned DOI or a checksum",
                )
            })?;
        let source_url = required_text(
            item,
            "source_url",
            field,
            "is missing; say where the data comes from",
        )?;
        let split = required_text(
            item,
            "split",
            field,
            "is missing; name the split, such as test",
        )?;
        check_domains(item, field)?;
        let k = match item.get("k").filter(|k| k.truthy()) {
            None => Some(DEFAULT_K),
            Some(k) => coerce::int(k),
        };
        let k = k.filter(|k| *k > 0).ok_or_else(|| {
            Refusal::new(
                member(field, "k"),
                "must be a whole number above 0, such as 10",
            )
        })?;
        let selection = item.get("selection").filter(|selection| selection.truthy());
        let validation = if family == Family::Pair && policies.validation_f1 {
            Some(validation(item, field, base)?)
        } else {
            None
        };
        let (path_key, path) = match item.get("identifier") {
            Some(path) => ("identifier", Some(path)),
            None => ("path", item.get("path")),
        };
        Ok(Self {
            path: folder(path, &member(field, path_key), base)?,
            name,
            family,
            validation,
            source_url,
            source_revision,
            split,
            selection: selection.cloned().unwrap_or_else(|| {
                object! {
                    "mode" => "provided_split",
                    "description" => "All normalized rows supplied at freeze time.",
                }
            }),
            source_checksum: item.get("source_checksum").cloned().into(),
            similarity_options,
            k,
        })
    }

    /// What of it will be published, but for what the data gives.
    pub(super) fn public_fields(&self) -> Value {
        let mut fields = object! {
            "name" => self.name.as_str(),
            "domain" => DOMAIN,
            "task_family" => self.family.name(),
            "source_url" => self.source_url.as_str(),
            "source_revision" => self.source_revision.as_str(),
            "split" => self.split.as_str(),
            "selection" => self.selection.clone(),
            "source_checksum" => self.source_checksum.clone(),
            "similarity_options" => self.similarity_options.clone(),
            "k" => self.k,
        };
        if let (Some((_, split)), Some(object)) = (&self.validation, fields.as_object_mut()) {
            object.insert("validation_split", split.as_str());
        }
        fields
    }

    /// Reads the data and makes the entry of the protocol.
    pub(super) fn freeze(self, field: &str, group_fields: &[String]) -> Result<Value, Refusal> {
        let field_path = member(field, "path");
        let path = Path::new(&self.path);
        let test = load(path, self.family, &field_path)?;
        check_domain(&test, DOMAIN, &field_path, path)?;
        if let Dataset::Retrieval(data) = &test {
            check_selection(&self.selection, data, &member(field, "selection"))?;
        }
        let excludes = self.family == Family::Retrieval && excludes_same_file(&self.selection);
        let expected = expected_result_count(&test, excludes);
        if expected == 0 {
            let problem = format!(
                "{}: there is nothing to score; a dataset needs at least one pair or candidate",
                path.display()
            );
            return Err(Refusal::new(field_path, problem));
        }
        let mut entry = self.public_fields();
        let Some(object) = entry.as_object_mut() else {
            return Ok(entry);
        };
        object.insert("path", self.path.as_str());
        object.insert("content", test.content().to_value());
        object.insert(
            "expected_result_count",
            i64::try_from(expected).unwrap_or(i64::MAX),
        );
        if let Some((path, _)) = self.validation {
            let field_path = member(field, "validation_path");
            let validation = load(Path::new(&path), Family::Pair, &field_path)?;
            object.insert("validation_content", validation.content().to_value());
            object.insert("validation_path", path);
            check_disjoint(&test, &validation, group_fields, field)?;
        }
        Ok(entry)
    }
}

fn family(item: &Object, field: &str) -> Result<Family, Refusal> {
    let (key, value) =
        first(item, &["task", "task_family", "kind"]).unwrap_or(("task", &Value::Null));
    let name = coerce::text(value).map(|name| py_lower(py_strip(&name)));
    match name.as_deref() {
        Some("pair" | "pair_classification" | "classification") => Ok(Family::Pair),
        Some("retrieval" | "ranking") => Ok(Family::Retrieval),
        _ => Err(Refusal::new(
            member(field, key),
            "must be pair (pair_classification, classification) or retrieval (ranking)",
        )),
    }
}

/// `domain` and `task_type`, as far as given, must say the benchmark's domain.
fn check_domains(item: &Object, field: &str) -> Result<(), Refusal> {
    for key in ["domain", "task_type"] {
        let given = item.get(key).filter(|given| !given.is_null());
        let Some(given) = given else {
            continue;
        };
        // An empty domain is as good as none when task_type speaks, or when nothing does.
        if key == "domain" && !given.truthy() {
            continue;
        }
        let domain =
            task_type(Some(given)).map_err(|problem| Refusal::new(member(field, key), problem))?;
        if domain != DOMAIN {
            let problem = format!("is {domain:?}, but the domain of the benchmark is {DOMAIN:?}");
            return Err(Refusal::new(member(field, key), problem));
        }
    }
    Ok(())
}

fn folder(given: Option<&Value>, field: &str, base: &Path) -> Result<String, Refusal> {
    let text = given
        .and_then(Value::as_str)
        .map(py_strip)
        .filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| {
        Refusal::new(
            field,
            "must be the folder of the normalized data, absolute or relative to the manifest",
        )
    })?;
    resolve(base, text, field)
}

fn validation(item: &Object, field: &str, base: &Path) -> Result<(String, String), Refusal> {
    let path = item.get("validation_path").filter(|path| path.truthy());
    if path.is_none() {
        let problem = "is missing; validation_f1 calibrates the threshold of every pair dataset on held-out data";
        return Err(Refusal::new(member(field, "validation_path"), problem));
    }
    let split = required_text(
        item,
        "validation_split",
        field,
        "is missing; name the split of the validation data, such as dev",
    )?;
    Ok((
        folder(path, &member(field, "validation_path"), base)?,
        split,
    ))
}
