//! The process of a server: confined, below a helper of its own, and gone with its
//! session.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aside_confine::{Approval, Input, Want, launch};
use aside_engine::tools::{Group, Kept};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Sender;
use tokio::process::{ChildStderr, ChildStdout};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::server::Surroundings;

/// What a server finds in its environment beside what its table names.
const GIVEN: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];
/// How long the helper has to end everything: first it waits, then it asks, then
/// it kills.
const ENDING: Duration = Duration::from_secs(3);
/// How long its last words may take to arrive.
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
        want: Want,
        around: &Surroundings,
    ) -> io::Result<(Process, ChildStdout, Sender)> {
        let path = variables.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.into());
        let path = path.or_else(|| std::env::var_os("PATH"));
        find(program, path.as_deref(), &around.folder)?;
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        // A server runs as long as the session: what the person changes meanwhile
        // must not be taken for its work and undone.
        let launch = around.confine.launch(program, &words, want, Approval::ByHand, Input::Passed);
        let mut launch = launch.map_err(io::Error::other)?;
        launch.folder = around.folder.as_path().into();
        let frame = launch::framed(&launch)?;
        let (theirs, mut ours) = io::pipe()?;
        let mut command = around.confine.helper().command();
        command.env_clear().current_dir(&around.folder);
        command.envs(GIVEN.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.stdin(theirs).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut child, group) = Group::start(command)?;
        let pipes = child.stdout.take().zip(child.stderr.take());
        let Some((stdout, stderr)) = pipes else { return Err(io::ErrorKind::BrokenPipe.into()) };
        // What is to be started goes first, then what is said to the server. The
        // helper reads it at once.
        ours.write_all(&frame)?;
        let stdin = Sender::from_owned_fd(ours.into())?;
        let group = Arc::new(Mutex::new(group));
        let ended = CancellationToken::new();
        let said = Arc::new(Mutex::new(Kept::new(MOST_LAST_WORDS)));
        let heard_out = CancellationToken::new();
        tokio::spawn(listen(stderr, Arc::clone(&said), heard_out.clone()));
        let (watched, over) = (Arc::clone(&group), ended.clone());
        tokio::spawn(async move {
            let status = child.wait().await;
            // A helper that was killed left what it held behind. Else its number is
            // given back at once: later it may be somebody else's.
            match status.is_ok_and(|status| status.code().is_some()) {
                true => lock(&watched).has_ended(),
                false => drop(lock(&watched).end_by_mark()),
            }
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

    /// Its input was closed, which tells it to end; its helper sees to that.
    pub(crate) async fn end(&self) {
        if timeout(ENDING, self.ended.cancelled()).await.is_err() {
            // Somebody still holds its input.
            lock(&self.group).ask_to_end();
            if timeout(ENDING, self.ended.cancelled()).await.is_err() {
                lock(&self.group).end_by_mark();
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.ended.is_cancelled() {
            lock(&self.group).ask_to_end();
        }
    }
}

/// The program as it would be found. The helper would say that it is not there,
/// but only after everything else was set up.
fn find(program: &str, path: Option<&OsStr>, folder: &Path) -> io::Result<()> {
    let whole = folder.join(program);
    let is_there = match program.contains('/') {
        true => whole.exists(),
        false => path.is_none_or(|path| std::env::split_paths(path).any(|place| place.join(program).exists())),
    };
    if is_there { Ok(()) } else { std::fs::metadata(whole).map(drop) }
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
