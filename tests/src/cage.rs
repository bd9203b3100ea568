//! Starts a program under a kernel that refuses what its arguments name, as the filters of containers do.
//!
//! `cage MASK... -- PROGRAM ARGUMENT...`. What is refused stays refused for everything the program starts.

#![expect(
    clippy::print_stderr,
    reason = "it is a command with nobody else to tell"
)]

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::{Command, exit};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// A call whose argument has these bits, or is this number.
fn when(argument: u8, operator: SeccompCmpOp, value: u64) -> Vec<SeccompRule> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value);
    let rule = SeccompRule::new(vec![condition.expect("an argument of a call")]);
    vec![rule.expect("a rule with a condition")]
}

/// New namespaces of one kind, by either call that makes them.
fn namespace(flag: i32) -> Rules {
    let flag = u64::from(flag.cast_unsigned());
    let made = || when(0, SeccompCmpOp::MaskedEq(flag), flag);
    Rules::from([(libc::SYS_clone, made()), (libc::SYS_unshare, made())])
}

/// Calls that a kernel without them does not know.
fn unknown(calls: &[i64]) -> (Rules, i32) {
    let rules = calls.iter().map(|call| (*call, Vec::new()));
    (rules.collect(), libc::ENOSYS)
}

/// What a mask refuses, and with which error.
fn mask(name: &str) -> (Rules, i32) {
    match name {
        "pid-namespace" => (namespace(libc::CLONE_NEWPID), libc::EPERM),
        "network-namespace" => (namespace(libc::CLONE_NEWNET), libc::EPERM),
        "clone3" => unknown(&[libc::SYS_clone3]),
        "mount-trees" => unknown(&[
            libc::SYS_open_tree,
            libc::SYS_move_mount,
            libc::SYS_mount_setattr,
        ]),
        "landlock" => unknown(&[libc::SYS_landlock_create_ruleset]),
        "filters" => unknown(&[libc::SYS_seccomp]),
        "adoption" => {
            let adopting = u64::from(libc::PR_SET_CHILD_SUBREAPER.cast_unsigned());
            let rule = when(0, SeccompCmpOp::Eq, adopting);
            (Rules::from([(libc::SYS_prctl, rule)]), libc::EPERM)
        }
        other => {
            eprintln!("cage: nothing is called {other}");
            exit(2);
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(end) = words.iter().position(|word| word == "--") else {
        eprintln!("cage: no -- before the program");
        exit(2);
    };
    let (mut masks, command) = (words[..end].to_vec(), &words[end + 1..]);
    // After this one no other can be put on.
    masks.sort_by_key(|name| name == "filters");
    let arch = std::env::consts::ARCH
        .try_into()
        .expect("an architecture with filters");
    for name in masks {
        let (rules, errno) = mask(&name);
        let refused = SeccompAction::Errno(errno.cast_unsigned());
        let program: BpfProgram = SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)
            .and_then(TryInto::try_into)
            .expect("a filter");
        seccompiler::apply_filter(&program).expect("filters can be put on");
    }
    let error = Command::new(&command[0]).args(&command[1..]).exec();
    eprintln!("cage: {}: {error}", command[0]);
    exit(2);
}
