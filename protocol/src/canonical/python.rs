//! Python's notions of space, case, word and number in text, where the rules of others are stated in them.
//!
//! Compared with Python 3.11 over every code point: they differ only on characters newer than its Unicode 14.

use std::borrow::Cow;

use caseless::Caseless as _;
use unicode_general_category::{GeneralCategory as Category, get_general_category};
use unicode_normalization::UnicodeNormalization as _;

/// `str.isspace` of one character: Unicode white space and U+001C..U+001F.
pub fn py_isspace(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// True of a character that shows nothing by itself, or changes how its neighbours are shown: control and format
/// characters (direction marks among them), and separators of lines and paragraphs.
pub fn is_unseen(character: char) -> bool {
    matches!(
        get_general_category(character),
        Category::Control
            | Category::Format
            | Category::LineSeparator
            | Category::ParagraphSeparator
    )
}

/// `str.strip()`.
pub fn py_strip(text: &str) -> &str {
    text.trim_matches(py_isspace)
}

/// `str.lower()`.
pub fn py_lower(text: &str) -> String {
    text.to_lowercase()
}

/// `str.casefold()`: full default case folding.
pub fn casefold(text: &str) -> String {
    text.chars().default_case_fold().collect()
}

/// What texts have in common that look the same apart from case, however their characters are composed: canonical
/// caseless matching (Unicode Standard 16.0, section 3.13, D145).
pub fn caseless(text: &str) -> String {
    text.nfd().default_case_fold().nfd().collect()
}

/// `str.isalnum` of one character: a letter, or anything with a numeric value.
pub fn is_alnum(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_alphanumeric();
    }
    matches!(
        get_general_category(character),
        Category::UppercaseLetter
            | Category::LowercaseLetter
            | Category::TitlecaseLetter
            | Category::ModifierLetter
            | Category::OtherLetter
            | Category::DecimalNumber
            | Category::LetterNumber
            | Category::OtherNumber
    )
}

/// `\w` of Python's `re`: [`is_alnum`] or `_`.
pub fn is_word_char(character: char) -> bool {
    character == '_' || is_alnum(character)
}

/// The value of a decimal digit of any script.
fn decimal_digit(character: char) -> Option<u8> {
    if character.is_ascii() {
        return character.is_ascii_digit().then(|| character as u8 - b'0');
    }
    let is_decimal = |c: char| get_general_category(c) == Category::DecimalNumber;
    if !is_decimal(character) {
        return None;
    }
    // Digits come in runs that begin with a zero and whose length is a multiple of ten.
    let code = character as u32;
    let run = (1..code)
        .take_while(|back| char::from_u32(code - back).is_some_and(is_decimal))
        .count();
    Some((run % 10) as u8)
}

/// `float(text)`: spaces around, `_` between digits, digits of any script, `inf` and `nan` in any case. `None` where
/// Python raises; overflow gives an infinity, as there.
pub fn py_float(text: &str) -> Option<f64> {
    let text = py_strip(text);
    let mut plain = Cow::Borrowed(text);
    if !text.is_ascii() || text.contains('_') {
        let mut ascii = String::with_capacity(text.len());
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            if character == '_' {
                let after = characters.peek().copied().and_then(decimal_digit);
                if !ascii.ends_with(|c: char| c.is_ascii_digit()) || after.is_none() {
                    return None;
                }
            } else if let Some(digit) = decimal_digit(character) {
                ascii.push(char::from(b'0' + digit));
            } else {
                ascii.push(character);
            }
        }
        plain = Cow::Owned(ascii);
    }
    plain.parse().ok()
}
