//! The tables and pages beside a payload are made from it again and compared byte by byte.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use super::Directory;
use crate::bundle::{Artifact, Finding};
use crate::canonical::Value;
use crate::input::open_regular;

const RULE: &str = "regenerated";

/// False when the pages are of another version and were not compared.
pub(super) fn check(directory: &Directory<'_>) -> Result<bool, Finding> {
    let text = |key| directory.about.get(key).and_then(Value::as_str);
    let stem = text("payload").and_then(|name| name.strip_suffix(".json"));
    let Some(stem) = stem else {
        let at = "bundle.json: payload";
        return Err(Finding::new(
            "bundle",
            at,
            "must be the name of a .json file",
        ));
    };
    let same_version = text("proctor_version") == Some(directory.version);
    for artifact in Artifact::ALL {
        let ours = match artifact {
            Artifact::Json => false,
            Artifact::Html | Artifact::DetailsHtml => same_version,
            Artifact::PerDatasetCsv | Artifact::AggregateCsv | Artifact::ReproducibilityJson => {
                true
            }
        };
        let name = artifact.file_name(stem);
        if ours {
            compare(directory, artifact, stem, &name)?;
        } else if !directory.root.join(&name).is_file() {
            return Err(Finding::new(RULE, name, "is missing"));
        }
    }
    Ok(same_version)
}

fn compare(
    directory: &Directory<'_>,
    artifact: Artifact,
    stem: &str,
    name: &str,
) -> Result<(), Finding> {
    let path = directory.root.join(name);
    let refuse = |error: io::Error| Finding::new(RULE, name, error.to_string());
    let mut against = Against::open(&path).map_err(refuse)?;
    let written = directory.document.write(artifact, stem, &mut against);
    if let Some((expected, found)) = against.difference {
        let at = format!("{name}, line {}", against.line);
        let why = "the payload gives";
        return Err(Finding::differs(RULE, at, (&expected, why), &found));
    }
    written.map_err(refuse)?;
    let mut more = String::new();
    let count = against.file.take(64).read_to_string(&mut more);
    if matches!(count, Ok(0)) {
        return Ok(());
    }
    let at = format!("{name}, line {}", against.line);
    let why = "the payload gives";
    Err(Finding::differs(
        RULE,
        at,
        ("the end of the file", why),
        &format!("{more:?}"),
    ))
}

/// Bytes shown of a difference.
const SHOWN: usize = 60;

/// Compares what is written with a file instead of writing it.
struct Against {
    file: BufReader<File>,
    line: usize,
    difference: Option<(String, String)>,
}

impl Against {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: BufReader::with_capacity(1 << 16, open_regular(path)?),
            line: 1,
            difference: None,
        })
    }
}

impl Write for Against {
    fn write(&mut self, expected: &[u8]) -> io::Result<usize> {
        let mut found = vec![0; expected.len().min(1 << 16)];
        let expected = &expected[..found.len()];
        let mut filled = 0;
        while filled < found.len() {
            match self.file.read(&mut found[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        found.truncate(filled);
        let same = expected
            .iter()
            .zip(&found)
            .take_while(|(a, b)| a == b)
            .count();
        self.line += expected[..same].split(|byte| *byte == b'\n').count() - 1;
        if same < expected.len() {
            let shown = |bytes: &[u8]| match &bytes[same..bytes.len().min(same + SHOWN)] {
                [] => "the end of the file".to_owned(),
                bytes => format!("{:?}", String::from_utf8_lossy(bytes)),
            };
            self.difference = Some((shown(expected), shown(&found)));
            return Err(io::Error::other("it differs"));
        }
        Ok(expected.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
