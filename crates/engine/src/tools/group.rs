//! Everything a process of ours started, so that none of it is left behind.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, Command};

/// Every process of a command inherits it, also one that left the group.
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

/// A process and all that it started. Nothing of it outlives this value.
#[derive(Debug)]
pub struct Group {
    leader: Option<Pid>,
    mark: Mark,
}

impl Group {
    /// Starts the command as the first of a group of its own.
    pub fn start(command: &mut Command) -> io::Result<(Child, Group)> {
        let mark = Mark::new();
        let child = command.process_group(0).kill_on_drop(true).env(MARK, mark.value()).spawn()?;
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Ok((child, Group { leader: id.and_then(Pid::from_raw), mark }))
    }

    pub fn ask_to_end(&self) {
        if let Some(leader) = self.leader {
            // An empty group is an ended one.
            let _ = kill_process_group(leader, Signal::TERM);
        }
    }

    /// Ends what is left of the group and says whether there was anything.
    /// What left the group on purpose is a daemon and stays.
    pub fn end(&mut self) -> bool {
        let Some(leader) = self.leader.take() else { return false };
        let alive = has_living_members(leader);
        let _ = kill_process_group(leader, Signal::KILL);
        alive
    }

    /// The command did not end by itself, so nothing of it is a daemon.
    pub fn end_with_escaped(&mut self) {
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
