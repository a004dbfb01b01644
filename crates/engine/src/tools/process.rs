//! One command, run to its end with everything it started.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::kept::Kept;

/// How long a command has to end by itself once it is told to.
const GRACE: Duration = Duration::from_millis(500);
/// How long output may still come once the command has ended. Somebody else may
/// hold the pipe open for ever.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) output: Kept,
    pub(crate) end: End,
    /// Something it had put into the background was still running.
    pub(crate) ended_others: bool,
}

#[derive(Debug)]
pub(crate) enum End {
    Exited(ExitStatus),
    TimedOut,
    Cancelled,
}

/// Runs the command in a process group of its own. When this returns, or is
/// dropped, nothing of the group runs any more.
pub(crate) async fn run(
    mut command: Command,
    limit: Duration,
    most_output: usize,
    cancel: &CancellationToken,
) -> io::Result<Ran> {
    // One pipe for both, so that lines stand in the order they were written.
    let (reader, writer) = io::pipe()?;
    let mut pipe = Receiver::from_owned_fd(reader.into())?;
    let mark = group::Mark::new();
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).process_group(0).kill_on_drop(true);
    command.env(group::MARK, mark.value());
    let mut child = command.spawn()?;
    // It holds our ends of the pipe, and the output would never end.
    drop(command);
    let mut group = group::Group::of(&child, mark);
    let mut output = Kept::new(most_output);
    let end = tokio::select! {
        status = watch(&mut child, &mut pipe, &mut output) => End::Exited(status?),
        () = sleep(limit) => End::TimedOut,
        () = cancel.cancelled() => End::Cancelled,
    };
    let ended_others = match end {
        End::Exited(_) => {
            drain(&mut pipe, &mut output).await;
            group.end()
        }
        End::TimedOut | End::Cancelled => {
            group.ask_to_end();
            drop(timeout(GRACE, watch(&mut child, &mut pipe, &mut output)).await);
            group.end_with_escaped();
            child.wait().await?;
            false
        }
    };
    drain(&mut pipe, &mut output).await;
    Ok(Ran { output, end, ended_others })
}

/// Takes in what is written until the command itself ends.
async fn watch(child: &mut Child, pipe: &mut Receiver, output: &mut Kept) -> io::Result<ExitStatus> {
    tokio::select! {
        status = child.wait() => status,
        never = listen(pipe, output) => match never {},
    }
}

/// Takes in what is written, for as long as somebody waits for this.
async fn listen(pipe: &mut Receiver, output: &mut Kept) -> std::convert::Infallible {
    while take_in(pipe, output).await {}
    std::future::pending().await
}

async fn drain(pipe: &mut Receiver, output: &mut Kept) {
    let deadline = Instant::now() + LAST_WORDS;
    loop {
        tokio::select! {
            more = take_in(pipe, output) => if !more { break },
            () = sleep_until(deadline) => break,
        }
    }
}

/// One piece; false when there will be no more.
async fn take_in(pipe: &mut Receiver, output: &mut Kept) -> bool {
    let mut buffer = [0; 16 * 1024];
    match pipe.read(&mut buffer).await {
        Ok(0) | Err(_) => false,
        Ok(count) => {
            output.push(buffer.get(..count).unwrap_or_default());
            true
        }
    }
}

/// Everything a command started.
mod group {
    use std::ffi::OsString;
    use std::fs;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rustix::process::{Pid, Signal, kill_process, kill_process_group};
    use tokio::process::Child;

    /// Every process of a command inherits it, also one that left the group.
    pub(super) const MARK: &str = "ASIDE_COMMAND";

    #[derive(Debug)]
    pub(super) struct Mark(String);

    impl Mark {
        pub(super) fn new() -> Mark {
            static COUNT: AtomicU64 = AtomicU64::new(0);
            let (count, random) = (COUNT.fetch_add(1, Ordering::Relaxed), fastrand::u64(..));
            Mark(format!("{}-{count}-{random:016x}", std::process::id()))
        }

        /// Its value for a command. When aside runs inside a command of another
        /// aside, what it starts belongs to both.
        pub(super) fn value(&self) -> OsString {
            let mut value = std::env::var_os(MARK).unwrap_or_default();
            if !value.is_empty() {
                value.push(",");
            }
            value.push(&self.0);
            value
        }

        fn is_in(&self, variables: &[u8]) -> bool {
            let ours = variables.split(|byte| *byte == 0).filter_map(|variable| variable.strip_prefix(MARK.as_bytes()));
            ours.filter_map(|ours| ours.strip_prefix(b"="))
                .any(|marks| marks.split(|byte| *byte == b',').any(|mark| mark == self.0.as_bytes()))
        }
    }

    #[derive(Debug)]
    pub(super) struct Group {
        leader: Option<Pid>,
        mark: Mark,
    }

    impl Group {
        pub(super) fn of(child: &Child, mark: Mark) -> Group {
            let id = child.id().and_then(|id| i32::try_from(id).ok());
            Group { leader: id.and_then(Pid::from_raw), mark }
        }

        pub(super) fn ask_to_end(&self) {
            if let Some(leader) = self.leader {
                // An empty group is an ended one.
                let _ = kill_process_group(leader, Signal::TERM);
            }
        }

        /// Ends what is left of the group and says whether there was anything.
        /// What left the group on purpose is a daemon and stays.
        pub(super) fn end(&mut self) -> bool {
            let Some(leader) = self.leader.take() else { return false };
            let alive = has_living_members(leader);
            let _ = kill_process_group(leader, Signal::KILL);
            alive
        }

        /// The command did not end by itself, so nothing of it is a daemon.
        pub(super) fn end_with_escaped(&mut self) {
            self.end();
            // Something may fork while we look.
            for _ in 0..8 {
                let escaped = marked(&self.mark);
                if escaped.is_empty() {
                    break;
                }
                for pid in escaped {
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            if self.leader.is_some() {
                self.end_with_escaped();
            }
        }
    }

    /// Dead ones that nobody has waited for still count as members, so the
    /// group alone does not tell. Where there is no `/proc`, it must do.
    fn has_living_members(leader: Pid) -> bool {
        let processes = processes();
        if processes.is_empty() {
            return rustix::process::test_kill_process_group(leader).is_ok();
        }
        processes.into_iter().any(|pid| {
            let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
            // The name before it may hold anything: `pid (name) state parent group …`.
            let mut fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
            let (state, group) = (fields.next(), fields.nth(1));
            !matches!(state, None | Some("Z" | "X")) && group == Some(&leader.as_raw_nonzero().to_string())
        })
    }

    fn marked(mark: &Mark) -> Vec<Pid> {
        let mut found = processes();
        found.retain(|pid| {
            let variables = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
            mark.is_in(&variables)
        });
        found
    }

    fn processes() -> Vec<Pid> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter_map(|name| name.parse().ok().and_then(Pid::from_raw)).collect()
    }
}
