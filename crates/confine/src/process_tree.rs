//! Finds and signals the descendants of this process.

use std::collections::HashMap;
use std::fs;

use rustix::process::{Pid, Signal, getpid, kill_process};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Descendant {
    pub(crate) pid: Pid,
    /// 1 for a direct child.
    pub(crate) depth: usize,
    /// It has ended but was not reaped.
    pub(crate) is_zombie: bool,
}

/// All descendants according to `/proc`. They may fork during the scan, so a caller that
/// ends them must repeat it.
pub(crate) fn descendants() -> Vec<Descendant> {
    let mut children: HashMap<i32, Vec<(i32, bool)>> = HashMap::new();
    for (pid, parent, is_zombie) in processes() {
        children.entry(parent).or_default().push((pid, is_zombie));
    }
    let mut found = Vec::new();
    let mut level = vec![getpid().as_raw_nonzero().get()];
    let mut depth = 0;
    while !level.is_empty() {
        depth += 1;
        let next: Vec<(i32, bool)> = level.iter().filter_map(|parent| children.remove(parent)).flatten().collect();
        let descendants = next.iter().filter_map(|(pid, is_zombie)| {
            Some(Descendant { pid: Pid::from_raw(*pid)?, depth, is_zombie: *is_zombie })
        });
        found.extend(descendants);
        level = next.into_iter().map(|(pid, _)| pid).collect();
    }
    found
}

/// Signals descendants that are deeper than `above`.
pub(crate) fn signal_descendants(signal: Signal, above: usize) {
    for process in descendants().into_iter().filter(|process| process.depth > above && !process.is_zombie) {
        // It may have ended in the meantime.
        let _ = kill_process(process.pid, signal);
    }
}

/// Kills all descendants. They are stopped first, so that none can fork.
pub(crate) fn kill_descendants() {
    signal_descendants(Signal::STOP, 0);
    signal_descendants(Signal::KILL, 0);
}

/// Process id, parent id, and whether it is a zombie.
fn processes() -> Vec<(i32, i32, bool)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // `pid (name) state parent …`: the name may contain anything.
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let fields = String::from_utf8_lossy(stat.get(name_end + 1..)?).into_owned();
        let mut fields = fields.split_whitespace();
        let is_zombie = matches!(fields.next()?, "Z" | "X");
        Some((pid, fields.next()?.parse().ok()?, is_zombie))
    })
    .collect()
}
