//! The rules of a protocol that need its data (specs/matheel.md section b).

use std::collections::HashSet;
use std::path::Path;

use proctor_wire::Family;

use super::{DatasetEntry, Protocol, ProtocolError, ThresholdPolicy};
use crate::canonical::{Value, py_strip};
use crate::dataset::{Content, Dataset, RetrievalDataset};
use crate::input::{Refusal, index, member};

/// The data of one frozen dataset, verified.
#[derive(Debug, Clone)]
pub struct LoadedEntry {
    /// The data that is scored.
    pub test: Dataset,
    /// Held-out data to calibrate the threshold on: pair datasets under `validation_f1` only.
    pub validation: Option<Dataset>,
}

impl Protocol {
    /// Loads every dataset and holds it to what was frozen: domain, selection, content, and that validation data shares
    /// no text and no group with its test data. Gives the data back, in the order of the datasets.
    ///
    /// # Errors
    /// The first dataset that is missing, unsound or not what was frozen, by field.
    pub fn verify_data(&self) -> Result<Vec<LoadedEntry>, ProtocolError> {
        let group_fields = group_fields(self.value.get("split_policy"))?;
        let verify = |(at, entry)| {
            verify(self, entry, &index("datasets", at), &group_fields).map_err(Into::into)
        };
        self.datasets.iter().enumerate().map(verify).collect()
    }
}

fn verify(
    protocol: &Protocol,
    entry: &DatasetEntry,
    field: &str,
    group_fields: &[String],
) -> Result<LoadedEntry, Refusal> {
    let field_path = member(field, "path");
    let path = entry.path.as_deref().ok_or_else(|| no_path(&field_path))?;
    let test = load(path, entry.family, &field_path)?;
    check_domain(&test, &protocol.domain, &field_path, path)?;
    if let Dataset::Retrieval(data) = &test {
        let selection = entry.value.get("selection").unwrap_or(&Value::Null);
        check_selection(selection, data, &member(field, "selection"))?;
    }
    check_content(
        &test.content(),
        entry.value.get("content"),
        &member(field, "content"),
        path,
    )?;

    let calibrates =
        protocol.threshold == ThresholdPolicy::ValidationF1 && entry.family == Family::Pair;
    let field_path = member(field, "validation_path");
    let validation = match entry.validation_path.as_deref() {
        Some(path) => {
            let validation = load(path, Family::Pair, &field_path)?;
            let frozen = entry.value.get("validation_content");
            let content = validation.content();
            check_content(&content, frozen, &member(field, "validation_content"), path)?;
            check_disjoint(&test, &validation, group_fields, field)?;
            Some(validation)
        }
        None if calibrates => return Err(no_path(&field_path)),
        None => None,
    };
    Ok(LoadedEntry {
        test,
        validation: validation.filter(|_| calibrates),
    })
}

fn no_path(field: &str) -> Refusal {
    Refusal::new(
        field,
        "is missing, as in every public protocol; add the folder of the data, absolute or relative to the protocol \
         file (paths are not part of the protocol id)",
    )
}

/// Loads a dataset; its errors name the field as well as the file.
pub(crate) fn load(path: &Path, family: Family, field: &str) -> Result<Dataset, Refusal> {
    Dataset::load(path, family).map_err(|error| Refusal::new(field, error.to_string()))
}

/// The domain that the data itself declares must be the benchmark's.
pub(crate) fn check_domain(
    data: &Dataset,
    domain: &str,
    field: &str,
    path: &Path,
) -> Result<(), Refusal> {
    if data.task_type() == domain {
        return Ok(());
    }
    let problem = format!(
        "{}: task_type is {:?}, but the domain of the benchmark is {domain:?}",
        path.join("metadata.json").display(),
        data.task_type()
    );
    Err(Refusal::new(field, problem))
}

fn check_content(
    now: &Content,
    frozen: Option<&Value>,
    field: &str,
    path: &Path,
) -> Result<(), Refusal> {
    if frozen == Some(&now.to_value()) {
        return Ok(());
    }
    let was = frozen
        .and_then(|frozen| frozen.get("sha256"))
        .and_then(Value::as_str);
    let problem = format!(
        "the data in {} is not what was frozen: its content is {}, frozen was {}; restore it, or freeze it anew as another \
         protocol",
        path.display(),
        now.sha256,
        was.unwrap_or("nothing")
    );
    Err(Refusal::new(field, problem))
}

/// True when a retrieval selection leaves out candidates whose query and document are the same file.
pub(crate) fn excludes_same_file(selection: &Value) -> bool {
    selection.get("candidate_policy").and_then(Value::as_str) == Some("exclude_same_file")
}

/// Holds retrieval data to the selection that is declared for it.
pub(crate) fn check_selection(
    selection: &Value,
    data: &RetrievalDataset,
    field: &str,
) -> Result<(), Refusal> {
    let Some(declared) = selection.as_object() else {
        let problem = format!(
            "is {}; the selection of a retrieval dataset must be an object",
            selection.type_name()
        );
        return Err(Refusal::new(field, problem));
    };
    let policy = declared.get("candidate_policy");
    if policy.is_some_and(|policy| !matches!(policy.as_str(), Some("all" | "exclude_same_file"))) {
        return Err(Refusal::new(
            member(field, "candidate_policy"),
            "must be all or exclude_same_file",
        ));
    }
    let excludes = excludes_same_file(selection);
    let mut answered = vec![false; data.query_ids.len()];
    for &(query, document, relevance) in &data.judgments {
        if relevance <= 0.0 {
            continue;
        }
        let (query, document) = (query as usize, document as usize);
        answered[query] = true;
        if excludes && data.query_file[query] == data.document_file[document] {
            let problem = format!(
                "is exclude_same_file, but qrels.csv judges document {:?} relevant to query {:?} and both are the same \
                 file; remove the judgment or keep all candidates",
                data.document_ids[document], data.query_ids[query]
            );
            return Err(Refusal::new(member(field, "candidate_policy"), problem));
        }
    }
    let wants_positive =
        declared.get("query_policy").and_then(Value::as_str) == Some("positive_judged");
    match answered.iter().position(|answered| !answered) {
        Some(query) if wants_positive => {
            let problem = format!(
                "is positive_judged, but query {:?} has no judgment above 0 in qrels.csv",
                data.query_ids[query]
            );
            Err(Refusal::new(member(field, "query_policy"), problem))
        }
        _ => Ok(()),
    }
}

/// How many scores a complete result holds.
pub(crate) fn expected_result_count(data: &Dataset, excludes_same_file: bool) -> u64 {
    let masked = match data {
        Dataset::Retrieval(data) if excludes_same_file => {
            let mut documents = vec![0u64; data.texts.len()];
            for &file in &data.document_file {
                documents[file as usize] += 1;
            }
            data.query_file
                .iter()
                .map(|&file| documents[file as usize])
                .sum()
        }
        _ => 0,
    };
    data.item_count() - masked
}

/// The group fields of a split policy.
pub(crate) fn group_fields(policy: Option<&Value>) -> Result<Vec<String>, Refusal> {
    let field = "split_policy.group_fields";
    let wrong = || Refusal::new(field, "must be a list of column names of files.csv");
    match policy.and_then(|policy| policy.get("group_fields")) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(names)) => names
            .iter()
            .map(|name| name.as_str().map(str::to_owned).ok_or_else(wrong))
            .collect(),
        Some(_) => Err(wrong()),
    }
}

/// Validation data must share no source text with its test data, used or not, and no value of a group field.
pub(crate) fn check_disjoint(
    test: &Dataset,
    validation: &Dataset,
    group_fields: &[String],
    field: &str,
) -> Result<(), Refusal> {
    let field = member(field, "validation_path");
    let texts: HashSet<&str> = test.texts().iter().map(AsRef::as_ref).collect();
    let ids = validation.file_ids();
    if let Some(at) = validation
        .texts()
        .iter()
        .position(|text| texts.contains(text.as_ref()))
    {
        let problem = format!(
            "file {:?} has the same text as a file of the test data; validation must be held out",
            ids[at]
        );
        return Err(Refusal::new(field, problem));
    }
    for name in group_fields {
        let mut sides = Vec::with_capacity(2);
        for (data, side) in [(test, "test"), (validation, "validation")] {
            let files = data.files();
            let column = files.column(name).ok_or_else(|| {
                let problem = format!("files.csv of the {side} data has no column {name:?}");
                Refusal::new("split_policy.group_fields", problem)
            })?;
            if let Some(row) = files
                .cells(column)
                .position(|cell| py_strip(cell).is_empty())
            {
                let problem = format!(
                    "files.csv, line {} of the {side} data: {name} is blank, but it is a group field",
                    files.line(row)
                );
                return Err(Refusal::new(field, problem));
            }
            sides.push(files.cells(column).collect::<HashSet<_>>());
        }
        // The smallest, so that the message is always the same.
        if let Some(shared) = sides[0].intersection(&sides[1]).min() {
            let problem = format!(
                "{name} {shared:?} is in the test and in the validation data; groups must be held out whole"
            );
            return Err(Refusal::new(field, problem));
        }
    }
    Ok(())
}
