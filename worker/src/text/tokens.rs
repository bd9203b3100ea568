//! Matheel's code tokens: identifiers, runs of digits, single symbols. Other letters are skipped.

use super::class::{continues_identifier, is_decimal, is_space, is_word, starts_identifier};

/// The matches of `[A-Za-z_][A-Za-z0-9_]*|\d+|[^\w\s]`, from the left.
pub fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let first = rest.chars().next()?;
            let length = if is_identifier_start(first) {
                let end = rest.bytes().position(|byte| !continues_identifier(byte));
                end.unwrap_or(rest.len())
            } else if is_decimal(first) {
                let end = rest.find(|c| !is_decimal(c));
                end.unwrap_or(rest.len())
            } else if is_word(first) || is_space(first) {
                rest = &rest[first.len_utf8()..];
                continue;
            } else {
                first.len_utf8()
            };
            let token = &rest[..length];
            rest = &rest[length..];
            return Some(token);
        }
    })
}

fn is_identifier_start(c: char) -> bool {
    c.is_ascii() && starts_identifier(c as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_cut_like_the_expression_cuts_them() {
        let cut = |text| tokens(text).collect::<Vec<_>>();
        assert_eq!(cut("int x1=0x1F;"), ["int", "x1", "=", "0", "x1F", ";"]);
        // The é is a letter outside ASCII: skipped; the combining accent is a symbol.
        assert_eq!(cut("né_a e\u{301}²٣٤"), ["n", "_a", "e", "\u{301}", "٣٤"]);
        assert_eq!(cut(" \u{1c}\n"), [] as [&str; 0]);
        assert_eq!(cut("a.b(\"ü\")"), ["a", ".", "b", "(", "\"", "\"", ")"]);
    }
}
