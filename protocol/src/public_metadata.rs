//! What may not stand in anything published: paths of somebody's machine, and credentials.
//!
//! The rules are those of specs/matheel.md section b. They apply to every key and every text of a public protocol and
//! of a method configuration; the machine-local `path` fields are removed before.

use crate::canonical::{Value, casefold, is_alnum, is_word_char, py_isspace, py_strip};
use crate::input::{Refusal, index, member};

/// Checks that no key and no text of `value` holds a local path.
///
/// # Errors
/// The first offending field.
pub fn check_public(value: &Value) -> Result<(), Refusal> {
    check_at(value, "")
}

fn check_at(value: &Value, field: &str) -> Result<(), Refusal> {
    match value {
        Value::Object(object) => object.iter().try_for_each(|(key, item)| {
            let field = member(field, key);
            check_text(key, &field)?;
            check_at(item, &field)
        }),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(at, item)| check_at(item, &index(field, at))),
        Value::String(text) => check_text(text, field),
        _ => Ok(()),
    }
}

fn check_text(text: &str, field: &str) -> Result<(), Refusal> {
    if is_local_path(text) {
        return Err(Refusal::new(
            field,
            format!(
                "{text:?} holds a path of this machine, which must not be published; keep paths in the fields made for \
                 them and describe the source by a URL or a name"
            ),
        ));
    }
    Ok(())
}

/// True for a text that is, or holds, an absolute path, a path below a home directory or a `file://` URL.
pub fn is_local_path(text: &str) -> bool {
    let text = py_strip(text);
    text.starts_with('/')
        || text.starts_with("~/")
        || text.starts_with("file://")
        || is_windows_absolute(text)
        || holds_path(text)
}

/// A `/` that follows no word character, `:` or `/`, then at least one segment without spaces that ends in `/`.
fn holds_path(text: &str) -> bool {
    let mut before = None;
    for (at, character) in text.char_indices() {
        let opens = character == '/'
            && before.is_none_or(|c: char| !is_word_char(c) && c != ':' && c != '/');
        if opens {
            let rest = &text[at + 1..];
            let end = rest.find(|c: char| c == '/' || py_isspace(c));
            if end.is_some_and(|end| end > 0 && rest[end..].starts_with('/')) {
                return true;
            }
        }
        before = Some(character);
    }
    false
}

/// `PureWindowsPath(text).is_absolute()` of Python 3.11: a drive and a slash, or a share.
fn is_windows_absolute(text: &str) -> bool {
    let text = text.replace('/', "\\");
    let drive = |text: &str| {
        let bytes = text.as_bytes();
        bytes.len() > 2 && bytes[0].is_ascii_alphabetic() && bytes[1..3] == *b":\\"
    };
    // The extended prefix stands for a drive, so any root behind it makes the path absolute.
    if let Some(rest) = text.strip_prefix(r"\\?\") {
        return rest.starts_with('\\') || rest.starts_with(r"UNC\") || drive(rest);
    }
    // A share is `\\machine\mount`; the mount may be missing at the very end.
    let share = text
        .strip_prefix(r"\\")
        .and_then(|share| share.split_once('\\'))
        .is_some_and(|(machine, mount)| !machine.is_empty() && !mount.starts_with('\\'));
    share || drive(&text)
}

/// The fields with a credential-like name and a value other than null or `""`.
pub fn credential_fields(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect_credentials(value, "", &mut found);
    found
}

fn collect_credentials(value: &Value, field: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, item) in object.iter() {
                let field = member(field, key);
                let empty = item.is_null() || item.as_str() == Some("");
                if is_credential_key(key) && !empty {
                    found.push(field);
                } else {
                    collect_credentials(item, &field, found);
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                collect_credentials(item, &index(field, at), found);
            }
        }
        _ => {}
    }
}

/// Refuses a document that holds credentials.
///
/// # Errors
/// Every offending field by name, never its value.
pub fn check_credentials(value: &Value) -> Result<(), Refusal> {
    let found = credential_fields(value);
    if found.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(
        found.join(", "),
        "looks like a credential; remove it and let the environment of the run provide it",
    ))
}

/// True for names such as `api_key`, `Access-Token` or `db.password`.
pub fn is_credential_key(key: &str) -> bool {
    let name: String = casefold(py_strip(key))
        .chars()
        .filter(|c| is_alnum(*c))
        .collect();
    name == "authorization"
        || ["apikey", "password", "secret", "token"]
            .iter()
            .any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::object;

    #[test]
    fn paths_are_told_from_text_with_slashes() {
        for path in [
            "/",
            "/data/test",
            "  /data/test  ",
            "file:///x",
            "file://host/x",
            "~/x",
            "from /data/raw/x today",
            "a /b/c",
            "(/b/c)",
            "=/a/b",
            "--model=/srv/models/a.bin",
            "\u{2014}/b/c",
            r"C:\data\x",
            "x:/a",
            r"\\srv\share\",
            r"\\srv\share",
            r"\\srv\",
            r"\\?\C:\x",
            r"\\?\UNC\a\b",
            r"\\?\\a",
            r"\/a/b",
            // U+001F is a space to Python, so what follows is a segment of its own.
            "a\u{1f}/b/c",
        ] {
            assert!(is_local_path(path), "{path:?}");
        }
        for text in [
            "",
            "either/or and a/b/c, / alone, https://e.org/a/b",
            "a /b",
            "a /b c/d",
            "a //b/c",
            "~",
            "~user/x",
            "FILE:///x/",
            "C:",
            "C:x",
            "1:/a",
            r"\a\b",
            r"\\srv",
            r"\\srv\\x",
            r"\\?\x",
            r"\\?\C:",
            // A letter of any script is a word character.
            "\u{e9}/b/c",
            "\u{4e2d}/b/c",
            "a/ b/c",
        ] {
            assert!(!is_local_path(text), "{text:?}");
        }
    }

    #[test]
    fn keys_are_checked_like_texts_and_the_field_is_named() {
        let value = object! { "a" => vec![object! { "b" => "ok" }, object! { "c" => "/x/y" }] };
        assert_eq!(check_public(&value).unwrap_err().field, "a[1].c");
        let value = object! { "a" => object! { "/abs/key" => 1i64 } };
        assert_eq!(check_public(&value).unwrap_err().field, "a./abs/key");
    }

    #[test]
    fn credentials_are_named_but_never_shown() {
        let value = object! {
            "API-Key" => "k",
            "tokens" => "fine",
            "lexical_tokenizer" => "raw",
            "password" => "",
            "secret" => Value::Null,
            "list" => vec![object! { "access_token" => false }],
            "Authorization" => object! {},
        };
        assert_eq!(
            credential_fields(&value),
            ["API-Key", "Authorization", "list[0].access_token"]
        );
        let refusal = check_credentials(&object! { "db.PassWord" => "hunter2" }).unwrap_err();
        assert_eq!(refusal.field, "db.PassWord");
        assert!(!refusal.to_string().contains("hunter2"));
    }

    proptest! {
        /// The rule as a backtracking matcher would walk it, over texts that start with a letter so that only the
        /// embedded form can apply.
        #[test]
        fn embedded_paths_agree_with_the_written_rule(text in "m[a/: .~\u{e9}_-]{0,12}") {
            let characters: Vec<char> = text.trim_end().chars().collect();
            let mut expected = false;
            for at in 1..characters.len() {
                let before = characters[at - 1];
                if characters[at] != '/' || before.is_alphanumeric() || "_:/".contains(before) {
                    continue;
                }
                let mut end = at + 1;
                while end < characters.len() && !"/ ".contains(characters[end]) {
                    end += 1;
                }
                expected |= end > at + 1 && characters.get(end) == Some(&'/');
            }
            prop_assert_eq!(is_local_path(&text), expected || text.starts_with("m:/"));
        }

        #[test]
        fn any_absolute_path_is_found_wherever_it_follows_a_space(
            before in "[a-z]{0,5}",
            first in "[a-z.~-]{1,8}",
            rest in "[a-z./-]{0,8}",
        ) {
            let text = format!("{before} /{first}/{rest}");
            prop_assert!(is_local_path(&text));
        }
    }
}
