//! The process of a server, confined and supervised by its own helper process. It ends with the session.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aside_confine::{Approval, CommandInput, RequestedAccess, launch};
use aside_engine::tools::{BoundedOutput, SupervisorHandle};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Sender;
use tokio::process::{ChildStderr, ChildStdout};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::server_config::ServerEnvironment;

/// The variables that a server inherits in addition to those of its table.
const INHERITED_VARIABLES: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];
/// How long the helper may take to end everything: it waits first, then sends SIGTERM, then SIGKILL.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the rest of standard error may take to arrive.
const STDERR_TIMEOUT: Duration = Duration::from_millis(400);
/// How much of standard error is kept.
const MAX_STDERR: usize = 4 * 1024;

pub(crate) struct ServerProcess {
    helper: Arc<Mutex<SupervisorHandle>>,
    ended: CancellationToken,
    /// Standard error so far, and whether it has been closed.
    stderr_text: Arc<Mutex<BoundedOutput>>,
    stderr_closed: CancellationToken,
    unusable: AtomicBool,
}

impl ServerProcess {
    pub(crate) fn start(
        program: &str,
        arguments: &[String],
        variables: &[(String, String)],
        access: RequestedAccess,
        environment: &ServerEnvironment,
    ) -> io::Result<(ServerProcess, ChildStdout, Sender)> {
        let path = variables.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.into());
        let path = path.or_else(|| std::env::var_os("PATH"));
        find(program, path.as_deref(), &environment.folder)?;
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        // `ByUser` turns off restoring: a server runs as long as the session, and the user's own changes to
        // protected paths must not be undone.
        let launch = environment.confine.launch(program, &words, access, Approval::ByUser, CommandInput::Forwarded);
        let mut launch = launch.map_err(io::Error::other)?;
        launch.folder = environment.folder.as_path().into();
        let frame = launch::encode_frame(&launch)?;
        let (theirs, mut ours) = io::pipe()?;
        let mut command = environment.confine.helper().command();
        command.env_clear().current_dir(&environment.folder);
        command.envs(INHERITED_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.stdin(theirs).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut child, helper) = SupervisorHandle::start(command)?;
        let pipes = child.stdout.take().zip(child.stderr.take());
        let Some((stdout, stderr)) = pipes else { return Err(io::ErrorKind::BrokenPipe.into()) };
        // The launch comes first, then the messages to the server. The helper reads the launch at once.
        ours.write_all(&frame)?;
        let stdin = Sender::from_owned_fd(ours.into())?;
        let helper = Arc::new(Mutex::new(helper));
        let ended = CancellationToken::new();
        let stderr_text = Arc::new(Mutex::new(BoundedOutput::new(MAX_STDERR)));
        let stderr_closed = CancellationToken::new();
        tokio::spawn(read_stderr(stderr, Arc::clone(&stderr_text), stderr_closed.clone()));
        let (watched, over) = (Arc::clone(&helper), ended.clone());
        tokio::spawn(async move {
            let status = child.wait().await;
            // If the helper was killed, its processes are still running. Otherwise its process id may be
            // reused from now on.
            match status.is_ok_and(|status| status.code().is_some()) {
                true => lock(&watched).set_exited(),
                false => drop(lock(&watched).kill_marked()),
            }
            over.cancel();
        });
        Ok((
            ServerProcess { helper, ended, stderr_text, stderr_closed, unusable: AtomicBool::new(false) },
            stdout,
            stdin,
        ))
    }

    /// The connection broke, so the process is useless even if it still runs.
    pub(crate) fn mark_unusable(&self) {
        self.unusable.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.unusable.load(Ordering::Relaxed) || self.ended.is_cancelled()
    }

    /// The last line of standard error.
    pub(crate) async fn last_stderr_line(&self) -> Option<String> {
        // What it wrote before it ended may still be in the pipe.
        drop(timeout(STDERR_TIMEOUT, self.stderr_closed.cancelled()).await);
        let text = lock(&self.stderr_text).text();
        let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
        Some(line.chars().take(200).collect())
    }

    /// Waits for the helper to end the process, whose standard input was closed.
    pub(crate) async fn end(&self) {
        if timeout(SHUTDOWN_TIMEOUT, self.ended.cancelled()).await.is_err() {
            // Another process still holds its standard input.
            lock(&self.helper).terminate();
            if timeout(SHUTDOWN_TIMEOUT, self.ended.cancelled()).await.is_err() {
                lock(&self.helper).kill_marked();
            }
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if !self.ended.is_cancelled() {
            lock(&self.helper).terminate();
        }
    }
}

/// Checks that the program exists. The helper would report it too, but only after the whole setup.
fn find(program: &str, path: Option<&OsStr>, folder: &Path) -> io::Result<()> {
    let whole = folder.join(program);
    let is_there = match program.contains('/') {
        true => whole.exists(),
        false => path.is_none_or(|path| std::env::split_paths(path).any(|place| place.join(program).exists())),
    };
    if is_there { Ok(()) } else { std::fs::metadata(whole).map(drop) }
}

/// Reads standard error, so that the server does not block on a full pipe.
async fn read_stderr(
    mut stderr: ChildStderr,
    stderr_text: Arc<Mutex<BoundedOutput>>,
    stderr_closed: CancellationToken,
) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        lock(&stderr_text).push(buffer.get(..count).unwrap_or_default());
    }
    stderr_closed.cancel();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
