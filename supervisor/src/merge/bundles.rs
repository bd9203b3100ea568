//! Merging bundles of one protocol into one.

use super::{about_bundle, write_document};
use crate::bundle::{self, Builder, EVIDENCE, Evidence, Opened, SCORES, Sealed, open};
use crate::error::Error;
use proctor_protocol::bundle::{
    Artifact, Backing, Directory, Document, Payload, Validation, check_directory, merge, stem,
};
use proctor_protocol::canonical::Value;
use proctor_protocol::frozen::Protocol;
use std::path::{Path, PathBuf};

/// A bundle merged from others, and what people should know of it.
#[derive(Debug)]
pub struct MergedBundles {
    /// The bundle, not in its place yet.
    pub bundle: Sealed,
    /// The document in it.
    pub document: Document,
    /// Name of the page to look at.
    pub page: String,
    /// What is missing from it that one could expect.
    pub notes: Vec<String>,
}

/// Merges bundles (directories or payload files) under one protocol: the one given, else that of the first bundle.
///
/// # Errors
/// A bundle cannot be read or is not valid, or they do not fit together.
pub fn merge_bundles(
    inputs: &[PathBuf],
    protocol: Option<&Protocol>,
    basename: Option<&str>,
    parent: &Path,
) -> Result<MergedBundles, Error> {
    let mut opened = Vec::new();
    let mut documents = Vec::new();
    let mut evidence = Vec::new();
    let mut notes = Vec::new();
    let mut first: Option<Protocol> = None;
    for input in inputs {
        let mut bundle = open(input)?;
        bundle.check()?;
        if let Some(dir) = &bundle.dir {
            bundle::check_inventory(dir)
                .map_err(|problem| Error::input(format!("{}: {problem}", dir.display())))?;
        }
        let mut payload = std::mem::take(&mut bundle.payload);
        if bundle.scores.is_none() && drop_score_index(&mut payload) {
            notes.push(format!(
                "{}: its score files are not beside it, so the merged bundle has none of them",
                input.display()
            ));
        }
        let expected = protocol.or(first.as_ref());
        let validation = Validation {
            protocol: expected,
            scores: bundle.scores.as_deref(),
            data: None,
        };
        let (document, _) = Document::accept(payload, &validation).map_err(|finding| {
            Error::input(format!("{}: {finding}", bundle.payload_file.display()))
        })?;
        if expected.is_none() {
            first = Some(embedded(&document, &bundle)?);
        }
        let backing = backing(&bundle, &document, protocol.or(first.as_ref()))?;
        let level = backing.map_or(Evidence::None, |backing| backing.evidence);
        if level != Evidence::Full {
            let word = level.name();
            notes.push(format!("{}: evidence: {word}", input.display()));
        }
        if backing.is_some_and(|backing| !backing.pages_compared) {
            let what = "its pages are of another version of proctor, so they were not compared";
            notes.push(format!("{}: {what}", input.display()));
        }
        evidence.push(level);
        opened.push(bundle);
        documents.push(document);
    }
    let Some(protocol) = protocol.or(first.as_ref()) else {
        return Err(Error::input("name at least one bundle"));
    };
    let merged = merge(protocol, documents).map_err(|error| Error::input(error.to_string()))?;
    let stem = basename.map_or_else(|| first_stem(&opened), stem);
    let mut builder = Builder::new(parent)?;
    write_document(&mut builder, &merged, &stem)?;
    for (at, bundle) in opened.iter().enumerate() {
        copy_scores(&mut builder, bundle)?;
        let folder = bundle.dir.as_ref().map(|dir| dir.join(EVIDENCE));
        if let Some(folder) = folder.filter(|folder| folder.is_dir()) {
            let part = format!("{EVIDENCE}/part-{:04}", at + 1);
            copy_tree(&mut builder, &part, &folder)?;
        }
    }
    let evidence = together(evidence.into_iter());
    let sealed = builder.seal(&about_bundle(&merged, &stem, evidence))?;
    Ok(MergedBundles {
        bundle: sealed,
        document: merged,
        page: Artifact::Html.file_name(&stem),
        notes,
    })
}

/// What a bundle directory has behind its payload, everything compared; nothing of a bare payload.
fn backing(
    bundle: &Opened,
    document: &Document,
    protocol: Option<&Protocol>,
) -> Result<Option<Backing>, Error> {
    let Some(root) = &bundle.dir else {
        return Ok(None);
    };
    let directory = Directory {
        root,
        about: &bundle.about,
        document,
        protocol,
        data: None,
        version: env!("CARGO_PKG_VERSION"),
    };
    check_directory(&directory)
        .map(Some)
        .map_err(|finding| Error::input(format!("{}: {finding}", root.display())))
}

/// How much evidence there is of all bundles together.
fn together(parts: impl Iterator<Item = Evidence>) -> Evidence {
    parts
        .reduce(|one, other| if one == other { one } else { Evidence::Partial })
        .unwrap_or(Evidence::None)
}

/// Takes the index of score files out of a payload whose files are not at hand; true when there was something in it.
fn drop_score_index(payload: &mut Payload) -> bool {
    let index = payload
        .metadata_mut()
        .and_then(|metadata| metadata.get_mut("score_artifacts"))
        .and_then(Value::as_array_mut);
    index.is_some_and(|index| !std::mem::take(index).is_empty())
}

fn embedded(document: &Document, bundle: &Opened) -> Result<Protocol, Error> {
    let value = document
        .metadata()
        .get("benchmark_protocol")
        .unwrap_or(&Value::Null);
    Protocol::from_value(value, None).map_err(|error| {
        Error::input(format!(
            "{}: metadata.benchmark_protocol: {error}",
            bundle.payload_file.display()
        ))
    })
}

fn first_stem(opened: &[Opened]) -> String {
    let name = opened
        .first()
        .and_then(|bundle| bundle.payload_file.file_stem());
    stem(&name.map_or_else(String::new, |name| name.to_string_lossy().into_owned()))
}

fn copy_scores(builder: &mut Builder, bundle: &Opened) -> Result<(), Error> {
    match &bundle.scores {
        Some(folder) => copy_tree(builder, SCORES, folder),
        None => Ok(()),
    }
}

/// Copies the regular files below a folder, in name order.
fn copy_tree(builder: &mut Builder, to: &str, from: &Path) -> Result<(), Error> {
    let unreadable = |error: std::io::Error| Error::input(format!("{}: {error}", from.display()));
    let mut entries = std::fs::read_dir(from)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(unreadable)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let name = name
            .to_str()
            .ok_or_else(|| Error::input(format!("{}: a file name is not UTF-8", from.display())))?;
        let to = format!("{to}/{name}");
        if entry.file_type().map_err(unreadable)?.is_dir() {
            copy_tree(builder, &to, &entry.path())?;
        } else {
            builder.copy(&to, &entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_of_all_is_full_only_when_each_is() {
        use Evidence::{Full, None, Partial};
        let cases: [(&[Evidence], Evidence); 6] = [
            (&[Full, Full], Full),
            (&[Full, None], Partial),
            (&[None, Partial], Partial),
            (&[None, None], None),
            (&[Full, None, Full], Partial),
            (&[], None),
        ];
        for (parts, expected) in cases {
            assert_eq!(together(parts.iter().copied()), expected, "{parts:?}");
        }
    }
}
