//! Applies a policy: confines the thread that starts the command, or wraps the command.

#[cfg(target_os = "linux")]
pub(crate) use linux::{bubblewrap, kernel};
#[cfg(not(target_os = "linux"))]
pub(crate) use other::{bubblewrap, kernel};

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{OsStr, OsString};
    use std::io::{Seek, Write};
    use std::os::fd::AsRawFd;
    use std::path::Path;
    use std::process::Command;

    use rustix::fs::{MemfdFlags, memfd_create};
    use rustix::io::{FdFlags, fcntl_setfd};

    use crate::bubblewrap::{InvokingUser, PathKind, arguments};
    use crate::launch::{Launch, OnProtectedChange};
    use crate::policy::Policy;
    use crate::seccomp::{FilterOptions, Truncate, UnixSockets, bytes, filter_program};
    use crate::{capabilities, landlock};

    /// Confines this thread and everything it starts.
    pub(crate) fn kernel(policy: &Policy, abi: i32) -> Result<(), String> {
        capabilities::drop_all_others()?;
        landlock::confine(policy, abi)?;
        let truncate = if abi < landlock::TRUNCATE_ABI { Truncate::Refused } else { Truncate::Allowed };
        let options = FilterOptions { network: policy.network, unix_sockets: UnixSockets::Open, truncate };
        let program =
            filter_program(options).map_err(|error| format!("the filter of system calls is wrong: {error}"))?;
        seccompiler::apply_filter(&program).map_err(|error| format!("seccomp refuses: {error}"))
    }

    /// The command wrapped in bubblewrap.
    pub(crate) fn bubblewrap(
        launch: &Launch,
        bubblewrap_program: &OsStr,
        program_inside: &OsStr,
        program_arguments: &[OsString],
    ) -> Result<Command, String> {
        let options = FilterOptions {
            network: launch.policy.network,
            unix_sockets: UnixSockets::Closed,
            truncate: Truncate::Allowed,
        };
        let program =
            filter_program(options).map_err(|error| format!("the filter of system calls is wrong: {error}"))?;
        let describe = |error: std::io::Error| format!("the filter of system calls cannot be handed over: {error}");
        let file = memfd_create("filter", MemfdFlags::CLOEXEC).map_err(|error| describe(error.into()))?;
        let mut file = std::fs::File::from(file);
        file.write_all(&bytes(&program)).and_then(|()| file.rewind()).map_err(describe)?;
        // bubblewrap inherits it and closes it before the command. This process starts
        // nothing else.
        fcntl_setfd(&file, FdFlags::empty()).map_err(|error| describe(error.into()))?;
        let protected = match launch.on_protected_change {
            OnProtectedChange::Restore => launch.policy.protected.as_slice(),
            OnProtectedChange::Keep => &[],
        };
        let user = if rustix::process::geteuid().is_root() { InvokingUser::Root } else { InvokingUser::Other };
        let mut command = Command::new(bubblewrap_program);
        command.args(arguments(&launch.policy, protected, user, file.as_raw_fd(), &path_kind));
        command.arg("--chdir").arg(launch.folder.to_os()).arg("--").arg(program_inside).args(program_arguments);
        // It must stay open until the command is started; the process ends soon after.
        std::mem::forget(file);
        Ok(command)
    }

    /// Policy paths contain no links. If there is a link now, a command has put it there.
    fn path_kind(path: &Path) -> PathKind {
        match (std::fs::canonicalize(path), std::fs::symlink_metadata(path)) {
            (Ok(reached), Ok(metadata)) if reached == path && metadata.is_dir() => PathKind::Folder,
            (Ok(reached), Ok(_)) if reached == path => PathKind::File,
            (Ok(_) | Err(_), Ok(_) | Err(_)) => PathKind::Absent,
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::ffi::{OsStr, OsString};
    use std::process::Command;

    use crate::launch::Launch;
    use crate::policy::Policy;

    pub(crate) fn kernel(_policy: &Policy, _abi: i32) -> Result<(), String> {
        Err("there is no Landlock on this system".to_owned())
    }

    pub(crate) fn bubblewrap(
        _launch: &Launch,
        _wrapper: &OsStr,
        _inside: &OsStr,
        _rest: &[OsString],
    ) -> Result<Command, String> {
        Err("there is no bubblewrap on this system".to_owned())
    }
}
