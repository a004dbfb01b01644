//! System calls that a confined command does not get, as a program for the kernel.

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

use crate::policy::Network;

/// What differs from tier to tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) network: Network,
    pub(crate) unix_sockets: UnixSockets,
    pub(crate) truncate: Truncate,
}

/// Sockets in the file system with network switched on. Docker and D-Bus listen
/// on some, and do what they are told outside of any confinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnixSockets {
    Open,
    Closed,
}

/// Whether `truncate` is left to Landlock, which knows it from ABI 3 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Truncate {
    Allowed,
    Refused,
}

/// Never needed by a build, and ways out of a confinement or into the kernel that
/// need no capability. What needs one is refused because it was dropped. The kernel
/// goes through the filter for every call there is when it is applied, so a short
/// one is a fast one.
const REFUSED: [i64; 13] = [
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

/// Characters pushed into a terminal, its selection, and taking it over.
const TERMINAL_REQUESTS: [u64; 3] = [libc::TIOCSTI, TIOCLINUX, libc::TIOCSCTTY];
const TIOCLINUX: u64 = 0x541c;

/// Numbers from here on belong to x32 on x86-64, a second door to every call.
const X32: u32 = 0x4000_0000;
/// The kind of a socket, without its flags.
const SOCKET_KIND: u64 = 0xf;

const LOAD_NUMBER: u16 = 0x20;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
const RETURN_ERROR: u32 = 0x0005_0000;

/// The filter. What it refuses answers EPERM.
pub(crate) fn program(calls: Calls) -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let new_users = bits(0, CLONE_NEWUSER as u64, CLONE_NEWUSER as u64)?;
    rules.insert(SYS_clone, vec![SeccompRule::new(vec![new_users])?]);
    let requests = TERMINAL_REQUESTS.iter().map(|request| rule([is(1, *request)]));
    rules.insert(SYS_ioctl, requests.collect::<Result<_, _>>()?);
    // Limits of another process end it as surely as a signal does.
    rules.insert(SYS_prlimit64, vec![rule([is_not(0, 0)])?]);
    if calls.truncate == Truncate::Refused {
        rules.insert(SYS_truncate, Vec::new());
    }
    match (calls.network, calls.unix_sockets) {
        (Network::Off, _) => {
            let foreign = || rule([is_not(0, AF_UNIX)]);
            rules.insert(SYS_socket, with_datagrams(vec![foreign()?])?);
            rules.insert(SYS_socketpair, with_datagrams(vec![foreign()?])?);
            rules.insert(SYS_connect, Vec::new());
        }
        (Network::On, unix_sockets) => {
            let mut families = vec![is_not(0, AF_INET), is_not(0, AF_INET6), is_not(0, AF_NETLINK)];
            if unix_sockets == UnixSockets::Open {
                families.push(is_not(0, AF_UNIX));
            } else {
                rules.insert(SYS_socketpair, with_datagrams(Vec::new())?);
            }
            rules.insert(SYS_socket, vec![rule(families)?]);
        }
    }
    let arch = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(EPERM as u32), arch)?;
    let mut program = before_the_filter();
    program.extend(BpfProgram::try_from(filter)?);
    Ok(program)
}

/// What a table of numbers cannot say. `clone3` has its flags in memory, where no
/// filter can look; when it seems to be missing, `clone` is called instead.
fn before_the_filter() -> BpfProgram {
    let refuse = |error: i32| sock_filter { code: RETURN, jt: 0, jf: 0, k: RETURN_ERROR | error as u32 };
    vec![
        sock_filter { code: LOAD_NUMBER, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: X32 },
        refuse(EPERM),
        sock_filter { code: JUMP_IF_EQUAL, jt: 0, jf: 1, k: SYS_clone3 as u32 },
        refuse(libc::ENOSYS),
    ]
}

/// The program as bubblewrap reads it.
pub(crate) fn bytes(program: &BpfProgram) -> Vec<u8> {
    let one = |step: &sock_filter| {
        let [a, b] = step.code.to_ne_bytes();
        let [c, d, e, f] = step.k.to_ne_bytes();
        [a, b, step.jt, step.jf, c, d, e, f]
    };
    program.iter().flat_map(one).collect()
}

/// These, and every kind of socket whose datagrams go to any address without
/// `connect`. The kernel makes a datagram socket of a raw one.
fn with_datagrams(mut rules: Vec<SeccompRule>) -> Result<Vec<SeccompRule>, BackendError> {
    for kind in [SOCK_DGRAM, SOCK_RAW, SOCK_RDM] {
        rules.push(rule([bits(1, SOCKET_KIND, kind as u64)])?);
    }
    Ok(rules)
}

type Condition = Result<SeccompCondition, BackendError>;

fn rule(conditions: impl IntoIterator<Item = Condition>) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
}

fn is(argument: u8, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: i32) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value as u64)
}

fn bits(argument: u8, mask: u64, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value)
}
