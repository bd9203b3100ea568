//! Where the scratch directories of rooms lie, and what becomes of those whose supervisor was killed.

use crate::render::brief;
use crate::room::remove_tree;
use crate::rundir::Supervisor;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How the names of all our scratch directories begin.
const PREFIX: &str = "proctor-";
/// How long the removal of one that was left behind may take.
const REMOVAL: Duration = Duration::from_secs(20);

/// The folder that holds them.
pub fn root() -> PathBuf {
    std::path::absolute(std::env::temp_dir()).unwrap_or_else(|_| PathBuf::from("/tmp"))
}

/// Tries to make a directory in that folder.
///
/// # Errors
/// It cannot be made; the text names the folder and where it is set.
pub fn usable() -> Result<(), String> {
    let root = root();
    let tried = tempfile::Builder::new().prefix(&prefix()).tempdir_in(&root);
    tried.map(drop).map_err(|error| {
        let set = if std::env::var_os("TMPDIR").is_some() {
            "TMPDIR "
        } else {
            ""
        };
        // The kind alone: the whole error would name the directory of the trial.
        format!(
            "{set}{}: no scratch directory can be made there: {}; set TMPDIR to a directory that exists and can be written",
            brief(&root.display().to_string()),
            error.kind()
        )
    })
}

/// How the name of a scratch directory of this supervisor begins: it says whose it is, so that it can be taken away when
/// that supervisor is gone, and nothing of the method.
pub fn prefix() -> String {
    format!("{PREFIX}{}-", Supervisor::this().mark())
}

/// Removes the scratch directories in `root` whose supervisor is gone. An ordinary user removes its own; the superuser
/// also those it gave to the users of workers. No link is followed. Gives what was
/// removed, and what was left with the reason.
pub fn sweep(root: &Path) -> Vec<(PathBuf, Result<(), String>)> {
    let Ok(entries) = std::fs::read_dir(root) else {
        return Vec::new();
    };
    let uid = nix::unistd::geteuid().as_raw();
    let mut swept: Vec<(PathBuf, Result<(), String>)> = entries
        .filter_map(Result::ok)
        .filter(|entry| {
            entry
                .file_name()
                .to_str()
                .and_then(owner)
                .is_some_and(|owner| owner.is_gone())
        })
        // Of the entry itself: a link is nobody's scratch directory.
        .filter(|entry| {
            entry
                .metadata()
                .is_ok_and(|found| found.is_dir() && (uid == 0 || found.uid() == uid))
        })
        .map(|entry| {
            let removed = remove_tree(&entry.path(), REMOVAL);
            (entry.path(), removed.map_err(|error| error.to_string()))
        })
        .collect();
    swept.sort();
    swept
}

/// Whose scratch directory a name is; `None` when it is none of ours.
fn owner(name: &str) -> Option<Supervisor> {
    Supervisor::of_mark(name.strip_prefix(PREFIX)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_dead_supervisor_of_ours_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: String| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.join("deep/er")).unwrap();
            path
        };
        let this = Supervisor::this();
        let mine = make(format!("{}0011", prefix()));
        // The number was used again by another process: ours, that started at another time.
        let dead = make(format!("proctor-{}-{}-1-0022", this.namespace, this.pid));
        let elsewhere = make(format!("proctor-1-{}-1-0033", this.pid));
        let other = make("proctor-notes".into());
        let target = make("precious".into());
        let link = folder
            .path()
            .join(format!("proctor-{}-{}-1-0044", this.namespace, this.pid));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        if nix::unistd::geteuid().is_root() {
            // The worker ran as another user.
            std::os::unix::fs::chown(&dead, Some(54_321), Some(54_321)).unwrap();
        }
        assert_eq!(sweep(folder.path()), [(dead.clone(), Ok(()))]);
        assert!(!dead.exists());
        for kept in [mine, elsewhere, other, target.join("deep/er"), link] {
            assert!(kept.exists(), "{}", kept.display());
        }
    }
}
