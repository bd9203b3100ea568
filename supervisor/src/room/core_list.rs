//! Sets of cores as short text: `0-3,7`.

use std::fmt::Write;

/// Ascending numbers as text, runs of them as ranges.
pub fn write(cores: &[usize]) -> String {
    let mut text = String::new();
    let mut rest = cores;
    while let [first, ..] = rest {
        let run = rest
            .iter()
            .enumerate()
            .take_while(|(at, core)| **core == first + at)
            .count();
        let separator = if text.is_empty() { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = match run {
            1 => write!(text, "{separator}{first}"),
            _ => write!(text, "{separator}{first}-{}", first + run - 1),
        };
        rest = &rest[run..];
    }
    text
}

/// Reads what [`write`] wrote; `None` when it is not that.
pub(super) fn read(text: &str) -> Option<Vec<usize>> {
    /// More cores than any kernel knows.
    const MOST: usize = 1 << 16;
    let mut cores = Vec::new();
    for part in text.split_terminator(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last >= MOST {
            return None;
        }
        cores.extend(first..=last);
    }
    Some(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_short_and_read_back() {
        for (cores, text) in [
            (vec![], ""),
            (vec![5], "5"),
            (vec![0, 1, 2, 5, 7, 8], "0-2,5,7-8"),
        ] {
            assert_eq!(write(&cores), text);
            assert_eq!(read(text), Some(cores));
        }
        for wrong in ["x", "1-", "-1", "1-999999999", "1,,2"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
