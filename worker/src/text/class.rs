//! Character classes of Python's `str` and `re`.

use unicode_general_category::{GeneralCategory, get_general_category};

/// `str.isspace` and `\s`: Unicode white space and the separators U+001C to U+001F.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// `\w`: letters, every kind of number, and the underscore. Unlike Rust's alphabetic, marks are not in it.
pub fn is_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    matches!(
        get_general_category(c),
        GeneralCategory::UppercaseLetter
            | GeneralCategory::LowercaseLetter
            | GeneralCategory::TitlecaseLetter
            | GeneralCategory::ModifierLetter
            | GeneralCategory::OtherLetter
            | GeneralCategory::DecimalNumber
            | GeneralCategory::LetterNumber
            | GeneralCategory::OtherNumber
    )
}

/// `\d`: decimal digits of any script.
pub fn is_decimal(c: char) -> bool {
    c.is_ascii_digit()
        || (!c.is_ascii() && get_general_category(c) == GeneralCategory::DecimalNumber)
}

/// `[A-Za-z_]`.
pub fn starts_identifier(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

/// `[A-Za-z0-9_]`.
pub fn continues_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_python() {
        for c in [
            '\t', '\u{1c}', '\u{1f}', ' ', '\u{85}', '\u{a0}', '\u{3000}',
        ] {
            assert!(is_space(c), "{c:?}");
        }
        assert!(!is_space('\u{200b}') && !is_space('\u{feff}'));
        for c in ['a', '_', '9', 'ß', '字', '²', 'Ⅷ', '٣'] {
            assert!(is_word(c), "{c:?}");
        }
        for c in ['\u{301}', '-', '\u{203f}', 'Ⓐ', '😀', ' '] {
            assert!(!is_word(c), "{c:?}");
        }
        assert!(is_decimal('٣') && !is_decimal('²') && !is_decimal('Ⅷ'));
    }
}
