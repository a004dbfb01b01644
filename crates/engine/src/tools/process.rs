//! Runs one command and ends everything it started.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::process::{Command, Stdio};
use std::time::Duration;

use aside_confine::launch::{self, Launch};
use aside_confine::{CommandEnd, LaunchReport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Child;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::bounded_output::BoundedOutput;
use super::live_output::CollectedOutput;
use super::supervisor_handle::SupervisorHandle;

/// How long the helper may take to end everything: it sends SIGTERM, then SIGKILL, then waits for the
/// processes to exit.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to read remaining output once everything has ended. Another process may hold the pipe open
/// forever.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
const MAX_REPORT: u32 = 1024 * 1024;

/// The result of a command.
#[derive(Debug)]
pub(crate) struct CommandRun {
    pub(crate) output: BoundedOutput,
    pub(crate) end: RunEnd,
    /// Some of its background processes were still running.
    pub(crate) killed_background: bool,
    /// Processes that could not be killed.
    pub(crate) survivors: Vec<i32>,
    /// Protected paths that it changed and that were restored.
    pub(crate) restored: Vec<String>,
    /// Protected paths that it changed and that stay changed.
    pub(crate) changed: Vec<String>,
    pub(crate) problems: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum RunEnd {
    Exited(i32),
    Signalled(i32),
    TimedOut,
    Cancelled,
    NotStarted(String),
    /// The helper process was killed.
    SupervisorLost,
}

/// A helper process that waits to be told which command to run. Its start takes longer than everything else
/// that it does for a short command, so it is started ahead of the command. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct WaitingHelper {
    child: Child,
    handle: SupervisorHandle,
    /// Where the launch goes, and where the report comes from.
    control: UnixStream,
    /// The command's output.
    pipe: Receiver,
}

impl WaitingHelper {
    pub(crate) fn start(mut command: Command) -> io::Result<WaitingHelper> {
        // One pipe for stdout and stderr, so that their lines stay in order.
        let (reader, writer) = io::pipe()?;
        let pipe = Receiver::from_owned_fd(reader.into())?;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let control = UnixStream::from_std(ours)?;
        command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(writer.try_clone()?).stderr(writer);
        // This drops `command` with its write ends of the pipe; otherwise the pipe would never close.
        let (child, handle) = SupervisorHandle::start(command)?;
        Ok(WaitingHelper { child, handle, control, pipe })
    }

    /// Whether it still waits. Something else may have killed it.
    pub(crate) fn is_alive(&mut self) -> bool {
        let is_alive = matches!(self.child.try_wait(), Ok(None));
        if !is_alive {
            self.handle.set_exited();
        }
        is_alive
    }
}

/// Has the helper run a command. When this returns, none of the processes is left; when it is dropped, they
/// end soon after.
pub(crate) async fn run(
    helper: WaitingHelper,
    launch: &Launch,
    limit: Duration,
    mut output: CollectedOutput,
    cancel: &CancellationToken,
) -> io::Result<CommandRun> {
    let WaitingHelper { mut child, handle: mut helper, control, mut pipe } = helper;
    let (from_helper, mut to_helper) = control.into_split();
    let frame = launch::encode_frame(launch)?;
    let (report, early) = {
        let mut reporting = pin!(read_report(from_helper, &mut pipe, &mut output));
        let launched = async {
            drop(timeout(SHUTDOWN_TIMEOUT, to_helper.write_all(&frame)).await);
            reporting.as_mut().await
        };
        let finished = tokio::select! {
            report = launched => Ok(report),
            () = sleep(limit) => Err(RunEnd::TimedOut),
            () = cancel.cancelled() => Err(RunEnd::Cancelled),
        };
        match finished {
            Ok(report) => (report.ok(), None),
            Err(early) => {
                // Closing our side tells the helper to end everything.
                drop(to_helper);
                let report = timeout(SHUTDOWN_TIMEOUT, reporting).await;
                (report.ok().and_then(Result::ok), Some(early))
            }
        }
    };
    let report = match report {
        Some(report) => {
            // The helper is done; there is no need to wait for it.
            helper.set_exited();
            report
        }
        None => report_lost_helper(&mut child, &mut helper).await,
    };
    drain(&mut pipe, &mut output).await;
    Ok(command_run(output.all, report, early))
}

fn command_run(output: BoundedOutput, report: LaunchReport, early: Option<RunEnd>) -> CommandRun {
    let LaunchReport { end, killed_background, survivors, restored, changed, problems } = report;
    let end = match (end, early) {
        (CommandEnd::NotStarted(why), _) => RunEnd::NotStarted(why),
        (_, Some(early)) => early,
        (CommandEnd::Exited(code), None) => RunEnd::Exited(code),
        (CommandEnd::Signalled(signal), None) => RunEnd::Signalled(signal),
        (CommandEnd::Stopped, None) => RunEnd::SupervisorLost,
    };
    CommandRun { output, end, killed_background, survivors, restored, changed, problems }
}

/// The report for a helper that was killed or hangs. Its processes are found by their mark.
async fn report_lost_helper(child: &mut Child, helper: &mut SupervisorHandle) -> LaunchReport {
    let ended = helper.kill_marked();
    drop(timeout(SHUTDOWN_TIMEOUT, child.wait()).await);
    LaunchReport {
        end: CommandEnd::Stopped,
        killed_background: ended > 0,
        survivors: Vec::new(),
        restored: Vec::new(),
        changed: Vec::new(),
        problems: vec!["protected paths were not checked afterwards".to_owned()],
    }
}

/// Reads output until the report arrives.
async fn read_report(
    mut from_helper: OwnedReadHalf,
    pipe: &mut Receiver,
    output: &mut CollectedOutput,
) -> io::Result<LaunchReport> {
    let report = async {
        let length = from_helper.read_u32().await?;
        if length > MAX_REPORT {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut json = vec![0; length as usize];
        from_helper.read_exact(&mut json).await?;
        Ok(serde_json::from_slice(&json)?)
    };
    tokio::select! {
        report = report => report,
        never = read_forever(pipe, output) => match never {},
    }
}

/// Reads output until it is dropped.
async fn read_forever(pipe: &mut Receiver, output: &mut CollectedOutput) -> std::convert::Infallible {
    loop {
        let due = output.due_at();
        tokio::select! {
            more = read_chunk(pipe, output) => if !more { break },
            () = CollectedOutput::due(due) => output.report(),
        }
    }
    std::future::pending().await
}

async fn drain(pipe: &mut Receiver, output: &mut CollectedOutput) {
    let deadline = Instant::now() + DRAIN_TIMEOUT;
    loop {
        tokio::select! {
            more = read_chunk(pipe, output) => if !more { break },
            () = sleep_until(deadline) => break,
        }
    }
}

/// Reads one chunk; returns false at the end.
async fn read_chunk(pipe: &mut Receiver, output: &mut CollectedOutput) -> bool {
    let mut buffer = [0; 16 * 1024];
    match pipe.read(&mut buffer).await {
        Ok(0) | Err(_) => false,
        Ok(count) => {
            output.push(buffer.get(..count).unwrap_or_default());
            true
        }
    }
}
