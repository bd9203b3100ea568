//! Tries to type commands into the terminal of whoever started it, then scores everything.
//! Honest report: `completed`; there is no terminal to type into.

use std::os::fd::AsRawFd;

use proctor_tests::misdeed::{system_call, tried};
use proctor_tests::talk::Talk;

static LETTER: u8 = b'\n';

fn main() {
    let address = &raw const LETTER as libc::c_long;
    let typed = |descriptor: i32| {
        system_call(
            libc::SYS_ioctl,
            [descriptor.into(), libc::TIOCSTI.cast_signed(), address, 0],
        )
    };
    for descriptor in 0..3 {
        tried(&format!("type into {descriptor}"), typed(descriptor));
    }
    for name in ["/dev/tty", "/dev/console", "/dev/pts/0"] {
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(name);
        tried(
            &format!("type into {name}"),
            file.and_then(|file| typed(file.as_raw_fd())),
        );
    }
    Talk::open("typist").behave();
}
