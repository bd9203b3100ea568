//! Making the view of the file system that the supervisor planned. Every step says what it was about when it fails.

use std::ffi::CString;
use std::fmt::Display;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sys::stat::{Mode, umask};
use nix::unistd::geteuid;

use super::super::trees::{self, TreeCopy};
use super::super::view::{View, What};

/// Cuts the mounts off from the host's, and makes them read-only for a room with a view.
pub(super) fn make_private(read_only: bool) -> Result<(), String> {
    if read_only {
        return trees::change_mounts(None, c"/", true).map_err(say("making every mount read-only"));
    }
    let none: Option<&str> = None;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(none, "/", none, private, none)
        .map_err(|error| format!("making the mounts private: {error}"))
}

fn say(what: impl Display) -> impl Fn(io::Error) -> String {
    move |error| format!("{what}: {error}")
}

/// A /proc that shows the room and nothing else. A worker that is root, even without any capability, could write the
/// kernel's settings there, so for it everything in it is read-only.
pub(super) fn private_proc(user: Option<u32>) -> Result<(), String> {
    let none: Option<&str> = None;
    let mut flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    if user.is_none() && geteuid().is_root() {
        flags |= MsFlags::MS_RDONLY;
    }
    mount(Some("proc"), "/proc", Some("proc"), flags, none)
        .map_err(|error| format!("mounting /proc: {error}"))
}

/// Makes the view.
pub(super) fn apply(view: &View, scratch: &Path, user: Option<u32>) -> Result<(), String> {
    umask(Mode::from_bits_truncate(0o022));
    // Taken before anything is covered.
    let mut copies: Vec<Option<OwnedFd>> = Vec::new();
    for mount in &view.mounts {
        copies.push(if mount.what == What::Show {
            let copy = trees::copy_tree(&c_path(&mount.target)?, TreeCopy::Whole);
            Some(copy.map_err(say(format!("showing {}", mount.target.display())))?)
        } else {
            None
        });
    }
    let options = view.size.map_or("mode=755".to_owned(), |size| {
        format!("mode=755,size={size}")
    });
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(
        Some("proctor"),
        scratch,
        Some("tmpfs"),
        flags,
        Some(options.as_str()),
    )
    .map_err(|error| format!("mounting the scratch tmpfs: {error}"))?;
    std::env::set_current_dir(scratch).map_err(say("entering the scratch tmpfs"))?;
    for (place, mount) in view.mounts.iter().enumerate() {
        let target = mount.target.display();
        if mount.what != What::Show {
            make(&name(place), mount.directory).map_err(say(format!("a cover for {target}")))?;
        }
        match mount.what {
            What::Private => allow(&name(place), 0o1777, None),
            What::Scratch => allow(&name(place), 0o700, user),
            What::Empty if !mount.directory => allow(&name(place), 0, None),
            _ => Ok(()),
        }
        .map_err(say(format!("rights of {target}")))?;
        if let Some((cover, path)) = &mount.inside {
            make(&name(*cover).join(path), mount.directory)
                .map_err(say(format!("a place for {target}")))?;
        }
    }
    for (place, (mount, copy)) in view.mounts.iter().zip(copies).enumerate() {
        let step = |what: &str| say(format!("{what} {}", mount.target.display()));
        let copy = match copy {
            Some(copy) => copy,
            None => trees::copy_tree(&c_path(&name(place))?, TreeCopy::Top)
                .map_err(step("a mount for"))?,
        };
        if mount.what == What::Empty {
            trees::change_mounts(Some(copy.as_fd()), c"", false).map_err(step("shutting"))?;
        }
        trees::place_tree(copy.as_fd(), &c_path(&mount.target)?).map_err(step("mounting on"))?;
    }
    Ok(())
}

/// The name of a mount's source within the tmpfs.
fn name(place: usize) -> PathBuf {
    PathBuf::from(place.to_string())
}

/// Makes a directory or an empty file, and what lies above it.
fn make(path: &Path, directory: bool) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o755);
    if directory {
        return builder.create(path);
    }
    if let Some(above) = path.parent() {
        builder.create(above)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o444);
    options.open(path).map(drop)
}

fn allow(path: &Path, mode: u32, user: Option<u32>) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    match user {
        Some(user) => chown(path, Some(user), Some(user)),
        None => Ok(()),
    }
}

fn c_path(path: &Path) -> Result<CString, String> {
    CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())
}
