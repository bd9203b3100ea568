//! The system calls on mount trees and on landlock rules that no library offers in this form.
#![allow(
    unsafe_code,
    reason = "system calls with structures of the kernel's own"
)]

use std::ffi::{CStr, c_int};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::sys::check_long;

/// How much of a mount tree is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TreeCopy {
    /// The mount at the path only.
    Top,
    /// What is mounted below it too.
    Whole,
}

/// A copy of what is mounted at a path, not yet mounted anywhere.
pub(super) fn copy_tree(path: &CStr, copy: TreeCopy) -> io::Result<OwnedFd> {
    const OPEN_TREE_CLONE: c_int = 1;
    let mut flags = OPEN_TREE_CLONE | libc::O_CLOEXEC;
    if copy == TreeCopy::Whole {
        flags |= libc::AT_RECURSIVE;
    }
    // SAFETY: the path is a C string.
    let fd = check_long(unsafe {
        libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags)
    })?;
    // SAFETY: the kernel just gave us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Mounts a copy at a path.
pub(super) fn place_tree(copy: BorrowedFd<'_>, path: &CStr) -> io::Result<()> {
    const F_EMPTY_PATH: c_int = 4;
    // SAFETY: both paths are C strings.
    check_long(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            copy.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_FDCWD,
            path.as_ptr(),
            F_EMPTY_PATH,
        )
    })
    .map(drop)
}

/// `struct mount_attr` of the kernel.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Makes a mount read-only and private to this mount namespace, with all below it when asked.
pub(super) fn change_mounts(
    mount: Option<BorrowedFd<'_>>,
    path: &CStr,
    below: bool,
) -> io::Result<()> {
    const READ_ONLY: u64 = 1;
    let attributes = MountAttributes {
        set: READ_ONLY,
        clear: 0,
        propagation: libc::MS_PRIVATE,
        user_namespace: 0,
    };
    let mut flags = libc::AT_EMPTY_PATH;
    if below {
        flags |= libc::AT_RECURSIVE;
    }
    let directory = mount.map_or(libc::AT_FDCWD, |mount| mount.as_raw_fd());
    // SAFETY: the path is a C string, and the structure has the size that is told.
    check_long(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            directory,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    })
    .map(drop)
}

/// Adds to landlock rules that every file below a directory may be read and written, as far as it is the worker's.
pub(super) fn allow_using(ruleset: RawFd, directory: BorrowedFd<'_>) -> io::Result<()> {
    const PATH_BENEATH: c_int = 1;
    const TRUNCATE: u64 = 1 << 14;
    const WRITE_FILE: u64 = 1 << 1;
    const READ_FILE: u64 = 1 << 2;
    const READ_DIRECTORY: u64 = 1 << 3;
    #[repr(C, packed)]
    struct Rule {
        access: u64,
        directory: c_int,
    }
    let rule = Rule {
        access: WRITE_FILE | READ_FILE | READ_DIRECTORY | TRUNCATE,
        directory: directory.as_raw_fd(),
    };
    // SAFETY: the rule is laid out as the kernel has it.
    let added = check_long(unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset,
            PATH_BENEATH,
            &raw const rule,
            0,
        )
    });
    match added {
        // Rules about TCP alone forbid no files, and take none.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        added => added.map(drop),
    }
}
