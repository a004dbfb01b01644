//! Builds the seccomp filter that refuses system calls to confined commands.

use std::collections::BTreeMap;

use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, CLONE_NEWUSER, EPERM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SYS_add_key, SYS_bpf,
    SYS_clone, SYS_clone3, SYS_connect, SYS_io_uring_setup, SYS_ioctl, SYS_keyctl, SYS_perf_event_open,
    SYS_pidfd_getfd, SYS_prlimit64, SYS_process_vm_readv, SYS_process_vm_writev, SYS_ptrace, SYS_request_key,
    SYS_setns, SYS_socket, SYS_socketpair, SYS_truncate, SYS_unshare, SYS_userfaultfd,
};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, sock_filter,
};

use crate::policy::NetworkPolicy;

/// The options that differ between tiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilterOptions {
    pub(crate) network: NetworkPolicy,
    pub(crate) unix_sockets: UnixSockets,
    pub(crate) truncate: Truncate,
}

/// Access to sockets in the file system while the network is on. Docker and D-Bus listen
/// on such sockets and act outside of any confinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnixSockets {
    Open,
    Closed,
}

/// Whether `truncate` is allowed. Landlock restricts it from ABI 3 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Truncate {
    Allowed,
    Refused,
}

/// Calls that no build needs and that allow leaving the confinement or attacking the
/// kernel without a capability. Calls that need a capability already fail, because it was
/// dropped. The kernel evaluates the filter for every call number when it is installed,
/// so a short filter is faster.
const REFUSED_CALLS: [i64; 13] = [
    SYS_add_key,
    SYS_bpf,
    SYS_io_uring_setup,
    SYS_keyctl,
    SYS_perf_event_open,
    SYS_pidfd_getfd,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_ptrace,
    SYS_request_key,
    SYS_setns,
    SYS_unshare,
    SYS_userfaultfd,
];

/// Requests that inject characters into a terminal, change its selection, or take it
/// over.
const TERMINAL_REQUESTS: [u64; 3] = [libc::TIOCSTI, TIOCLINUX, libc::TIOCSCTTY];
const TIOCLINUX: u64 = 0x541c;

/// On x86-64, numbers from here on are x32 calls, a second way to make every call.
const X32_BIT: u32 = 0x4000_0000;
/// The bits of a socket type without its flags.
const SOCKET_KIND: u64 = 0xf;

const LOAD_NUMBER: u16 = 0x20;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
const RETURN_ERROR: u32 = 0x0005_0000;

/// The filter. Refused calls fail with EPERM.
pub(crate) fn filter_program(options: FilterOptions) -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED_CALLS.iter().map(|call| (*call, Vec::new())).collect();
    let new_users = argument_bits(0, CLONE_NEWUSER as u64, CLONE_NEWUSER as u64)?;
    rules.insert(SYS_clone, vec![SeccompRule::new(vec![new_users])?]);
    let requests = TERMINAL_REQUESTS.iter().map(|request| rule([argument_is(1, *request)]));
    rules.insert(SYS_ioctl, requests.collect::<Result<_, _>>()?);
    // Setting another process's limits can kill it as surely as a signal.
    rules.insert(SYS_prlimit64, vec![rule([argument_is_not(0, 0)])?]);
    if options.truncate == Truncate::Refused {
        rules.insert(SYS_truncate, Vec::new());
    }
    match (options.network, options.unix_sockets) {
        (NetworkPolicy::Off, _) => {
            let foreign = || rule([argument_is_not(0, AF_UNIX)]);
            rules.insert(SYS_socket, with_datagrams(vec![foreign()?])?);
            rules.insert(SYS_socketpair, with_datagrams(vec![foreign()?])?);
            rules.insert(SYS_connect, Vec::new());
        }
        (NetworkPolicy::On, unix_sockets) => {
            let mut families =
                vec![argument_is_not(0, AF_INET), argument_is_not(0, AF_INET6), argument_is_not(0, AF_NETLINK)];
            if unix_sockets == UnixSockets::Open {
                families.push(argument_is_not(0, AF_UNIX));
            } else {
                rules.insert(SYS_socketpair, with_datagrams(Vec::new())?);
            }
            rules.insert(SYS_socket, vec![rule(families)?]);
        }
    }
    let arch = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(EPERM as u32), arch)?;
    let mut program = prologue();
    program.extend(BpfProgram::try_from(filter)?);
    Ok(program)
}

/// Checks that the rule table cannot express. `clone3` passes its flags in memory, where
/// no filter can look; if it fails with ENOSYS, callers fall back to `clone`.
fn prologue() -> BpfProgram {
    let refuse = |error: i32| sock_filter { code: RETURN, jt: 0, jf: 0, k: RETURN_ERROR | error as u32 };
    vec![
        sock_filter { code: LOAD_NUMBER, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: X32_BIT },
        refuse(EPERM),
        sock_filter { code: JUMP_IF_EQUAL, jt: 0, jf: 1, k: SYS_clone3 as u32 },
        refuse(libc::ENOSYS),
    ]
}

/// The program in the binary form that bubblewrap reads.
pub(crate) fn bytes(program: &BpfProgram) -> Vec<u8> {
    let one = |instruction: &sock_filter| {
        let [a, b] = instruction.code.to_ne_bytes();
        let [c, d, e, f] = instruction.k.to_ne_bytes();
        [a, b, instruction.jt, instruction.jf, c, d, e, f]
    };
    program.iter().flat_map(one).collect()
}

/// Adds every socket type that can send datagrams to any address without `connect`. The
/// kernel turns a raw Unix socket into a datagram socket.
fn with_datagrams(mut rules: Vec<SeccompRule>) -> Result<Vec<SeccompRule>, BackendError> {
    for kind in [SOCK_DGRAM, SOCK_RAW, SOCK_RDM] {
        rules.push(rule([argument_bits(1, SOCKET_KIND, kind as u64)])?);
    }
    Ok(rules)
}

type Condition = Result<SeccompCondition, BackendError>;

fn rule(conditions: impl IntoIterator<Item = Condition>) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
}

fn argument_is(argument: u8, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn argument_is_not(argument: u8, value: i32) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value as u64)
}

fn argument_bits(argument: u8, mask: u64, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value)
}
