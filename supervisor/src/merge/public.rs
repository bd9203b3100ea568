//! What is said of a run without naming a place on the machine it ran on. Error texts, facts and the words of workers
//! hold paths; what is published keeps the last component of each.

use proctor_protocol::canonical::{Object, Value};
use proctor_protocol::public_metadata::is_local_path;

/// A copy of a value whose texts hold no path of this machine. Keys are ours and stay.
pub(super) fn value(value: &Value) -> Value {
    match value {
        Value::String(said) => text(said).into(),
        Value::Array(items) => Value::Array(items.iter().map(self::value).collect()),
        Value::Object(object) => Value::Object(self::object(object)),
        other => other.clone(),
    }
}

/// As [`value`], of an object.
pub(super) fn object(object: &Object) -> Object {
    object
        .iter()
        .map(|(key, item)| (key, value(item)))
        .collect()
}

/// A text in which every path is cut to its last component.
pub(super) fn text(said: &str) -> String {
    let mut out = String::with_capacity(said.len());
    let mut rest = said;
    let mut before = None;
    while let Some(character) = rest.chars().next() {
        let path = path_at(rest, before);
        if path > 0 {
            out.push_str(last_component(&rest[..path]));
            before = rest[..path].chars().next_back();
            rest = &rest[path..];
        } else {
            out.push(character);
            before = Some(character);
            rest = &rest[character.len_utf8()..];
        }
    }
    if is_local_path(&out) {
        // A form that was not foreseen: no separator, no path.
        out = out.replace(['/', '\\'], "_");
    }
    out
}

/// The length of the path that a text begins with; 0 when it begins with none.
fn path_at(rest: &str, before: Option<char>) -> usize {
    let within_word = before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '/'));
    let drive = |text: &[u8]| {
        text.len() > 2
            && text[0].is_ascii_alphabetic()
            && text[1] == b':'
            && matches!(text[2], b'/' | b'\\')
    };
    let starts = rest.starts_with("file://")
        || (!within_word
            && (rest.starts_with('/')
                || rest.starts_with("~/")
                || rest.starts_with("\\\\")
                || drive(rest.as_bytes())));
    if !starts {
        return 0;
    }
    // The colon of `file:` and of a drive belongs to the path.
    let head = rest.find(['/', '\\']).unwrap_or(0);
    let ends = |c: char| c.is_whitespace() || c.is_control() || "\"'`<>()[]{}|;,:=".contains(c);
    rest[head..].find(ends).map_or(rest.len(), |end| head + end)
}

fn last_component(path: &str) -> &str {
    path.rsplit(['/', '\\'])
        .find(|part| !part.is_empty() && *part != "~")
        .filter(|part| !part.ends_with(':'))
        .unwrap_or("root")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctor_protocol::object;

    #[test]
    fn paths_keep_their_last_component_wherever_they_stand() {
        let cases = [
            ("/home/me/run/x.json", "x.json"),
            (
                "could not sync /srv/runs/r 1: No space left",
                "could not sync r 1: No space left",
            ),
            (
                "FileNotFoundError: [Errno 2] No such file: '/tmp/proctor-1/model.bin'",
                "FileNotFoundError: [Errno 2] No such file: 'model.bin'",
            ),
            ("--output=/srv/runs/r1", "--output=r1"),
            ("open(~/.cache/a) and file:///etc/b", "open(a) and b"),
            ("C:\\Users\\me\\a.py: line 3", "a.py: line 3"),
            ("\\\\server\\share\\a", "a"),
            ("/", "root"),
            (
                "completed 3/4, see https://example.org/a/b",
                "completed 3/4, see https://example.org/a/b",
            ),
            ("either/or", "either/or"),
        ];
        for (said, published) in cases {
            assert_eq!(text(said), published);
            assert!(!is_local_path(&text(said)), "{said}");
        }
    }

    #[test]
    fn nothing_that_counts_as_a_path_comes_through() {
        let odd = [
            "x-/a/b/c",
            "\u{a0}/a/b",
            "(/a/ b)",
            "//server/share/x",
            "a\\\\?\\UNC\\x",
            "\\\\?\\C:\\x",
            "~/",
            "file://",
            "é/a/b/ /c/d/",
            "\"/a\"/b/c/",
            "../x /./y/",
        ];
        for said in odd {
            assert!(!is_local_path(&text(said)), "{said:?}: {:?}", text(said));
        }
    }

    #[test]
    fn numbers_and_keys_stay() {
        let facts = object! { "scratch_left" => "/tmp/s: busy", "late_rows" => 3i64, "list" => vec!["/a/b"] };
        let public =
            object! { "scratch_left" => "s: busy", "late_rows" => 3i64, "list" => vec!["b"] };
        assert_eq!(value(&facts), public);
    }
}
