//! Base names of bundles: what `--basename` may be, and the stem of file names it becomes.

use super::{BUNDLE_FILE, INVENTORY_FILE};
use crate::error::Error;
use crate::render::brief;
use proctor_protocol::bundle::{Artifact, stem};

/// The longest file name of every file system in use, in bytes.
const MAX_FILE_NAME: usize = 255;

/// The stem of the file names for a base name.
///
/// # Errors
/// No file names can be made of it, or they would be taken.
pub fn file_stem(basename: &str) -> Result<String, Error> {
    let refuse = |problem: &str| {
        let name = brief(basename);
        Err(Error::input(format!("--basename {name:?}: {problem}")))
    };
    if basename.trim_matches(['.', '_', ' ']).is_empty() {
        return refuse("leaves nothing for a file name; use letters and digits");
    }
    let stem = stem(basename);
    let names = Artifact::ALL.map(|artifact| artifact.file_name(&stem));
    if names.iter().any(|name| name.len() > MAX_FILE_NAME) {
        return refuse("is too long for a file name; 200 bytes are always enough");
    }
    let taken =
        |name: &String| [BUNDLE_FILE, INVENTORY_FILE].contains(&name.to_lowercase().as_str());
    if names.iter().any(taken) {
        return refuse("is the name of a file that every bundle has; choose another");
    }
    Ok(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_give_no_file_names_of_their_own_are_refused() {
        assert_eq!(file_stem("leaderboard").unwrap(), "leaderboard");
        assert_eq!(file_stem("a b/c").unwrap(), "a_b_c");
        for bad in [
            "",
            ".",
            "..",
            "  ",
            "_",
            "inventory",
            "bundle",
            "Bundle",
            ".bundle_",
        ] {
            assert!(matches!(file_stem(bad), Err(Error::Input(_))), "{bad}");
        }
        let fits = MAX_FILE_NAME - "_reproducibility.json".len();
        assert!(file_stem(&"x".repeat(fits)).is_ok());
        let text = file_stem(&"x".repeat(fits + 1)).unwrap_err().to_string();
        assert!(text.contains("too long") && text.len() < 400, "{text}");
    }
}
