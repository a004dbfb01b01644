//! The helper that a command or a server runs below, and what is done when it
//! is lost.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;

/// How long the helper may take to end everything when nobody waits for it: it asks
/// first, and kills half a second later.
const AT_ONCE: Duration = Duration::from_millis(1500);

/// Every process of a command inherits it. The helper knows its processes as its
/// children; this is for those that it left behind because somebody killed it.
const MARK: &str = "ASIDE_COMMAND";

#[derive(Debug)]
struct Mark(String);

impl Mark {
    fn new() -> Mark {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (count, random) = (COUNT.fetch_add(1, Ordering::Relaxed), fastrand::u64(..));
        Mark(format!("{}-{count}-{random:016x}", std::process::id()))
    }

    /// Its value for a command. When aside runs inside a command of another
    /// aside, what it starts belongs to both.
    fn value(&self) -> OsString {
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

/// A helper and all that runs below it.
#[derive(Debug)]
pub struct Group {
    helper: Option<Pid>,
    mark: Mark,
}

impl Group {
    /// Starts the helper. It makes a session of its own, and ends with everything
    /// below it when its input is closed; nobody has to wait for that.
    pub fn start(mut command: Command) -> io::Result<(Child, Group)> {
        let mark = Mark::new();
        command.env(MARK, mark.value());
        let child = tokio::process::Command::from(command).kill_on_drop(false).spawn()?;
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Ok((child, Group { helper: id.and_then(Pid::from_raw), mark }))
    }

    /// Tells the helper to end everything: first with a request, then by force.
    pub fn ask_to_end(&self) {
        if let Some(helper) = self.helper {
            // One that has ended has left nothing.
            let _ = kill_process(helper, Signal::TERM);
        }
    }

    /// The helper has ended, so its number may be somebody else's.
    pub fn has_ended(&mut self) {
        self.helper = None;
    }

    /// The helper did not do its work: it was killed, or it hangs. Ends it and what
    /// carries the mark, and says how many of those there were.
    pub fn end_by_mark(&mut self) -> usize {
        if let Some(helper) = self.helper.take() {
            let _ = kill_process(helper, Signal::KILL);
        }
        let mut ended = 0;
        // Something may fork while we look.
        for _ in 0..8 {
            let escaped = marked(&self.mark);
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

/// Whoever drops it does not wait for it any more, so it is ended here and now:
/// this process may be about to leave.
impl Drop for Group {
    fn drop(&mut self) {
        let Some(helper) = self.helper else { return };
        self.ask_to_end();
        let deadline = Instant::now() + AT_ONCE;
        while is_running(helper) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// One that has ended and was not waited for yet does not run.
fn is_running(pid: Pid) -> bool {
    match fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())) {
        Ok(stat) => !stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X'])),
        Err(_) => !std::path::Path::new("/proc/self").exists() && rustix::process::test_kill_process(pid).is_ok(),
    }
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
