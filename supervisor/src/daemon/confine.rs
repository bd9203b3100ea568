//! Paths given by clients stay below configured roots. They are resolved and compared first, which gives good messages.
//! Then the thread that reads them is held to the roots by the kernel (landlock, where there is one): what a path leads
//! to is decided when it is opened, and may have changed since it was resolved.

use crate::render::brief;
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, path_beneath_rules,
};
use std::path::{Path, PathBuf};

/// Where programs of the system lie, which every user may run.
const SYSTEM: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt"];
/// What this program itself reads while it checks a run.
const OURS: [&str; 9] = [
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/ld.so.cache",
    "/etc/localtime",
];

/// The folders that clients may name files in.
#[derive(Debug, Clone)]
pub struct Roots(Vec<PathBuf>);

/// What a thread that works for clients may read: see [`Roots::hold_this_thread`].
#[derive(Debug, Clone)]
pub struct Fence {
    roots: Roots,
    read: Vec<PathBuf>,
    list: Vec<PathBuf>,
}

impl Fence {
    /// Around the roots, a state directory, this program, and a worker.
    pub fn new(roots: &Roots, state: &Path, worker: Option<&Path>) -> Self {
        let named = std::env::var_os("PROCTOR_WORKER").map(PathBuf::from);
        let programs = std::env::current_exe().into_iter();
        let programs = programs.chain(named).chain(worker.map(Path::to_path_buf));
        // Where a link leads is where it is read.
        let programs = programs.filter_map(|program| program.canonicalize().ok());
        let folders = programs.filter_map(|program| program.parent().map(Path::to_path_buf));
        Self {
            roots: roots.clone(),
            read: std::iter::once(state.to_path_buf())
                .chain(folders)
                .collect(),
            list: vec![crate::run::scratch::root()],
        }
    }

    /// Holds the calling thread, and those it starts, within.
    ///
    /// # Errors
    /// The kernel refused. Where it has no landlock that is no error.
    pub fn hold_this_thread(&self) -> Result<(), String> {
        let held = self.roots.hold_this_thread(&self.read, &self.list);
        held.map(|_| ())
    }
}

/// Why a root or a path is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// A root cannot be used.
    #[error("--root {path}: {problem}")]
    Root {
        /// The root.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// A path leads out.
    #[error(
        "{field}: {path} is not below a root of this daemon ({roots}); move it there, or start the daemon with --root"
    )]
    Outside {
        /// Whose path it is.
        field: String,
        /// The path.
        path: String,
        /// The roots.
        roots: String,
    },
    /// A path cannot be resolved.
    #[error("{field}: {path}: {problem}")]
    Path {
        /// Whose path it is.
        field: String,
        /// The path.
        path: String,
        /// What is wrong.
        problem: String,
    },
}

fn shown(path: &Path) -> String {
    brief(&path.display().to_string())
}

impl Roots {
    /// These folders, which must exist.
    ///
    /// # Errors
    /// One does not.
    pub fn new(roots: &[PathBuf]) -> Result<Self, ConfineError> {
        let resolve = |root: &PathBuf| {
            let wrong = |problem: String| ConfineError::Root {
                path: shown(root),
                problem,
            };
            let path = root
                .canonicalize()
                .map_err(|error| wrong(error.to_string()))?;
            if path.is_dir() {
                Ok(path)
            } else {
                Err(wrong("is not a folder".into()))
            }
        };
        roots
            .iter()
            .map(resolve)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The resolved path, below a root.
    ///
    /// # Errors
    /// It is not absolute, does not exist, or leads elsewhere.
    pub fn check(&self, field: &str, path: &Path) -> Result<PathBuf, ConfineError> {
        let wrong = |problem: &str| ConfineError::Path {
            field: field.to_owned(),
            path: shown(path),
            problem: problem.to_owned(),
        };
        if !path.is_absolute() {
            return Err(wrong("must be an absolute path on the daemon's machine"));
        }
        // Whether something exists elsewhere is nobody's business: lexically outside is outside.
        let outside = || ConfineError::Outside {
            field: field.to_owned(),
            path: shown(path),
            roots: self.list(),
        };
        match path.canonicalize() {
            Ok(found) if self.holds(&found) => Ok(found),
            Err(error) if self.holds(path) => Err(wrong(&match error.kind() {
                std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
                _ => error.to_string(),
            })),
            Ok(_) | Err(_) => Err(outside()),
        }
    }

    /// As [`Roots::check`], also for programs of the system.
    ///
    /// # Errors
    /// As [`Roots::check`].
    pub fn check_program(&self, field: &str, path: &Path) -> Result<(), ConfineError> {
        let system = path
            .canonicalize()
            .is_ok_and(|found| SYSTEM.iter().any(|folder| found.starts_with(folder)));
        if system {
            return Ok(());
        }
        self.check(field, path).map(|_| ())
    }

    fn holds(&self, path: &Path) -> bool {
        let plain = path
            .components()
            .all(|part| part != std::path::Component::ParentDir);
        plain && self.0.iter().any(|root| path.starts_with(root))
    }

    /// The roots, for people.
    pub fn list(&self) -> String {
        let roots: Vec<String> = self.0.iter().map(|root| shown(root)).collect();
        roots.join(", ")
    }

    /// From here on the calling thread, and those it starts, can read only below the roots, below `read`, and what the
    /// system gives to everybody; what lies below `list` can be listed. False where the kernel has no landlock. A thread
    /// can be held a few times only, so it must be one that ends.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn hold_this_thread(&self, read: &[PathBuf], list: &[PathBuf]) -> Result<bool, String> {
        let reading: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::ReadDir;
        let fixed = SYSTEM.iter().chain(&OURS).map(PathBuf::from);
        let allowed: Vec<PathBuf> = fixed
            .chain(self.0.iter().cloned())
            .chain(read.iter().cloned())
            .collect();
        let held = || {
            Ruleset::default()
                .set_compatibility(CompatLevel::BestEffort)
                .handle_access(reading & AccessFs::from_all(ABI::V1))?
                .create()?
                .add_rules(path_beneath_rules(&allowed, reading))?
                .add_rules(path_beneath_rules(list, AccessFs::ReadDir))?
                .restrict_self()
        };
        match held() {
            Ok(status) => Ok(status.ruleset != RulesetStatus::NotEnforced),
            Err(error) => Err(format!("landlock: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn house() -> (tempfile::TempDir, Roots) {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("root/sub")).unwrap();
        std::fs::write(path("root/sub/file"), "in").unwrap();
        std::fs::write(path("secret"), "out").unwrap();
        std::fs::create_dir(path("root2")).unwrap();
        std::fs::write(path("root2/other"), "out").unwrap();
        std::os::unix::fs::symlink("../../secret", path("root/sub/link")).unwrap();
        std::os::unix::fs::symlink("sub/file", path("root/inner")).unwrap();
        let roots = Roots::new(&[path("root")]).unwrap();
        (folder, roots)
    }

    #[test]
    fn only_what_leads_below_a_root_is_taken() {
        let (folder, roots) = house();
        let check = |name: &str| roots.check("protocol", &folder.path().join(name));
        let inside = folder.path().join("root/sub/file").canonicalize().unwrap();
        for good in ["root/sub/file", "root/inner", "root/sub/../sub/file"] {
            assert_eq!(check(good).unwrap(), inside, "{good}");
        }
        for bad in [
            "secret",
            "root/sub/link",
            "root/../secret",
            "root2",
            "nothing",
            "root/../nothing",
        ] {
            let text = check(bad).unwrap_err().to_string();
            assert!(text.contains("is not below a root"), "{text}");
        }
        let text = check("root/nothing").unwrap_err().to_string();
        assert!(text.contains("there is no such file"), "{text}");
        let text = roots.check("methods", Path::new("a/b")).unwrap_err();
        assert!(
            text.to_string()
                .starts_with("methods: a/b: must be an absolute")
        );
        roots.check_program("m", Path::new("/bin/sh")).unwrap();
        assert!(
            roots
                .check_program("m", &folder.path().join("secret"))
                .is_err()
        );
        assert!(Roots::new(&[folder.path().join("nothing")]).is_err());
    }

    #[test]
    fn the_kernel_holds_the_thread_to_the_roots() {
        let (folder, roots) = house();
        let path = |name: &str| folder.path().join(name);
        std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    if !roots.hold_this_thread(&[], &[path("root2")]).unwrap() {
                        crate::render::output::tell(
                            "skipped: the thread is not held: this kernel has no landlock",
                        );
                        return;
                    }
                    let read = |name: &str| std::fs::read_to_string(path(name));
                    assert_eq!(read("root/inner").unwrap(), "in");
                    for bad in ["secret", "root/sub/link", "root/../secret"] {
                        let error = read(bad).unwrap_err();
                        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
                    }
                    assert!(std::fs::read_dir(path("root2")).is_ok());
                    assert!(std::fs::read(path("root2/other")).is_err());
                    assert!(std::fs::read_dir(folder.path()).is_err());
                    // Writing is not what this is about.
                    std::fs::write(path("new"), "").unwrap();
                })
                .join()
                .unwrap();
        });
        assert_eq!(std::fs::read_to_string(path("secret")).unwrap(), "out");
    }
}
