//! What a cell may hold: ids, labels, relevances and paths (specs/matheel.md section a, "Normalization after reading").

use crate::canonical::{py_float, py_lower, py_strip};

const POSITIVE: [&str; 14] = [
    "1",
    "1.0",
    "true",
    "yes",
    "y",
    "p",
    "positive",
    "cheating",
    "clone",
    "plagiarized",
    "plagiarised",
    "plagiarism",
    "match",
    "same",
];

const NEGATIVE: [&str; 26] = [
    "0",
    "0.0",
    "false",
    "no",
    "n",
    "np",
    "negative",
    "original",
    "different",
    "nonmatch",
    "non-match",
    "non-clone",
    "non cheating",
    "non-cheating",
    "not cheating",
    "not_cheating",
    "nonplagiarized",
    "nonplagiarised",
    "non_plagiarized",
    "non_plagiarised",
    "not_plagiarized",
    "not_plagiarised",
    "not plagiarized",
    "not plagiarised",
    "non_plagiarism",
    "non-plagiarism",
];

/// Longest value a message shows, in characters.
const SHOWN: usize = 200;

/// A value of others in quotes for a message, cut when it is long.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}... ({} bytes)", &text[..end], text.len()),
        None => format!("{text:?}"),
    }
}

/// Checks an id that is already stripped.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check_id(id: &str, column: &str) -> Result<(), String> {
    if id.is_empty() {
        return Err(format!("{column} must not be empty"));
    }
    if id.contains(['/', '\\']) {
        return Err(format!(
            "{column} {} must not contain `/` or `\\`",
            quoted(id)
        ));
    }
    Ok(())
}

/// Reads a binary label.
///
/// # Errors
/// What is wrong with it.
pub(super) fn label(text: &str) -> Result<u8, String> {
    match text {
        "1" => return Ok(1),
        "0" => return Ok(0),
        _ => {}
    }
    let word = py_lower(py_strip(text));
    if POSITIVE.contains(&word.as_str()) {
        return Ok(1);
    }
    if NEGATIVE.contains(&word.as_str()) {
        return Ok(0);
    }
    match py_float(text) {
        Some(1.0) => Ok(1),
        Some(0.0) => Ok(0),
        _ => Err(format!("label must be 0 or 1, not {}", quoted(text))),
    }
}

/// Reads a graded relevance.
///
/// # Errors
/// What is wrong with it.
pub(super) fn relevance(text: &str) -> Result<f64, String> {
    py_float(text)
        .filter(|value| value.is_finite() && *value >= 0.0)
        .ok_or_else(|| {
            let text = quoted(text);
            format!("relevance must be a finite number of at least 0, not {text}")
        })
}

/// Turns a `file_path` into the names of folders and file below the dataset's folder.
///
/// # Errors
/// What is wrong with it: empty, absolute on POSIX or Windows, with a drive letter, or with a `..` part.
pub(super) fn path_parts(text: &str) -> Result<Vec<&str>, String> {
    let text = py_strip(text);
    let separators: &[char] = if text.contains('\\') {
        &['/', '\\']
    } else {
        &['/']
    };
    let drive = text.chars().nth(1) == Some(':');
    if text.starts_with(['/', '\\']) || drive || text.split(['/', '\\']).any(|part| part == "..") {
        return Err(format!(
            "file_path {} must be relative to the dataset's folder and stay inside it",
            quoted(text)
        ));
    }
    let parts: Vec<&str> = text
        .split(separators)
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    if parts.is_empty() {
        return Err("file_path must not be empty".into());
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_the_word_lists_and_numbers() {
        for text in ["1", " Yes ", "PLAGIARISED", "1e0", "+1", "1_0e-1", "١"] {
            assert_eq!(label(text), Ok(1), "{text}");
        }
        for text in ["0", "-0", "Not Plagiarized", "non-clone", "0e9", ".0"] {
            assert_eq!(label(text), Ok(0), "{text}");
        }
        for text in ["", "2", "nan", "inf", "non-plagiarized", "0.5", "0x1"] {
            assert!(label(text).is_err(), "{text}");
        }
    }

    #[test]
    fn relevances_are_finite_and_not_negative() {
        assert_eq!(relevance(" 1_0.5 "), Ok(10.5));
        assert!(relevance("-0.0").unwrap().is_sign_negative());
        for text in ["", "-1", "inf", "nan", "1e400", "0x1p3", "high"] {
            assert!(relevance(text).is_err(), "{text}");
        }
    }

    #[test]
    fn long_values_are_cut_in_messages() {
        let long = "\u{e9}".repeat(10_000);
        for text in [
            label(&long).unwrap_err(),
            relevance(&long).unwrap_err(),
            check_id(&format!("{long}/"), "file_id").unwrap_err(),
            path_parts(&format!("/{long}")).unwrap_err(),
        ] {
            assert!(text.chars().count() < 330, "{text}");
        }
    }

    #[test]
    fn paths_stay_inside() {
        assert_eq!(path_parts(" ./a//b/./c.txt "), Ok(vec!["a", "b", "c.txt"]));
        assert_eq!(path_parts("a\\b/c"), Ok(vec!["a", "b", "c"]));
        assert_eq!(path_parts("a..b/..c"), Ok(vec!["a..b", "..c"]));
        for text in [
            "", " ", ".", "./", "/a", "\\a", "c:a", "C:/a", "x:\\a", "//s/x", "..", "a/../b",
            "a\\..\\b", "../a", "a/..",
        ] {
            assert!(path_parts(text).is_err(), "{text}");
        }
    }
}
