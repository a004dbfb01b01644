//! The output of a command while it runs.

use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use super::BoundedOutput;
use crate::running_updates::RunningUpdate;

/// How much of the newest output is reported.
const TAIL_BYTES: usize = 2048;
/// The output is reported at most this often.
const INTERVAL: Duration = Duration::from_millis(100);

/// Where a running call reports its newest output.
#[derive(Debug, Clone)]
pub struct LiveOutput {
    call: String,
    updates: UnboundedSender<RunningUpdate>,
}

impl LiveOutput {
    pub(crate) fn new(call: &str, updates: &UnboundedSender<RunningUpdate>) -> LiveOutput {
        LiveOutput { call: call.to_owned(), updates: updates.clone() }
    }
}

/// All output within its limit, and the newest lines for the user.
pub(crate) struct CollectedOutput {
    pub(crate) all: BoundedOutput,
    live: Option<LiveOutput>,
    tail: Vec<u8>,
    n_lines: u64,
    ends_in_line: bool,
    /// When the newest output is reported.
    due: Option<Instant>,
}

impl CollectedOutput {
    pub(crate) fn new(most: usize, live: Option<LiveOutput>) -> CollectedOutput {
        let all = BoundedOutput::new(most);
        CollectedOutput { all, live, tail: Vec::new(), n_lines: 0, ends_in_line: false, due: None }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.all.push(bytes);
        if self.live.is_none() || bytes.is_empty() {
            return;
        }
        self.n_lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.ends_in_line = bytes.last() != Some(&b'\n');
        let newest = bytes.get(bytes.len().saturating_sub(TAIL_BYTES)..).unwrap_or(bytes);
        self.tail.drain(..(self.tail.len() + newest.len()).saturating_sub(TAIL_BYTES).min(self.tail.len()));
        self.tail.extend_from_slice(newest);
        self.due.get_or_insert_with(|| Instant::now() + INTERVAL);
    }

    /// Waits until there is output to report.
    pub(crate) async fn due(at: Option<Instant>) {
        match at {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.due
    }

    pub(crate) fn report(&mut self) {
        self.due = None;
        let Some(LiveOutput { call, updates }) = &self.live else { return };
        let tail = String::from_utf8_lossy(&self.tail).into_owned();
        let n_lines = self.n_lines + u64::from(self.ends_in_line);
        // The turn may have ended.
        drop(updates.send(RunningUpdate::Output { call: call.clone(), tail, n_lines }));
    }
}
