//! What is on the disk and what is only in the memory of the system. A power cut takes away everything that was not
//! asked to be on the disk: content since the last fsync of its file, names since the last fsync of their directory. Which
//! of it a real file system keeps all the same is chance, so every kind of remains is tried.

use super::Op;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

/// What a power cut leaves of the things that were not on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remains {
    /// Nothing: no name, no content.
    Nothing,
    /// Every name, and of the content nothing.
    NamesOnly,
    /// Every name, and zeros in the place of content.
    NamesWithZeros,
    /// Every name, and half of the content.
    NamesWithHalf,
    /// Every content, of the names none.
    ContentOnly,
    /// Everything: the process died and the machine went on.
    Everything,
    /// One name of those that were not, the one of this number, with its whole content.
    OneName(usize),
    /// All names but the one of this number, with zeros for content.
    AllButOneName(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    File(usize),
    Dir(usize),
    Link(PathBuf),
}

#[derive(Debug, Default)]
struct File {
    now: Vec<u8>,
    durable: Vec<u8>,
}

type Names = BTreeMap<OsString, Node>;

#[derive(Debug, Default)]
struct Dir {
    now: Names,
    durable: Names,
}

#[derive(Debug)]
pub(super) struct Model {
    root: PathBuf,
    files: Vec<File>,
    /// The first is the watched folder itself.
    dirs: Vec<Dir>,
}

impl Model {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
            files: Vec::new(),
            dirs: vec![Dir::default()],
        }
    }

    /// The directory and the last component of a path.
    fn place<'p>(&self, path: &'p Path) -> Option<(usize, &'p OsStr)> {
        let inner = path.strip_prefix(&self.root).ok()?;
        let name = inner.file_name()?;
        let mut at = 0;
        for part in inner.parent()? {
            match self.dirs[at].now.get(part)? {
                Node::Dir(dir) => at = *dir,
                _ => return None,
            }
        }
        Some((at, name))
    }

    fn node(&self, path: &Path) -> Option<Node> {
        if path == self.root {
            return Some(Node::Dir(0));
        }
        let (dir, name) = self.place(path)?;
        self.dirs[dir].now.get(name).cloned()
    }

    /// The number of the file that a path leads to.
    pub(super) fn file(&self, path: &Path) -> Option<usize> {
        match self.node(path)? {
            Node::File(file) => Some(file),
            _ => None,
        }
    }

    fn enter(&mut self, path: &Path, node: Node) {
        let (dir, name) = self.place(path).expect("its folder is known");
        self.dirs[dir].now.insert(name.to_owned(), node);
    }

    fn leave(&mut self, path: &Path) -> Option<Node> {
        let (dir, name) = self.place(path)?;
        self.dirs[dir].now.remove(name)
    }

    pub(super) fn did(&mut self, op: &Op<'_>) {
        match *op {
            Op::Create(path) => {
                self.files.push(File::default());
                self.enter(path, Node::File(self.files.len() - 1));
            }
            Op::Mkdir(path) => {
                self.dirs.push(Dir::default());
                self.enter(path, Node::Dir(self.dirs.len() - 1));
            }
            Op::Symlink(target, path) => self.enter(path, Node::Link(target.to_path_buf())),
            Op::Unlink(path) => {
                self.leave(path);
            }
            Op::Rename(from, to) => {
                let node = self.leave(from).expect("what is renamed is known");
                self.enter(to, node);
            }
            Op::Write(handle, bytes) => {
                if let Some((_, file)) = handle.file {
                    self.files[file].now.extend_from_slice(bytes);
                }
            }
            Op::Cut(handle, length) => {
                if let Some((_, file)) = handle.file {
                    self.files[file].now.truncate(length as usize);
                }
            }
            Op::Sync(handle) => {
                if let Some((_, file)) = handle.file {
                    self.sync_file(file);
                }
            }
            Op::SyncPath(path) => match self.node(path) {
                Some(Node::File(file)) => self.sync_file(file),
                Some(Node::Dir(dir)) => self.dirs[dir].durable = self.dirs[dir].now.clone(),
                _ => {}
            },
            Op::Open(_) | Op::Read(_) => {}
        }
    }

    fn sync_file(&mut self, file: usize) {
        self.files[file].durable = self.files[file].now.clone();
    }

    /// Names that a power cut may or may not leave: made, changed or removed since their directory was synced.
    fn loose(&self) -> Vec<(usize, OsString)> {
        let mut loose = Vec::new();
        for (at, dir) in self.dirs.iter().enumerate() {
            let names: BTreeSet<&OsString> = dir.now.keys().chain(dir.durable.keys()).collect();
            let changed = |name: &&OsString| dir.now.get(*name) != dir.durable.get(*name);
            loose.extend(
                names
                    .into_iter()
                    .filter(changed)
                    .map(|name| (at, name.clone())),
            );
        }
        loose
    }

    pub(super) fn loose_names(&self) -> usize {
        self.loose().len()
    }

    pub(super) fn lay(&self, remains: Remains, folder: &Path) {
        let loose = self.loose();
        let names = |at: usize| -> Names {
            let dir = &self.dirs[at];
            let mut names = match remains {
                Remains::Nothing | Remains::ContentOnly | Remains::OneName(_) => {
                    dir.durable.clone()
                }
                _ => dir.now.clone(),
            };
            if let Remains::OneName(number) | Remains::AllButOneName(number) = remains
                && let Some((of, name)) = loose.get(number)
                && *of == at
            {
                let from = match remains {
                    Remains::OneName(_) => &dir.now,
                    _ => &dir.durable,
                };
                names.remove(name);
                names.extend(from.get(name).map(|node| (name.clone(), node.clone())));
            }
            names
        };
        let content = |file: &File| -> Vec<u8> {
            match remains {
                Remains::Nothing | Remains::NamesOnly => file.durable.clone(),
                Remains::NamesWithZeros | Remains::AllButOneName(_) => {
                    let common = common(&file.durable, &file.now);
                    let mut bytes = file.now[..common].to_vec();
                    bytes.resize(file.now.len(), 0);
                    bytes
                }
                Remains::NamesWithHalf => {
                    let common = common(&file.durable, &file.now);
                    file.now[..common + (file.now.len() - common) / 2].to_vec()
                }
                Remains::ContentOnly | Remains::Everything | Remains::OneName(_) => {
                    file.now.clone()
                }
            }
        };
        self.lay_dir(0, folder, &names, &content);
    }

    fn lay_dir(
        &self,
        at: usize,
        folder: &Path,
        names: &dyn Fn(usize) -> Names,
        content: &dyn Fn(&File) -> Vec<u8>,
    ) {
        for (name, node) in names(at) {
            let path = folder.join(name);
            match node {
                Node::File(file) => fs::write(path, content(&self.files[file])).unwrap(),
                Node::Link(target) => std::os::unix::fs::symlink(target, path).unwrap(),
                Node::Dir(dir) => {
                    fs::create_dir(&path).unwrap();
                    self.lay_dir(dir, &path, names, content);
                }
            }
        }
    }
}

fn common(one: &[u8], two: &[u8]) -> usize {
    one.iter().zip(two).take_while(|(a, b)| a == b).count()
}
