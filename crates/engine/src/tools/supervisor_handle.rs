//! A handle on the process that supervises a command or an MCP server, and the cleanup if it dies.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;

/// How long `drop` waits for the helper to end everything: it sends SIGTERM first and kills half a second
/// later.
const DROP_TIMEOUT: Duration = Duration::from_millis(1500);

/// An environment variable that every process of a command inherits. The helper finds its processes as its
/// children; the mark finds those that survive if the helper itself is killed.
const MARK_VARIABLE: &str = "ASIDE_COMMAND";

#[derive(Debug)]
struct ProcessMark(String);

impl ProcessMark {
    fn new() -> ProcessMark {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (count, random) = (COUNT.fetch_add(1, Ordering::Relaxed), fastrand::u64(..));
        ProcessMark(format!("{}-{count}-{random:016x}", std::process::id()))
    }

    /// Appends to an existing mark: if aside runs inside a command of another aside, its processes belong to
    /// both.
    fn value(&self) -> OsString {
        let mut value = std::env::var_os(MARK_VARIABLE).unwrap_or_default();
        if !value.is_empty() {
            value.push(",");
        }
        value.push(&self.0);
        value
    }

    fn is_in(&self, variables: &[u8]) -> bool {
        let values =
            variables.split(|byte| *byte == 0).filter_map(|variable| variable.strip_prefix(MARK_VARIABLE.as_bytes()));
        values
            .filter_map(|values| values.strip_prefix(b"="))
            .any(|marks| marks.split(|byte| *byte == b',').any(|mark| mark == self.0.as_bytes()))
    }
}

/// A helper process and everything that runs under it.
#[derive(Debug)]
pub struct SupervisorHandle {
    helper: Option<Pid>,
    mark: ProcessMark,
}

impl SupervisorHandle {
    /// Starts the helper. It creates its own session, and ends with everything under it when its standard
    /// input closes.
    pub fn start(mut command: Command) -> io::Result<(Child, SupervisorHandle)> {
        let mark = ProcessMark::new();
        command.env(MARK_VARIABLE, mark.value());
        let child = tokio::process::Command::from(command).kill_on_drop(false).spawn()?;
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Ok((child, SupervisorHandle { helper: id.and_then(Pid::from_raw), mark }))
    }

    /// Makes the helper end everything, with SIGTERM first and then SIGKILL.
    pub fn terminate(&self) {
        if let Some(helper) = self.helper {
            // If it has already ended, there is nothing left to do.
            let _ = kill_process(helper, Signal::TERM);
        }
    }

    /// The helper has ended, so its process id may be reused.
    pub fn set_exited(&mut self) {
        self.helper = None;
    }

    /// For a helper that was killed or hangs. Kills it and all processes with its mark, and returns how many
    /// there were.
    pub fn kill_marked(&mut self) -> usize {
        if let Some(helper) = self.helper.take() {
            let _ = kill_process(helper, Signal::KILL);
        }
        let mut ended = 0;
        // Repeat, because a process may fork in the meantime.
        for _ in 0..8 {
            let escaped = processes_with_mark(&self.mark);
            if escaped.is_empty() {
                break;
            }
            ended += escaped.len();
            for pid in escaped {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        ended
    }
}

/// Ends everything before returning, because this process may be about to exit.
impl Drop for SupervisorHandle {
    fn drop(&mut self) {
        let Some(helper) = self.helper else { return };
        self.terminate();
        let deadline = Instant::now() + DROP_TIMEOUT;
        while is_running(helper) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// A zombie does not count as running.
fn is_running(pid: Pid) -> bool {
    match fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())) {
        Ok(stat) => !stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X'])),
        Err(_) => !std::path::Path::new("/proc/self").exists() && rustix::process::test_kill_process(pid).is_ok(),
    }
}

fn processes_with_mark(mark: &ProcessMark) -> Vec<Pid> {
    let mut found = all_processes();
    found.retain(|pid| {
        let variables = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
        mark.is_in(&variables)
    });
    found
}

fn all_processes() -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok().and_then(Pid::from_raw)).collect()
}
