//! The processes below this one.

use std::collections::HashMap;
use std::fs;

use rustix::process::{Pid, Signal, getpid, kill_process};

/// A process below this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Below {
    pub(crate) pid: Pid,
    /// A child of ours has 1.
    pub(crate) depth: usize,
    /// It has ended, and nobody has asked how.
    pub(crate) is_dead: bool,
}

/// All of them, as `/proc` has them at this moment. They may fork while this is
/// read, so whoever ends them looks again.
pub(crate) fn below() -> Vec<Below> {
    let mut children: HashMap<i32, Vec<(i32, bool)>> = HashMap::new();
    for (pid, parent, is_dead) in processes() {
        children.entry(parent).or_default().push((pid, is_dead));
    }
    let mut found = Vec::new();
    let mut level = vec![getpid().as_raw_nonzero().get()];
    let mut depth = 0;
    while !level.is_empty() {
        depth += 1;
        let next: Vec<(i32, bool)> = level.iter().filter_map(|parent| children.remove(parent)).flatten().collect();
        let below = next
            .iter()
            .filter_map(|(pid, is_dead)| Some(Below { pid: Pid::from_raw(*pid)?, depth, is_dead: *is_dead }));
        found.extend(below);
        level = next.into_iter().map(|(pid, _)| pid).collect();
    }
    found
}

/// Sends the signal to those that are deeper than `above`.
pub(crate) fn signal(signal: Signal, above: usize) {
    for process in below().into_iter().filter(|process| process.depth > above && !process.is_dead) {
        // It may have ended since.
        let _ = kill_process(process.pid, signal);
    }
}

/// Ends all of them. They are stopped first, so that none forks on.
pub(crate) fn kill() {
    signal(Signal::STOP, 0);
    signal(Signal::KILL, 0);
}

/// Process, parent, and whether it is dead.
fn processes() -> Vec<(i32, i32, bool)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name before it may hold anything: `pid (name) state parent …`.
        let behind = stat.iter().rposition(|byte| *byte == b')')?;
        let fields = String::from_utf8_lossy(stat.get(behind + 1..)?).into_owned();
        let mut fields = fields.split_whitespace();
        let is_dead = matches!(fields.next()?, "Z" | "X");
        Some((pid, fields.next()?.parse().ok()?, is_dead))
    })
    .collect()
}
