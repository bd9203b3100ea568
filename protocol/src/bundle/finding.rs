//! Why a bundle is refused.

/// The first rule a bundle breaks, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", if at.is_empty() { String::new() } else { format!("{at}: ") })]
pub struct Finding {
    /// A stable word for the rule.
    pub rule: &'static str,
    /// Where, like `per_dataset[3].score`; empty for the whole document.
    pub at: String,
    /// What is wrong and, where it helps, what was expected.
    pub problem: String,
    /// The value the rule asks for, where it is one value.
    pub expected: Option<String>,
    /// The value that is there instead.
    pub found: Option<String>,
}

impl Finding {
    /// A finding.
    pub(crate) fn new(
        rule: &'static str,
        at: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        Self {
            rule,
            at: at.into(),
            problem: problem.into(),
            expected: None,
            found: None,
        }
    }

    /// A finding of a value that is another than it must be. Long values are cut.
    pub(crate) fn differs(
        rule: &'static str,
        at: impl Into<String>,
        (expected, why): (&str, &str),
        found: &str,
    ) -> Self {
        let (expected, found) = (cut(expected), cut(found));
        Self {
            rule,
            at: at.into(),
            problem: format!("is {found}, but {why} {expected}"),
            expected: Some(expected),
            found: Some(found),
        }
    }
}

/// The longest value a finding shows, in characters.
const SHOWN: usize = 200;

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
