//! What a worker sees of the file system, as a plan of mounts for the stage.
//!
//! Everything is read-only. Temporary directories and the scratch directory lie on one tmpfs of the room, so that one
//! size bounds them all. What is hidden is covered by an empty directory. What must be seen in spite of a cover is shown
//! through it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Directories that become private and can be written.
const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// Directories that become empty: sockets of the host's services, other people's terminals.
const EMPTY: [&str; 2] = ["/run", "/dev/pts"];

/// The plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct View {
    /// Size of the tmpfs in bytes; `None` for what the kernel takes by itself.
    pub(super) size: Option<u64>,
    /// The mounts, in the order they are made.
    pub(super) mounts: Vec<Mount>,
}

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) target: PathBuf,
    pub(super) what: What,
    /// True for a directory, false for a file.
    pub(super) directory: bool,
    /// The earlier mount in which the target must be made first, and its path there.
    pub(super) inside: Option<(usize, PathBuf)>,
}

/// What is mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// An empty file or directory that cannot be written.
    Empty,
    /// A directory that anybody in the room can write.
    Private,
    /// The scratch directory.
    Scratch,
    /// What lies there on the host.
    Show,
}

impl What {
    /// The letter in an order.
    pub(super) fn letter(self) -> &'static str {
        match self {
            Self::Empty => "e",
            Self::Private => "p",
            Self::Scratch => "s",
            Self::Show => "v",
        }
    }

    /// Reads a letter.
    pub(super) fn from_letter(letter: &[u8]) -> Option<Self> {
        [Self::Empty, Self::Private, Self::Scratch, Self::Show]
            .into_iter()
            .find(|what| what.letter().as_bytes() == letter)
    }
}

/// What the plan must know of the host.
pub(super) trait Host {
    /// `Some(true)` for a directory, `Some(false)` for anything else, links followed.
    fn directory(&self, path: &Path) -> Option<bool>;
    /// Where the path really leads.
    fn real(&self, path: &Path) -> Option<PathBuf>;
    /// True when the worker's user can go through this directory.
    fn passable(&self, path: &Path) -> bool;
}

/// The host itself, for a worker of this user; `None` for our own.
pub(super) struct ThisHost {
    pub(super) user: Option<u32>,
}

impl Host for ThisHost {
    fn directory(&self, path: &Path) -> Option<bool> {
        fs::metadata(path).ok().map(|found| found.is_dir())
    }

    fn real(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok()
    }

    fn passable(&self, path: &Path) -> bool {
        // A user of the room's own owns nothing and is in no group.
        self.user.is_none() || fs::metadata(path).is_ok_and(|found| found.mode() & 0o001 != 0)
    }
}

/// Makes the plan. All paths are absolute; `scratch` exists.
pub(super) fn plan(
    host: &dyn Host,
    scratch: &Path,
    size: Option<u64>,
    hidden: &[PathBuf],
    visible: &[PathBuf],
) -> View {
    // Ordered so that what lies above comes first.
    let mut wanted: BTreeMap<PathBuf, What> = BTreeMap::new();
    for path in PRIVATE {
        wanted.insert(path.into(), What::Private);
    }
    for path in EMPTY {
        wanted.insert(path.into(), What::Empty);
    }
    let mut shown: Vec<PathBuf> = Vec::new();
    for path in visible {
        shown.extend(host.real(path).filter(|real| real != path));
        shown.push(path.clone());
    }
    for path in shown.iter().map(PathBuf::as_path).chain([scratch]) {
        let shut = path
            .ancestors()
            .skip(1)
            .filter(|above| above.parent().is_some() && !host.passable(above));
        for above in shut {
            wanted.entry(above.to_owned()).or_insert(What::Empty);
        }
    }
    for path in shown {
        wanted.entry(path).or_insert(What::Show);
    }
    for path in hidden {
        if let Some(real) = host.real(path) {
            wanted.insert(real, What::Empty);
        }
    }
    wanted.insert(scratch.to_owned(), What::Scratch);
    let mut mounts: Vec<Mount> = Vec::new();
    for (target, what) in wanted {
        let Some(directory) = host.directory(&target) else {
            continue;
        };
        let above = mounts
            .iter()
            .enumerate()
            .rev()
            .find(|(_, mount)| target.starts_with(&mount.target));
        let covered = above.filter(|(_, mount)| mount.what != What::Show);
        match what {
            What::Empty if covered.is_some() => continue,
            What::Show if covered.is_none() => continue,
            _ => {}
        }
        let inside = covered.and_then(|(place, mount)| {
            let rest = target.strip_prefix(&mount.target).ok()?;
            Some((place, rest.to_owned()))
        });
        // An entry of the scratch directory's own cannot be covered: it is empty at first.
        if covered.is_some_and(|(_, mount)| mount.what == What::Scratch) {
            continue;
        }
        mounts.push(Mount {
            target,
            what,
            directory,
            inside,
        });
    }
    View { size, mounts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Directories end with a slash.
    struct Tree {
        entries: HashMap<PathBuf, bool>,
        shut: Vec<PathBuf>,
    }

    impl Tree {
        fn new(entries: &[&str], shut: &[&str]) -> Self {
            let mut all = HashMap::new();
            for entry in entries {
                let path = Path::new(entry);
                all.insert(path.to_owned(), entry.ends_with('/'));
                for above in path.ancestors().skip(1) {
                    all.insert(above.to_owned(), true);
                }
            }
            Self {
                entries: all,
                shut: shut.iter().map(PathBuf::from).collect(),
            }
        }
    }

    impl Host for Tree {
        fn directory(&self, path: &Path) -> Option<bool> {
            self.entries.get(path).copied()
        }

        fn real(&self, path: &Path) -> Option<PathBuf> {
            self.entries.contains_key(path).then(|| path.to_owned())
        }

        fn passable(&self, path: &Path) -> bool {
            !self.shut.iter().any(|shut| shut == path)
        }
    }

    fn lines(view: &View) -> Vec<String> {
        view.mounts
            .iter()
            .map(|mount| {
                let inside = mount
                    .inside
                    .as_ref()
                    .map(|(place, path)| format!(" in {place}: {}", path.display()));
                format!(
                    "{} {}{}",
                    mount.what.letter(),
                    mount.target.display(),
                    inside.unwrap_or_default()
                )
            })
            .collect()
    }

    #[test]
    fn what_must_be_seen_shows_through_covers_and_what_is_hidden_stays_hidden() {
        let tree = Tree::new(
            &[
                "/tmp/x/scratch/",
                "/tmp/x/method.py",
                "/usr/bin/python",
                "/data/gold/",
                "/data/run/a/own.py",
                "/data/run/a/key",
                "/root/env/bin/python",
                "/root/env/secret",
            ],
            &["/root", "/tmp/x"],
        );
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
        let view = plan(
            &tree,
            Path::new("/tmp/x/scratch"),
            Some(9),
            &paths(&["/data/gold", "/data/run", "/root/env/secret", "/nowhere"]),
            &paths(&[
                "/tmp/x/method.py",
                "/usr/bin/python",
                "/data/run/a/own.py",
                "/root/env",
            ]),
        );
        assert_eq!(view.size, Some(9));
        assert_eq!(
            lines(&view),
            [
                "e /data/gold",
                "e /data/run",
                "v /data/run/a/own.py in 1: a/own.py",
                "e /root",
                "v /root/env in 3: env",
                "e /root/env/secret",
                "p /tmp",
                "v /tmp/x/method.py in 6: x/method.py",
                "s /tmp/x/scratch in 6: x/scratch",
            ]
        );
        assert!(!view.mounts[2].directory);
    }
}
