//! How much of a file is in the page cache.
#![allow(
    unsafe_code,
    reason = "cachestat and mincore, which no library we use gives"
)]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::ptr;

use nix::errno::Errno;
use nix::sys::statfs::{FsType, OVERLAYFS_SUPER_MAGIC, fstatfs};

use super::sys::check_long;

/// A file and what of it is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cached {
    /// Its size, in bytes.
    pub(crate) bytes: u64,
    /// Bytes of it that can be read without a disk.
    pub(crate) resident: u64,
}

/// The page cache of ZFS is a cache of its own.
const ZFS: FsType = FsType(0x2fc1_2fc1);
/// Numbered alike on all architectures; Linux 6.5 and later have it.
const SYS_CACHESTAT: libc::c_long = 451;
/// So much of a file is mapped at a time.
const WINDOW: u64 = 256 << 20;

/// Looks at an open regular file.
///
/// # Errors
/// The kernel does not tell this user.
pub(crate) fn cached(file: &File) -> io::Result<Cached> {
    let bytes = file.metadata()?.len();
    if bytes == 0 {
        return Ok(Cached { bytes, resident: 0 });
    }
    let kind = fstatfs(file).map_err(io::Error::from)?.filesystem_type();
    if kind == ZFS {
        return Err(io::Error::other("this file system has a cache of its own"));
    }
    let pages = if kind == OVERLAYFS_SUPER_MAGIC {
        // The pages belong to the file below, which only a mapping leads to.
        mapped(file, bytes)?
    } else {
        match counted(file) {
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => mapped(file, bytes)?,
            counted => counted?,
        }
    };
    let resident = pages.saturating_mul(page_bytes()).min(bytes);
    Ok(Cached { bytes, resident })
}

fn page_bytes() -> u64 {
    // SAFETY: takes a number; this one is always known.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

/// Pages of the whole file in the cache, by cachestat.
fn counted(file: &File) -> io::Result<u64> {
    // Begin and length; no length means to the end.
    let range = [0_u64; 2];
    // Cached, dirty, under writeback, evicted, recently evicted.
    let mut counts = [0_u64; 5];
    // SAFETY: both arrays are as long as the kernel's structures.
    check_long(unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd(),
            range.as_ptr(),
            counts.as_mut_ptr(),
            0,
        )
    })?;
    Ok(counts[0])
}

/// Pages of the file in the cache, by mincore. To somebody who may not write the file it says that all of them are.
fn mapped(file: &File, bytes: u64) -> io::Result<u64> {
    let user = nix::unistd::geteuid();
    if file.metadata()?.uid() != user.as_raw() && !user.is_root() {
        return Err(io::Error::from(Errno::EPERM));
    }
    let mut pages = 0;
    let mut from = 0;
    while from < bytes {
        let length = WINDOW.min(bytes - from);
        pages += window(file, from, length as usize)?;
        from += length;
    }
    Ok(pages)
}

fn window(file: &File, from: u64, length: usize) -> io::Result<u64> {
    let offset = libc::off_t::try_from(from).map_err(io::Error::other)?;
    let fd = file.as_fd().as_raw_fd();
    // SAFETY: a fresh mapping touches no memory in use, and it is not read through.
    let base = unsafe {
        libc::mmap(
            ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_SHARED,
            fd,
            offset,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let mut pages = vec![0_u8; length.div_ceil(page_bytes() as usize)];
    // SAFETY: the mapping has this length, and the vector a byte for each of its pages.
    let result = unsafe { libc::mincore(base, length, pages.as_mut_ptr()) };
    let error = io::Error::last_os_error();
    // SAFETY: exactly the mapping made above.
    unsafe { libc::munmap(base, length) };
    if result < 0 {
        return Err(error);
    }
    Ok(pages.iter().filter(|page| **page & 1 == 1).count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    #[test]
    #[allow(clippy::print_stdout, reason = "a test that skips says so")]
    fn both_ways_see_what_was_read_and_what_was_forgotten() {
        // Beside the program, since a temporary directory may lie in memory.
        let beside = std::env::current_exe().unwrap();
        let mut file = tempfile::tempfile_in(beside.parent().unwrap()).unwrap();
        let bytes = 10 * page_bytes() + 5;
        file.write_all(&vec![7; bytes as usize]).unwrap();
        file.sync_all().unwrap();
        let all = Cached {
            bytes,
            resident: bytes,
        };
        assert_eq!(cached(&file).unwrap(), all);
        assert_eq!(mapped(&file, bytes).unwrap(), 11);
        // SAFETY: numbers only.
        let result =
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        assert_eq!(result, 0);
        if cached(&file).unwrap() == all {
            println!("skipped: the file system of the build keeps its pages");
            return;
        }
        assert_eq!(cached(&file).unwrap().resident, 0);
        assert_eq!(mapped(&file, bytes).unwrap(), 0);
        // Its end is read again; reading ahead may bring more.
        file.read_exact_at(&mut [0; 1], bytes - 1).unwrap();
        let pages = mapped(&file, bytes).unwrap();
        assert!((1..=11).contains(&pages), "{pages}");
        let resident = (pages * page_bytes()).min(bytes);
        assert_eq!(cached(&file).unwrap().resident, resident);
    }

    #[test]
    fn nothing_of_an_empty_file_is_in_memory() {
        let file = tempfile::tempfile().unwrap();
        let empty = Cached {
            bytes: 0,
            resident: 0,
        };
        assert_eq!(cached(&file).unwrap(), empty);
    }
}
