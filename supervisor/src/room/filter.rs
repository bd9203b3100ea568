//! The system call filters of a worker: what neither namespaces nor file permissions cover.
//!
//! They are compiled here, in the supervisor, and handed to the stage as plain instructions.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

/// One instruction as the kernel lays it out.
pub(super) const INSTRUCTION_BYTES: usize = 8;
/// `BPF_LD | BPF_W | BPF_ABS`: reads a word of the system call's data.
const LOAD: u16 = 0x20;
/// `BPF_JMP | BPF_JGE | BPF_K`.
const JUMP_IF_AT_LEAST: u16 = 0x35;
/// `BPF_RET | BPF_K`.
const RETURN: u16 = 0x06;
/// `SECCOMP_RET_KILL_PROCESS`.
const KILL_PROCESS: u32 = 0x8000_0000;
/// Numbers from here on are the x32 calls of `x86_64`, which the rules do not name.
const X32: u32 = 0x4000_0000;

/// What the filters are to refuse beyond what they always do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is chosen by itself")]
pub(super) struct Refuse {
    /// New namespaces, kernel keys, `io_uring` and whatever else no method needs.
    pub(super) rare_calls: bool,
    /// Every socket but those within the machine; needed without a network namespace.
    pub(super) networks: bool,
    /// Reaching into other processes; needed without a pid namespace.
    pub(super) tracing: bool,
    /// Choosing other cores: the call does nothing and says it succeeded, so that honest programs that bind their threads
    /// go on.
    pub(super) affinity: bool,
    /// Changing who may do what with a file, its times and its attributes: needed where landlock, which knows nothing of
    /// these, is all that stands before the files of a user the worker shares. They do nothing and say they succeeded, so
    /// that honest programs that copy or unpack files go on.
    pub(super) attributes: bool,
}

impl Refuse {
    /// True when there is nothing to refuse.
    pub(super) fn nothing(self) -> bool {
        !(self.rare_calls || self.networks || self.tracing || self.affinity || self.attributes)
    }
}

/// Sockets that reach the host or the kernel in spite of a network namespace: `AF_VSOCK` and `AF_ALG`.
const STRANGE_FAMILIES: [i32; 2] = [libc::AF_VSOCK, libc::AF_ALG];

/// The namespace flags of clone and unshare.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// `CLONE_NEWTIME`; in a clone the same bit belongs to the exit signal.
const NEW_TIME: u64 = 0x80;

/// The calls that change what a file is besides its content, newer ones by their numbers, which all architectures share.
const ATTRIBUTES: [i64; 15] = [
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
    FILE_SETATTR,
];
/// `FS_IOC_SETFLAGS` and `FS_IOC_FSSETXATTR` of 64-bit machines.
const SET_FLAGS: u64 = 0x4008_6602;
const SET_XATTR: u64 = 0x401c_5820;
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;
/// The older calls for the same, which newer architectures never had.
#[cfg(target_arch = "x86_64")]
const OLD_ATTRIBUTES: [i64; 6] = [
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_ATTRIBUTES: [i64; 0] = [];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The filters, in the order they are installed, as bytes of instructions. Each kind is compiled once.
pub(super) fn compile(refuse: Refuse) -> Result<Vec<Vec<u8>>, String> {
    static COMPILED: Mutex<Vec<(Refuse, Vec<Vec<u8>>)>> = Mutex::new(Vec::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, filters)) = compiled.iter().find(|(other, _)| *other == refuse) {
        return Ok(filters.clone());
    }
    let filters = compile_now(refuse)?;
    compiled.push((refuse, filters.clone()));
    Ok(filters)
}

fn compile_now(refuse: Refuse) -> Result<Vec<Vec<u8>>, String> {
    let mut filters = Vec::new();
    let calls = unknown_calls(refuse)?;
    if !calls.is_empty() {
        // Programs take this for an old kernel and do without.
        filters.push(program(calls, libc::ENOSYS)?);
    }
    let sockets = sockets(refuse)?;
    if !sockets.is_empty() {
        filters.push(program(sockets, libc::EAFNOSUPPORT)?);
    }
    // An error would end programs that bind their threads (OpenMP, taskset) or unpack an archive. No error number is the
    // answer of a call that succeeded, and the kernel has not done it.
    let mut without_effect = Rules::new();
    if refuse.affinity {
        without_effect.insert(libc::SYS_sched_setaffinity, Vec::new());
    }
    if refuse.attributes {
        let calls = ATTRIBUTES.into_iter().chain(OLD_ATTRIBUTES);
        without_effect.extend(calls.map(|call| (call, Vec::new())));
        // The flags of inodes: immutable, append only.
        let flags = rule(1, SeccompCmpOp::Eq, SET_FLAGS)?;
        let more = rule(1, SeccompCmpOp::Eq, SET_XATTR)?;
        without_effect.insert(libc::SYS_ioctl, vec![flags, more]);
    }
    if !without_effect.is_empty() {
        filters.push(program(without_effect, 0)?);
    }
    Ok(filters)
}

fn unknown_calls(refuse: Refuse) -> Result<Rules, String> {
    let mut rules = Rules::new();
    if refuse.rare_calls {
        for call in [
            libc::SYS_add_key,
            libc::SYS_request_key,
            libc::SYS_keyctl,
            libc::SYS_io_uring_setup,
            libc::SYS_io_uring_enter,
            libc::SYS_io_uring_register,
            libc::SYS_userfaultfd,
            libc::SYS_perf_event_open,
            libc::SYS_bpf,
            libc::SYS_setns,
            // Its flags lie in memory, out of a filter's reach. The C library then uses the older call.
            libc::SYS_clone3,
        ] {
            rules.insert(call, Vec::new());
        }
        let mut flags: Vec<u64> = NAMESPACES.map(|flag| u64::from(flag as u32)).to_vec();
        let any = |flags: &[u64]| {
            flags
                .iter()
                .map(|flag| rule(0, SeccompCmpOp::MaskedEq(*flag), *flag))
                .collect::<Result<Vec<_>, String>>()
        };
        rules.insert(libc::SYS_clone, any(&flags)?);
        flags.push(NEW_TIME);
        rules.insert(libc::SYS_unshare, any(&flags)?);
        let push_input = rule(1, SeccompCmpOp::Eq, libc::TIOCSTI)?;
        rules.insert(libc::SYS_ioctl, vec![push_input]);
    }
    if refuse.tracing {
        for call in [
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
            libc::SYS_pidfd_getfd,
            libc::SYS_kcmp,
        ] {
            rules.insert(call, Vec::new());
        }
    }
    Ok(rules)
}

fn sockets(refuse: Refuse) -> Result<Rules, String> {
    let mut rules = Rules::new();
    if refuse.networks {
        let other = rule(0, SeccompCmpOp::Ne, libc::AF_UNIX as u64)?;
        rules.insert(libc::SYS_socket, vec![other]);
    } else if refuse.rare_calls {
        let strange = STRANGE_FAMILIES
            .iter()
            .map(|family| rule(0, SeccompCmpOp::Eq, *family as u64))
            .collect::<Result<Vec<_>, String>>()?;
        rules.insert(libc::SYS_socket, strange);
    }
    Ok(rules)
}

/// One condition on one argument. Families, flags and requests are 32-bit numbers to the kernel.
fn rule(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, String> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
        .and_then(|condition| SeccompRule::new(vec![condition]))
        .map_err(|error| error.to_string())
}

fn program(rules: Rules, errno: i32) -> Result<Vec<u8>, String> {
    let arch = std::env::consts::ARCH
        .try_into()
        .map_err(|error: seccompiler::BackendError| error.to_string())?;
    let refused = SeccompAction::Errno(errno as u32);
    let program: BpfProgram = SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)
        .and_then(TryInto::try_into)
        .map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let mut put = |code: u16, jt: u8, jf: u8, k: u32| {
        bytes.extend_from_slice(&code.to_ne_bytes());
        bytes.extend_from_slice(&[jt, jf]);
        bytes.extend_from_slice(&k.to_ne_bytes());
    };
    if cfg!(target_arch = "x86_64") {
        // All jumps are relative, so what follows does not mind. The number is the first word of the data.
        put(LOAD, 0, 0, 0);
        put(JUMP_IF_AT_LEAST, 0, 1, X32);
        put(RETURN, 0, 0, KILL_PROCESS);
    }
    for instruction in program {
        put(
            instruction.code,
            instruction.jt,
            instruction.jf,
            instruction.k,
        );
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_hold_whole_instructions_and_only_what_is_asked_for() {
        let nothing = Refuse {
            rare_calls: false,
            networks: false,
            tracing: false,
            affinity: false,
            attributes: false,
        };
        assert!(nothing.nothing());
        assert_eq!(compile(nothing), Ok(Vec::new()));
        let all = Refuse {
            rare_calls: true,
            networks: true,
            tracing: true,
            affinity: true,
            attributes: true,
        };
        let filters = compile(all).unwrap();
        assert_eq!(filters.len(), 3);
        for filter in &filters {
            assert_eq!(filter.len() % INSTRUCTION_BYTES, 0);
            assert!(filter.len() / INSTRUCTION_BYTES < 4096);
        }
        let only_networks = Refuse {
            networks: true,
            ..nothing
        };
        assert_eq!(compile(only_networks).unwrap(), filters[1..2]);
    }
}
