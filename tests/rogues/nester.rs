//! Tries to get namespaces of its own, where it would be root and could hide processes, and to mount things.
//! Honest report: `completed`; every attempt was refused.

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use proctor_tests::misdeed::{system_call, tried};
use proctor_tests::talk::Talk;

/// `CLONE_NEWUSER` for the newer call.
static NEW_USER: [u64; 8] = [
    libc::CLONE_NEWUSER.cast_unsigned() as u64,
    0,
    0,
    0,
    libc::SIGCHLD.cast_unsigned() as u64,
    0,
    0,
    0,
];

fn main() {
    for (name, flags) in [
        ("a user namespace", CloneFlags::CLONE_NEWUSER),
        (
            "a user and a pid namespace",
            CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID,
        ),
        ("a mount namespace", CloneFlags::CLONE_NEWNS),
        ("a network namespace", CloneFlags::CLONE_NEWNET),
    ] {
        tried(name, unshare(flags));
    }
    tried(
        "a mount",
        mount(
            None::<&str>,
            "/tmp",
            Some("tmpfs"),
            MsFlags::empty(),
            None::<&str>,
        ),
    );
    tried("another root", nix::unistd::chroot("."));
    let address = NEW_USER.as_ptr() as libc::c_long;
    let made = system_call(libc::SYS_clone3, [address, 64, 0, 0]);
    if made.as_ref().is_ok_and(|child| *child == 0) {
        std::process::exit(0);
    }
    tried("a child in a user namespace", made);
    Talk::open("nester").behave();
}
