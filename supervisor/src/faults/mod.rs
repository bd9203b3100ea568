//! Tests stand in the door to the file system: every operation below a watched folder is numbered, and one of them can
//! fail, be cut short, or be the one before which the process dies. What a power cut would leave is kept beside it.

#![allow(clippy::print_stdout, reason = "a sweep says how many cases it had")]

mod drive;
mod model;
mod readers;
mod sweep;

use model::{Model, Remains};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// One operation in the door.
pub(crate) enum Op<'a> {
    Create(&'a Path),
    Write(&'a Handle, &'a [u8]),
    Cut(&'a Handle, u64),
    Sync(&'a Handle),
    SyncPath(&'a Path),
    Mkdir(&'a Path),
    Rename(&'a Path, &'a Path),
    Symlink(&'a Path, &'a Path),
    Unlink(&'a Path),
    Open(&'a Path),
    Read(&'a Handle),
}

impl Op<'_> {
    fn path(&self) -> &Path {
        match self {
            Self::Create(path)
            | Self::SyncPath(path)
            | Self::Mkdir(path)
            | Self::Rename(_, path)
            | Self::Symlink(_, path)
            | Self::Unlink(path)
            | Self::Open(path) => path,
            Self::Write(handle, _)
            | Self::Cut(handle, _)
            | Self::Sync(handle)
            | Self::Read(handle) => &handle.path,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Create(_) => Kind::Create,
            Self::Write(..) => Kind::Write,
            Self::Cut(..) => Kind::Cut,
            Self::Sync(_) | Self::SyncPath(_) => Kind::Sync,
            Self::Mkdir(_) => Kind::Mkdir,
            Self::Rename(..) => Kind::Rename,
            Self::Symlink(..) => Kind::Symlink,
            Self::Unlink(_) => Kind::Unlink,
            Self::Open(_) | Self::Read(_) => Kind::Read,
        }
    }
}

/// What an operation does, as far as faults differ by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Create,
    Write,
    Cut,
    Sync,
    Mkdir,
    Rename,
    Symlink,
    Unlink,
    Read,
}

impl Kind {
    /// Whether it needs space.
    fn takes_space(self) -> bool {
        matches!(
            self,
            Self::Create | Self::Write | Self::Mkdir | Self::Rename | Self::Symlink
        )
    }

    /// Whether it changes or promises anything.
    fn acts(self) -> bool {
        self != Self::Read
    }
}

/// An open file, as the watched folder knows it.
#[derive(Debug)]
pub(crate) struct Handle {
    path: PathBuf,
    file: Option<(Weak<Watch>, usize)>,
}

impl Handle {
    pub(crate) fn of(path: &Path) -> Self {
        let file = watch_of(path).and_then(|watch| {
            let file = watch.state().model.as_ref()?.file(path)?;
            Some((Arc::downgrade(&watch), file))
        });
        Self {
            path: path.to_path_buf(),
            file,
        }
    }
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// This operation fails, once.
    Fails(i32),
    /// Every operation of this kind of need fails from here on.
    FullFromHere,
    /// Nothing can be changed from here on.
    ReadOnlyFromHere,
    /// A signal comes between, three times.
    Interrupted,
    /// Half of the bytes are written, and then the rest by another call.
    Short,
    /// Half of the bytes are written, and the disk is full then.
    ShortAndFull,
    /// The process dies before the operation.
    Dies,
    /// The process dies with half of the bytes written.
    DiesWithin,
}

/// A folder whose operations are watched.
#[derive(Debug)]
pub(crate) struct Watch {
    root: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Of a folder that was empty when it began to be watched.
    model: Option<Model>,
    seen: Vec<(Kind, PathBuf)>,
    fault: Option<(usize, Fault)>,
    interruptions: u8,
    dead: bool,
}

static WATCHES: Mutex<Vec<Weak<Watch>>> = Mutex::new(Vec::new());

fn watch_of(path: &Path) -> Option<Arc<Watch>> {
    let watches = WATCHES.lock().unwrap_or_else(PoisonError::into_inner);
    watches
        .iter()
        .filter_map(Weak::upgrade)
        .find(|watch| path.starts_with(&watch.root))
}

impl Watch {
    /// Watches an empty folder. `fault` strikes at the operation of that number.
    pub(crate) fn new(root: &Path, fault: Option<(usize, Fault)>) -> Arc<Self> {
        Self::with(root, fault, Some(Model::new(root)))
    }

    /// Watches a folder that holds something; what a power cut would leave of it is not known.
    pub(crate) fn of_old(root: &Path, fault: Option<(usize, Fault)>) -> Arc<Self> {
        Self::with(root, fault, None)
    }

    fn with(root: &Path, fault: Option<(usize, Fault)>, model: Option<Model>) -> Arc<Self> {
        let watch = Arc::new(Self {
            root: root.to_path_buf(),
            state: Mutex::new(State {
                model,
                seen: Vec::new(),
                fault,
                interruptions: 0,
                dead: false,
            }),
        });
        let mut watches = WATCHES.lock().unwrap_or_else(PoisonError::into_inner);
        watches.retain(|watch| watch.strong_count() > 0);
        watches.push(Arc::downgrade(&watch));
        watch
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The operations so far.
    pub(crate) fn seen(&self) -> Vec<(Kind, PathBuf)> {
        self.state().seen.clone()
    }

    /// Another process takes over where the dead one was, and meets this fault after so many operations.
    pub(crate) fn take_over(&self, fault: Option<(usize, Fault)>) {
        let mut state = self.state();
        let seen = state.seen.len();
        state.dead = false;
        state.fault = fault.map(|(at, fault)| (seen + at, fault));
    }

    /// True when the process died.
    pub(crate) fn is_dead(&self) -> bool {
        self.state().dead
    }

    /// Lays down in an empty folder what a power cut would leave now.
    pub(crate) fn after_power_cut(&self, remains: Remains, folder: &Path) {
        let state = self.state();
        let model = state.model.as_ref().expect("the folder was empty");
        model.lay(remains, folder);
    }

    /// How many names are not on the disk yet.
    pub(crate) fn loose_names(&self) -> usize {
        let state = self.state();
        state.model.as_ref().map_or(0, Model::loose_names)
    }
}

/// What every operation of a dead process says.
fn dead() -> io::Error {
    io::Error::other("the process is dead")
}

/// What stops an operation, if anything does.
pub(crate) fn before(op: &Op<'_>) -> Option<io::Error> {
    let watch = watch_of(op.path())?;
    let mut state = watch.state();
    if state.dead {
        return Some(dead());
    }
    let (at, kind) = (state.seen.len(), op.kind());
    let struck = match state.fault {
        Some((when, Fault::FullFromHere)) if at >= when && kind.takes_space() => {
            Some(io::Error::from_raw_os_error(libc::ENOSPC))
        }
        Some((when, Fault::ReadOnlyFromHere))
            if at >= when && kind.acts() && kind != Kind::Sync =>
        {
            Some(io::Error::from_raw_os_error(libc::EROFS))
        }
        Some((when, fault)) if at == when => match fault {
            Fault::Fails(errno) => Some(io::Error::from_raw_os_error(errno)),
            Fault::Interrupted if state.interruptions < 3 => {
                state.interruptions += 1;
                return Some(ErrorKind::Interrupted.into());
            }
            Fault::Dies => {
                state.dead = true;
                return Some(dead());
            }
            _ => None,
        },
        Some((when, Fault::ShortAndFull)) if at == when + 1 => {
            Some(io::Error::from_raw_os_error(libc::ENOSPC))
        }
        Some((when, Fault::DiesWithin)) if at == when + 1 => {
            state.dead = true;
            return Some(dead());
        }
        _ => None,
    };
    state.seen.push((kind, op.path().to_path_buf()));
    struck
}

/// The bytes that one call takes: half of them when that is the fault.
pub(crate) fn shortened<'a>(handle: &Handle, bytes: &'a [u8]) -> &'a [u8] {
    let short = watch_of(&handle.path).is_some_and(|watch| {
        let state = watch.state();
        matches!(
            state.fault,
            Some((when, Fault::Short | Fault::ShortAndFull | Fault::DiesWithin)) if when == state.seen.len()
        )
    });
    if short && bytes.len() > 1 {
        &bytes[..bytes.len() / 2]
    } else {
        bytes
    }
}

/// Takes note of an operation that was done.
pub(crate) fn after(op: &Op<'_>) {
    if let Some(watch) = watch_of(op.path())
        && let Some(model) = &mut watch.state().model
    {
        model.did(op);
    }
}
