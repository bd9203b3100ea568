//! Handing descriptors to a stage, with its order: it may have been started before any of them existed.
#![allow(
    unsafe_code,
    reason = "ancillary data of sockets, as the C library lays it out"
)]

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The most descriptors a stage gets.
const MOST: usize = 6;
/// Room for the ancillary data, aligned as its header.
type Ancillary = [u64; 8];

/// Sends descriptors in one message, without blocking and without SIGPIPE.
pub(super) fn give(socket: BorrowedFd<'_>, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let numbers: Vec<c_int> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let bytes = size_of_val(numbers.as_slice());
    if numbers.len() > MOST {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut ancillary: Ancillary = [0; 8];
    let mut word = *b"O";
    let mut part = one_byte(&mut word);
    let mut message = message(&mut part, &mut ancillary);
    // SAFETY: the arithmetic of these macros, and a copy into the space that `CMSG_LEN` describes, which `MOST` and the
    // size of `Ancillary` bound.
    let sent = unsafe {
        message.msg_controllen = libc::CMSG_SPACE(bytes as u32) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(bytes as u32) as _;
        let data = libc::CMSG_DATA(header);
        std::ptr::copy_nonoverlapping(numbers.as_ptr().cast::<u8>(), data, bytes);
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        libc::sendmsg(socket.as_raw_fd(), &raw const message, flags)
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Waits for what [`give`] sends; nothing when the other side is gone.
pub(super) fn take(socket: BorrowedFd<'_>) -> io::Result<Vec<OwnedFd>> {
    let mut ancillary: Ancillary = [0; 8];
    let mut word = [0];
    let mut part = one_byte(&mut word);
    let mut message = message(&mut part, &mut ancillary);
    loop {
        // SAFETY: the message names buffers that live as long as the call.
        let got =
            unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
        match got {
            1.. => break,
            0 => return Ok(Vec::new()),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    let mut taken = Vec::new();
    // SAFETY: the kernel filled the message; its headers lie within the ancillary buffer, and every number in one of
    // descriptors is a new descriptor of ours.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if !header.is_null()
            && (*header).cmsg_level == libc::SOL_SOCKET
            && (*header).cmsg_type == libc::SCM_RIGHTS
        {
            let bytes = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
            let mut numbers = [-1 as c_int; MOST];
            let bytes = bytes.min(size_of_val(&numbers));
            let to = numbers.as_mut_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(libc::CMSG_DATA(header), to, bytes);
            for number in &numbers[..bytes / size_of::<c_int>()] {
                taken.push(OwnedFd::from_raw_fd(*number));
            }
        }
    }
    Ok(taken)
}

/// A message must hold at least a byte to carry descriptors.
fn one_byte(word: &mut [u8; 1]) -> libc::iovec {
    libc::iovec {
        iov_base: word.as_mut_ptr().cast::<c_void>(),
        iov_len: 1,
    }
}

fn message(part: &mut libc::iovec, ancillary: &mut Ancillary) -> libc::msghdr {
    // SAFETY: all-zero is a valid message header: no name, no buffers.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message.msg_control = ancillary.as_mut_ptr().cast();
    message.msg_controllen = size_of::<Ancillary>() as _;
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::sys;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    #[test]
    fn descriptors_arrive_in_order_and_a_closed_end_gives_none() {
        let (one, other) = sys::message_sockets().unwrap();
        let files: Vec<OwnedFd> = (0..MOST)
            .map(|number| sys::memory_file(&[number as u8]).unwrap())
            .collect();
        let given: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
        give(one.as_fd(), &given).unwrap();
        let taken = take(other.as_fd()).unwrap();
        assert_eq!(taken.len(), MOST);
        for (number, file) in taken.into_iter().enumerate() {
            let mut content = Vec::new();
            File::from(file).read_to_end(&mut content).unwrap();
            assert_eq!(content, [number as u8]);
        }
        let mut too_many = given.clone();
        too_many.push(given[0]);
        assert!(give(one.as_fd(), &too_many).is_err());
        drop(one);
        assert!(take(other.as_fd()).unwrap().is_empty());
        let mut nobody = File::from(other);
        assert!(nobody.write_all(b"x").is_err());
    }
}
