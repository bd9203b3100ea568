//! The inventory of a bundle directory and its root digest (specs/submission.md section 3).

use crate::canonical::{Object, Value, digest};
use crate::object;

/// One regular file of a bundle directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InventoryRow {
    /// Path below the directory, with `/`.
    pub path: String,
    /// Lower-case hex SHA-256 of the bytes.
    pub sha256: String,
    /// Length in bytes.
    pub size_bytes: u64,
}

impl From<&InventoryRow> for Value {
    fn from(row: &InventoryRow) -> Self {
        object! {
            "path" => row.path.as_str(),
            "sha256" => row.sha256.as_str(),
            "size_bytes" => i64::try_from(row.size_bytes).unwrap_or(i64::MAX),
        }
    }
}

/// The rows as an array ordered by path as plain text (`a-b` before `a.b` before `a/b`).
pub fn inventory_value(rows: &[InventoryRow]) -> Value {
    let mut ordered: Vec<&InventoryRow> = rows.iter().collect();
    ordered.sort_by(|a, b| a.path.cmp(&b.path));
    Value::Array(ordered.into_iter().map(Value::from).collect())
}

/// The root digest: SHA-256 of the canonical text of [`inventory_value`].
pub fn inventory_root(rows: &[InventoryRow]) -> String {
    digest(&inventory_value(rows))
}

impl InventoryRow {
    /// Reads a row that [`inventory_value`] wrote; `None` when it is not one.
    pub fn from_object(object: &Object) -> Option<Self> {
        Some(Self {
            path: object.get("path")?.as_str()?.to_owned(),
            sha256: object.get("sha256")?.as_str()?.to_owned(),
            size_bytes: u64::try_from(object.get("size_bytes")?.as_int()?).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(path: &str) -> InventoryRow {
        InventoryRow {
            path: path.into(),
            sha256: "ab".repeat(32),
            size_bytes: 3,
        }
    }

    #[test]
    fn rows_are_ordered_by_path_as_text_and_the_root_does_not_depend_on_the_order_given() {
        let rows = [row("a/b"), row("a.b"), row("a-b")];
        let value = inventory_value(&rows);
        let paths: Vec<_> = value
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r.get("path").unwrap().as_str().unwrap())
            .collect();
        assert_eq!(paths, ["a-b", "a.b", "a/b"]);
        let other = [row("a-b"), row("a/b"), row("a.b")];
        assert_eq!(inventory_root(&rows), inventory_root(&other));
        let first = value.as_array().unwrap()[0].as_object().unwrap();
        assert_eq!(InventoryRow::from_object(first), Some(row("a-b")));
    }

    #[test]
    fn the_root_of_one_file_is_that_of_the_canonical_text() {
        let text = format!(
            r#"[{{"path":"a","sha256":"{}","size_bytes":3}}]"#,
            "ab".repeat(32)
        );
        assert_eq!(
            inventory_root(&[row("a")]),
            crate::canonical::sha256_hex(text.as_bytes())
        );
    }
}
