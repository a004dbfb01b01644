//! The process of a server: in a group of its own, and gone with its session.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aside_engine::tools::{Group, Kept};
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::server::Surroundings;

/// How long one has to end by itself once nobody talks to it any more, and once
/// more when it was told to.
const GRACE: Duration = Duration::from_millis(400);
/// How much is kept of what it writes to standard error.
const MOST_LAST_WORDS: usize = 4 * 1024;

pub(crate) struct Process {
    group: Arc<Mutex<Group>>,
    ended: CancellationToken,
    /// What it wrote to standard error, and whether that is all.
    said: Arc<Mutex<Kept>>,
    heard_out: CancellationToken,
    given_up: AtomicBool,
}

impl Process {
    pub(crate) fn start(
        program: &str,
        arguments: &[String],
        variables: &[(String, String)],
        around: &Surroundings,
    ) -> std::io::Result<(Process, ChildStdout, ChildStdin)> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&around.folder);
        for hidden in &around.hidden_variables {
            command.env_remove(hidden);
        }
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut child, group) = Group::start(&mut command)?;
        let pipes = child.stdout.take().zip(child.stdin.take()).zip(child.stderr.take());
        let Some(((stdout, stdin), stderr)) = pipes else { return Err(std::io::ErrorKind::BrokenPipe.into()) };
        let group = Arc::new(Mutex::new(group));
        let ended = CancellationToken::new();
        let said = Arc::new(Mutex::new(Kept::new(MOST_LAST_WORDS)));
        let heard_out = CancellationToken::new();
        tokio::spawn(listen(stderr, Arc::clone(&said), heard_out.clone()));
        let (watched, over) = (Arc::clone(&group), ended.clone());
        tokio::spawn(async move {
            drop(child.wait().await);
            // At once: later its number may be somebody else's.
            lock(&watched).end_with_escaped();
            over.cancel();
        });
        Ok((Process { group, ended, said, heard_out, given_up: AtomicBool::new(false) }, stdout, stdin))
    }

    /// It does not listen any more, so it is of no use whatever it does.
    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.given_up.load(Ordering::Relaxed) || self.ended.is_cancelled()
    }

    /// The last line it wrote to standard error.
    pub(crate) async fn last_words(&self) -> Option<String> {
        // What it wrote before it ended may still be in the pipe.
        drop(timeout(GRACE, self.heard_out.cancelled()).await);
        let text = lock(&self.said).text();
        let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
        Some(line.chars().take(200).collect())
    }

    /// Its input was closed, which tells it to end.
    pub(crate) async fn end(&self) {
        if timeout(GRACE, self.ended.cancelled()).await.is_err() {
            lock(&self.group).ask_to_end();
            drop(timeout(GRACE, self.ended.cancelled()).await);
        }
        lock(&self.group).end_with_escaped();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.ended.is_cancelled() {
            lock(&self.group).end_with_escaped();
        }
    }
}

/// Somebody must, or the server waits for room in the pipe.
async fn listen(mut stderr: ChildStderr, said: Arc<Mutex<Kept>>, heard_out: CancellationToken) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        lock(&said).push(buffer.get(..count).unwrap_or_default());
    }
    heard_out.cancel();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
