//! Tries the kernel's rarer interfaces, where most holes are found, then scores everything.
//! Honest report: `completed`; every attempt was refused.

use proctor_tests::misdeed::{system_call, tried};
use proctor_tests::talk::Talk;

fn main() {
    for (name, call, arguments) in [
        ("io_uring", libc::SYS_io_uring_setup, [1, 0, 0, 0]),
        ("kernel keys", libc::SYS_keyctl, [0, -3, 0, 0]),
        ("bpf", libc::SYS_bpf, [0, 0, 0, 0]),
        (
            "performance counters",
            libc::SYS_perf_event_open,
            [0, 0, -1, -1],
        ),
        ("user faults", libc::SYS_userfaultfd, [0, 0, 0, 0]),
        ("namespaces of others", libc::SYS_setns, [-1, 0, 0, 0]),
    ] {
        let result = system_call(call, arguments);
        // An answer about its arguments means that the call was let through.
        let result = match result {
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EINVAL | libc::EFAULT | libc::EBADF)
                ) =>
            {
                Ok(0)
            }
            other => other,
        };
        tried(name, result);
    }
    Talk::open("tinkerer").behave();
}
