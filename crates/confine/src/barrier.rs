//! What is applied to the thread that starts a command, or put around it.

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

    use crate::bubblewrap::{Kind, User, arguments};
    use crate::launch::{Launch, Protection};
    use crate::policy::Policy;
    use crate::seccomp::{Calls, Truncate, UnixSockets, bytes, program};
    use crate::{capabilities, landlock};

    /// Confines this thread and what it starts from now on.
    pub(crate) fn kernel(policy: &Policy, abi: i32) -> Result<(), String> {
        capabilities::drop_all_others()?;
        landlock::confine(policy, abi)?;
        let truncate = if abi < landlock::TRUNCATE { Truncate::Refused } else { Truncate::Allowed };
        let calls = Calls { network: policy.network, unix_sockets: UnixSockets::Open, truncate };
        let program = program(calls).map_err(|error| format!("the filter of system calls is wrong: {error}"))?;
        seccompiler::apply_filter(&program).map_err(|error| format!("seccomp refuses: {error}"))
    }

    /// The command inside bubblewrap.
    pub(crate) fn bubblewrap(
        launch: &Launch,
        wrapper: &OsStr,
        inside: &OsStr,
        rest: &[OsString],
    ) -> Result<Command, String> {
        let calls =
            Calls { network: launch.policy.network, unix_sockets: UnixSockets::Closed, truncate: Truncate::Allowed };
        let program = program(calls).map_err(|error| format!("the filter of system calls is wrong: {error}"))?;
        let said = |error: std::io::Error| format!("the filter of system calls cannot be handed over: {error}");
        let file = memfd_create("filter", MemfdFlags::CLOEXEC).map_err(|error| said(error.into()))?;
        let mut file = std::fs::File::from(file);
        file.write_all(&bytes(&program)).and_then(|()| file.rewind()).map_err(said)?;
        // bubblewrap gets it, and closes it before the command. Nothing else is
        // started by this process.
        fcntl_setfd(&file, FdFlags::empty()).map_err(|error| said(error.into()))?;
        let protected = match launch.protection {
            Protection::Restore => launch.policy.protected.as_slice(),
            Protection::Keep => &[],
        };
        let user = if rustix::process::geteuid().is_root() { User::Root } else { User::Other };
        let mut command = Command::new(wrapper);
        command.args(arguments(&launch.policy, protected, user, file.as_raw_fd(), &kind));
        command.arg("--chdir").arg(launch.folder.to_os()).arg("--").arg(inside).args(rest);
        // It stays open until the command was started; the process ends soon after.
        std::mem::forget(file);
        Ok(command)
    }

    /// The paths of a policy have no links in them. Where there is one now, another
    /// command has put it there.
    fn kind(path: &Path) -> Kind {
        match (std::fs::canonicalize(path), std::fs::symlink_metadata(path)) {
            (Ok(reached), Ok(about)) if reached == path && about.is_dir() => Kind::Folder,
            (Ok(reached), Ok(_)) if reached == path => Kind::File,
            (Ok(_) | Err(_), Ok(_) | Err(_)) => Kind::Absent,
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
