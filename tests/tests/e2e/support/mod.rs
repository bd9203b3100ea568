//! What every test needs: the programs, the fixtures, runs and what they left.

pub mod bench;
pub mod bundle;
pub mod burner;
pub mod daemon;
pub mod matheel;
pub mod oracle;
pub mod proctor;
pub mod record;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The folder of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the repository")
        .to_path_buf()
}

/// The folder cargo puts programs into.
pub fn programs() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_rogue-good"))
        .parent()
        .expect("a program lies in a folder")
        .to_path_buf()
}

/// A program of `tests/rogues`.
pub fn rogue(name: &str) -> PathBuf {
    let path = programs().join(format!("rogue-{name}"));
    assert!(path.is_file(), "{} is missing: run ./test", path.display());
    path
}

/// A folder of vectors or data of other systems, if it is there; says what is skipped if not.
pub fn shared(test: &str, folder: &str) -> Option<PathBuf> {
    let root = std::env::var_os("PROCTOR_SHARED").map_or_else(
        || repository().parent().expect("a parent").join("shared"),
        PathBuf::from,
    );
    let path = root.join(folder);
    if !path.is_dir() {
        skip(test, &format!("{} is not there", path.display()));
        return None;
    }
    Some(path)
}

/// Says that a test does nothing, past the test runner's capture.
pub fn skip(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr().lock(), "skipped: {test}: {why}");
}

/// Reads a JSON file.
pub fn json(path: &Path) -> Value {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Writes a JSON file.
pub fn write_json(path: &Path, value: &Value) {
    std::fs::write(path, value.to_string()).expect("the file can be written");
}

/// Every file below a folder with its bytes, by relative path; links are followed.
pub fn tree(root: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let mut files = std::collections::BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).expect("below the root");
                let bytes = std::fs::read(&path).expect("the file can be read");
                files.insert(name.to_string_lossy().into_owned(), bytes);
            }
        }
    }
    files
}

/// Waits for a condition, with a deadline.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Every field of every expected row, found by its key, is the same in ours.
pub fn compare_rows(run: &str, key: &[&str], expected: &Value, ours: &[Value]) {
    let expected = expected.as_array().expect("rows");
    assert_eq!(ours.len(), expected.len(), "{run}: number of rows");
    for row in expected {
        let same = |other: &&Value| key.iter().all(|k| other[*k] == row[*k]);
        let found = ours
            .iter()
            .find(same)
            .unwrap_or_else(|| panic!("{run}: no row like {row}"));
        for (field, value) in row.as_object().expect("a row") {
            assert_eq!(
                found.get(field).unwrap_or(&Value::Null),
                value,
                "{run}: {field} of {row}"
            );
        }
    }
}
