//! Controllers of the second version: handing them to the groups of rooms, and limiting one room by them.
//!
//! A group may hold processes or hand controllers to the groups below it, not both. So a supervisor that was started in
//! a delegated group first moves itself into a leaf below it. Machines differ in what is delegated to whom; the tests
//! therefore run on a tree of files that keeps the rules of the kernel, not on the machine's own tree, which for one may
//! have no controller at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What is done to a tree of control groups.
pub(super) trait Tree {
    /// The content of a file.
    fn read(&self, file: &Path) -> io::Result<String>;
    /// Writes a file that is there.
    fn write(&self, file: &Path, text: &str) -> io::Result<()>;
    /// Makes a group.
    fn make(&self, group: &Path) -> io::Result<()>;
}

/// The kernel's own tree.
pub(super) struct Cgroupfs;

impl Tree for Cgroupfs {
    fn read(&self, file: &Path) -> io::Result<String> {
        fs::read_to_string(file)
    }

    fn write(&self, file: &Path, text: &str) -> io::Result<()> {
        // Without making it: a file that is not there is a kernel without that limit.
        let mut file = fs::OpenOptions::new().write(true).open(file)?;
        io::Write::write_all(&mut file, text.as_bytes())
    }

    fn make(&self, group: &Path) -> io::Result<()> {
        match fs::create_dir(group) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> String + '_ {
    move |error| format!("{}: {error}", path.display())
}

fn has(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|other| other == word)
}

/// Makes a controller available to the groups below `parent`, in which this process, number `own`, may be. `leaf` is the
/// name of the group it moves into when it must.
///
/// # Errors
/// The controller is not there, or the group is not ours to change.
pub(super) fn hand_down(
    tree: &dyn Tree,
    parent: &Path,
    controller: &str,
    own: i32,
    leaf: &str,
) -> Result<(), String> {
    let below = parent.join("cgroup.subtree_control");
    if has(&tree.read(&below).map_err(at(&below))?, controller) {
        return Ok(());
    }
    let given = parent.join("cgroup.controllers");
    if !has(&tree.read(&given).map_err(at(&given))?, controller) {
        return Err(format!(
            "{} has no {controller} controller of the second version",
            parent.display()
        ));
    }
    let ask = || tree.write(&below, &format!("+{controller}"));
    match ask() {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
        asked => return asked.map_err(at(&below)),
    }
    let leaf = parent.join(leaf);
    tree.make(&leaf).map_err(at(&leaf))?;
    let members = leaf.join("cgroup.procs");
    tree.write(&members, &own.to_string())
        .map_err(at(&members))?;
    ask().map_err(|error| {
        let others = tree.read(&parent.join("cgroup.procs")).unwrap_or_default();
        let others: Vec<&str> = others.split_ascii_whitespace().take(5).collect();
        if others.is_empty() {
            return at(&below)(error);
        }
        format!(
            "{}: other processes are in that group too ({}), so it cannot hand down its {controller} controller; start \
             proctor in a scope of its own",
            parent.display(),
            others.join(", ")
        )
    })
}

/// Limits the memory of a group, swap left out. When the limit is passed, the whole group ends, so that no half of a
/// method goes on.
///
/// # Errors
/// The kernel refused.
pub(super) fn limit_memory(tree: &dyn Tree, group: &Path, bytes: u64) -> Result<(), String> {
    let set = |file: &str, text: &str| {
        let path = group.join(file);
        tree.write(&path, text).map_err(at(&path))
    };
    set("memory.max", &bytes.to_string())?;
    for (file, text) in [("memory.swap.max", "0"), ("memory.oom.group", "1")] {
        match tree.write(&group.join(file), text) {
            // Kernels that do not count swap, or are older than Linux 4.19, have no such file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other.map_err(at(&group.join(file)))?,
        }
    }
    Ok(())
}

/// Limits the processes and threads of a group.
///
/// # Errors
/// The kernel refused.
pub(super) fn limit_processes(tree: &dyn Tree, group: &Path, count: u32) -> Result<(), String> {
    let path: PathBuf = group.join("pids.max");
    tree.write(&path, &count.to_string()).map_err(at(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that keeps the rules of cgroupfs this module relies on: files appear with their group, a process is in one
    /// group, and a group with processes hands nothing down.
    struct Mimic {
        folder: tempfile::TempDir,
        /// Files of the memory controller that this kernel does not have.
        without: &'static [&'static str],
    }

    impl Mimic {
        fn new(controllers: &str, members: &str) -> Self {
            let mimic = Self {
                folder: tempfile::tempdir().unwrap(),
                without: &[],
            };
            mimic.files(&mimic.root(), controllers);
            fs::write(mimic.root().join("cgroup.procs"), members).unwrap();
            mimic
        }

        fn root(&self) -> PathBuf {
            self.folder.path().to_owned()
        }

        fn files(&self, group: &Path, controllers: &str) {
            let file = |name: &str, text: &str| fs::write(group.join(name), text).unwrap();
            file("cgroup.controllers", controllers);
            file("cgroup.subtree_control", "");
            file("cgroup.procs", "");
            if has(controllers, "memory") {
                for name in ["memory.max", "memory.swap.max", "memory.oom.group"] {
                    if !self.without.contains(&name) {
                        file(name, "max");
                    }
                }
            }
            if has(controllers, "pids") {
                file("pids.max", "max");
            }
        }
    }

    impl Tree for Mimic {
        fn read(&self, file: &Path) -> io::Result<String> {
            fs::read_to_string(file)
        }

        fn write(&self, file: &Path, text: &str) -> io::Result<()> {
            let group = file.parent().unwrap();
            let name = file.file_name().unwrap();
            let before = fs::read_to_string(file)?;
            if name == "cgroup.subtree_control" {
                if !fs::read_to_string(group.join("cgroup.procs"))?.is_empty() {
                    return Err(io::Error::from_raw_os_error(libc::EBUSY));
                }
                let word = text.strip_prefix('+').unwrap();
                return fs::write(file, format!("{before} {word}"));
            }
            if name == "cgroup.procs" {
                let old = self.root().join("cgroup.procs");
                let rest = fs::read_to_string(&old)?;
                let rest: Vec<&str> = rest.lines().filter(|line| *line != text).collect();
                fs::write(&old, rest.join("\n"))?;
            }
            fs::write(file, text)
        }

        fn make(&self, group: &Path) -> io::Result<()> {
            fs::create_dir(group)?;
            let given = fs::read_to_string(group.parent().unwrap().join("cgroup.subtree_control"))?;
            self.files(group, &given);
            Ok(())
        }
    }

    #[test]
    fn a_supervisor_alone_in_its_group_moves_into_a_leaf_and_hands_everything_down() {
        let tree = Mimic::new("cpu memory pids", "77");
        let root = tree.root();
        for controller in ["memory", "pids"] {
            hand_down(&tree, &root, controller, 77, "leaf").unwrap();
            // Twice is no error, and moves nobody again.
            hand_down(&tree, &root, controller, 77, "other").unwrap();
        }
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
        assert_eq!(read("cgroup.procs"), "");
        assert_eq!(read("leaf/cgroup.procs"), "77");
        assert_eq!(read("cgroup.subtree_control"), " memory pids");
        assert!(!root.join("other").exists());

        let group = root.join("room");
        tree.make(&group).unwrap();
        limit_memory(&tree, &group, 1 << 20).unwrap();
        limit_processes(&tree, &group, 9).unwrap();
        assert_eq!(read("room/memory.max"), "1048576");
        assert_eq!(read("room/memory.swap.max"), "0");
        assert_eq!(read("room/memory.oom.group"), "1");
        assert_eq!(read("room/pids.max"), "9");
    }

    #[test]
    fn others_in_the_group_are_named_and_left_where_they_are() {
        let tree = Mimic::new("memory", "77\n78");
        let error = hand_down(&tree, &tree.root(), "memory", 77, "leaf").unwrap_err();
        assert!(
            error.contains("other processes are in that group too (78)"),
            "{error}"
        );
        let members = fs::read_to_string(tree.root().join("cgroup.procs")).unwrap();
        assert_eq!(members, "78");
    }

    #[test]
    fn a_controller_that_is_not_there_is_named() {
        let tree = Mimic::new("hugetlb", "77");
        let error = hand_down(&tree, &tree.root(), "memory", 77, "leaf").unwrap_err();
        assert!(
            error.ends_with("has no memory controller of the second version"),
            "{error}"
        );
        assert!(!tree.root().join("leaf").exists());
        // A word is not found in another.
        assert!(hand_down(&tree, &tree.root(), "huge", 77, "leaf").is_err());
    }

    #[test]
    fn an_older_kernel_limits_what_it_can() {
        let mut tree = Mimic::new("memory", "");
        tree.without = &["memory.swap.max", "memory.oom.group"];
        let root = tree.root();
        hand_down(&tree, &root, "memory", 77, "leaf").unwrap();
        let group = root.join("room");
        tree.make(&group).unwrap();
        limit_memory(&tree, &group, 5).unwrap();
        assert_eq!(fs::read_to_string(group.join("memory.max")).unwrap(), "5");
        assert!(limit_processes(&tree, &group, 5).is_err());
    }
}
