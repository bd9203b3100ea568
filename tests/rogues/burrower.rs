//! Leaves a scratch directory that is hard to remove: deep, locked, full of odd names, pipes and sockets.
//! Honest report: `completed`; nothing of it is left.

use std::ffi::OsStr;
use std::fs::{File, Permissions, create_dir, set_permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use nix::sys::stat::Mode;
use proctor_tests::talk::Talk;

fn main() {
    let longest = "n".repeat(255);
    for name in [
        b"line\nfeed".as_slice(),
        b"\xff\xfe",
        b" ",
        b"-rf",
        b"*",
        b"...",
        longest.as_bytes(),
    ] {
        File::create(OsStr::from_bytes(name)).expect("a file can be made");
    }
    nix::unistd::mkfifo("pipe", Mode::empty()).expect("a pipe can be made");
    let _socket = UnixListener::bind("socket").expect("a socket can be made");
    // More levels than most programs have descriptors or a path has room for, each locked behind it.
    let locked = Permissions::from_mode(0o000);
    let home = std::env::current_dir().expect("there is a working directory");
    let mut at = File::open(".").expect("a directory can be opened");
    for level in 0..1500 {
        create_dir("d").expect("a directory can be made");
        std::env::set_current_dir("d").expect("it can be entered");
        if level > 0 {
            at.set_permissions(locked.clone())
                .expect("it can be locked");
        }
        at = File::open(".").expect("a directory can be opened");
    }
    std::env::set_current_dir(&home).expect("it can go home");
    set_permissions("d", locked).expect("it can be locked");
    Talk::open("burrower").behave();
}
