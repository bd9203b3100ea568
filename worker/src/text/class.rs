//! Character classes of Python's `str` and `re`, as of CPython 3.11, which has Unicode 14.

use unicode_general_category::{GeneralCategory, get_general_category};

/// Letters and numbers that came after Unicode 14; to Python 3.11 they are not assigned.
#[rustfmt::skip]
const NEWER: [(u32, u32); 43] = [
    (0x1C89, 0x1C8A), (0xA7CB, 0xA7CD), (0xA7DA, 0xA7DC), (0x1_05C0, 0x1_05F3),
    (0x1_0D40, 0x1_0D65), (0x1_0D6F, 0x1_0D85), (0x1_0EC2, 0x1_0EC4), (0x1_123F, 0x1_1240),
    (0x1_1380, 0x1_1389), (0x1_138B, 0x1_138B), (0x1_138E, 0x1_138E), (0x1_1390, 0x1_13B5),
    (0x1_13B7, 0x1_13B7), (0x1_13D1, 0x1_13D1), (0x1_13D3, 0x1_13D3), (0x1_16D0, 0x1_16E3),
    (0x1_1BC0, 0x1_1BE0), (0x1_1BF0, 0x1_1BF9), (0x1_1F02, 0x1_1F02), (0x1_1F04, 0x1_1F10),
    (0x1_1F12, 0x1_1F33), (0x1_1F50, 0x1_1F59), (0x1_342F, 0x1_342F), (0x1_3441, 0x1_3446),
    (0x1_3460, 0x1_43FA), (0x1_6100, 0x1_611D), (0x1_6130, 0x1_6139), (0x1_6D40, 0x1_6D6C),
    (0x1_6D70, 0x1_6D79), (0x1_8CFF, 0x1_8CFF), (0x1_B132, 0x1_B132), (0x1_B155, 0x1_B155),
    (0x1_CCF0, 0x1_CCF9), (0x1_D2C0, 0x1_D2D3), (0x1_DF25, 0x1_DF2A), (0x1_E030, 0x1_E06D),
    (0x1_E4D0, 0x1_E4EB), (0x1_E4F0, 0x1_E4F9), (0x1_E5D0, 0x1_E5ED), (0x1_E5F0, 0x1_E5FA),
    (0x2_B739, 0x2_B739), (0x2_EBF0, 0x2_EE5D), (0x3_1350, 0x3_23AF),
];

fn is_newer(c: char) -> bool {
    let after = NEWER.partition_point(|&(first, _)| first <= c as u32);
    after > 0 && c as u32 <= NEWER[after - 1].1
}

/// `str.isspace` and `\s`: Unicode white space and the separators U+001C to U+001F.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// `\w`: letters, every kind of number, and the underscore. Unlike Rust's alphabetic, marks are not in it.
pub fn is_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    let in_class = matches!(
        get_general_category(c),
        GeneralCategory::UppercaseLetter
            | GeneralCategory::LowercaseLetter
            | GeneralCategory::TitlecaseLetter
            | GeneralCategory::ModifierLetter
            | GeneralCategory::OtherLetter
            | GeneralCategory::DecimalNumber
            | GeneralCategory::LetterNumber
            | GeneralCategory::OtherNumber
    );
    in_class && !is_newer(c)
}

/// `\d`: decimal digits of any script.
pub fn is_decimal(c: char) -> bool {
    c.is_ascii_digit()
        || (!c.is_ascii()
            && get_general_category(c) == GeneralCategory::DecimalNumber
            && !is_newer(c))
}

/// `str.lower` of a token, which has no letters outside ASCII but those Python does not know yet.
pub fn lowercase(token: &str) -> String {
    let mut lowered = String::with_capacity(token.len());
    for c in token.chars() {
        if is_newer(c) {
            lowered.push(c);
        } else {
            lowered.extend(c.to_lowercase());
        }
    }
    lowered
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
        // The last is a letter of Unicode 15.
        for c in ['\u{301}', '-', '\u{203f}', 'Ⓐ', '😀', ' ', '\u{31350}'] {
            assert!(!is_word(c), "{c:?}");
        }
        assert_eq!(lowercase("AbⒶ\u{a7da}"), "abⓐ\u{a7da}");
        assert!(is_decimal('٣') && !is_decimal('²') && !is_decimal('Ⅷ'));
    }
}
