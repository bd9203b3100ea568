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
        }
    }
}
