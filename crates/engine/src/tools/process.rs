//! One command, run to its end with everything it started.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::process::{Command, Stdio};
use std::time::Duration;

use aside_confine::launch::{self, Launch};
use aside_confine::{End as Reported, Report};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Child;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::group::Group;
use super::kept::Kept;

/// How long the helper has to end everything once it is told to. It asks first,
/// then it kills, then it waits for the kernel.
const ENDING: Duration = Duration::from_secs(5);
/// How long output may still come once everything has ended. Somebody else may
/// hold the pipe open for ever.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// No report is longer.
const MOST_REPORT: u32 = 1024 * 1024;

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) output: Kept,
    pub(crate) end: End,
    /// Something it had put into the background was still running.
    pub(crate) ended_others: bool,
    /// Processes that could not be ended.
    pub(crate) left: Vec<i32>,
    /// Protected paths that it changed, and that were put back.
    pub(crate) restored: Vec<String>,
    /// Protected paths that it changed, and that stay changed.
    pub(crate) changed: Vec<String>,
    pub(crate) troubles: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum End {
    Exited(i32),
    Signalled(i32),
    TimedOut,
    Cancelled,
    NotStarted(String),
    /// Its helper was ended by somebody.
    HelperLost,
}

/// Runs the launch by the helper that the command starts. When this returns,
/// nothing of it runs any more; when it is dropped, that is so soon after.
pub(crate) async fn run(
    mut command: Command,
    launch: &Launch,
    limit: Duration,
    most_output: usize,
    cancel: &CancellationToken,
) -> io::Result<Ran> {
    // One pipe for both, so that lines stand in the order they were written.
    let (reader, writer) = io::pipe()?;
    let mut pipe = Receiver::from_owned_fd(reader.into())?;
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let (hear, mut tell) = UnixStream::from_std(ours)?.into_split();
    command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(writer.try_clone()?).stderr(writer);
    let frame = launch::framed(launch)?;
    // The command holds our ends of the pipes, and they would never close.
    let (mut child, mut group) = Group::start(command)?;
    let mut output = Kept::new(most_output);
    let (report, early) = {
        let mut attended = pin!(attend(hear, &mut pipe, &mut output));
        let launched = async {
            drop(timeout(ENDING, tell.write_all(&frame)).await);
            attended.as_mut().await
        };
        let asked = tokio::select! {
            report = launched => Ok(report),
            () = sleep(limit) => Err(End::TimedOut),
            () = cancel.cancelled() => Err(End::Cancelled),
        };
        match asked {
            Ok(report) => (report.ok(), None),
            Err(early) => {
                // Closing our side is how the helper is told.
                drop(tell);
                let report = timeout(ENDING, attended).await;
                (report.ok().and_then(Result::ok), Some(early))
            }
        }
    };
    let report = match report {
        Some(report) => {
            // The helper has nothing more to do, and is not waited for.
            group.has_ended();
            report
        }
        None => lost(&mut child, &mut group).await,
    };
    drain(&mut pipe, &mut output).await;
    Ok(ran(output, report, early))
}

fn ran(output: Kept, report: Report, early: Option<End>) -> Ran {
    let Report { end, ended_others, left, restored, changed, troubles } = report;
    let end = match (end, early) {
        (Reported::NotStarted(why), _) => End::NotStarted(why),
        (_, Some(early)) => early,
        (Reported::Exited(code), None) => End::Exited(code),
        (Reported::Signalled(signal), None) => End::Signalled(signal),
        (Reported::Stopped, None) => End::HelperLost,
    };
    Ran { output, end, ended_others, left, restored, changed, troubles }
}

/// There is no report: the helper was killed or hangs. What it held is found by
/// its mark.
async fn lost(child: &mut Child, group: &mut Group) -> Report {
    let ended = group.end_by_mark();
    drop(timeout(ENDING, child.wait()).await);
    Report {
        end: Reported::Stopped,
        ended_others: ended > 0,
        left: Vec::new(),
        restored: Vec::new(),
        changed: Vec::new(),
        troubles: vec!["protected paths were not looked at afterwards".to_owned()],
    }
}

/// Takes in what is written, and waits for the report.
async fn attend(mut hear: OwnedReadHalf, pipe: &mut Receiver, output: &mut Kept) -> io::Result<Report> {
    let report = async {
        let length = hear.read_u32().await?;
        if length > MOST_REPORT {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut json = vec![0; length as usize];
        hear.read_exact(&mut json).await?;
        Ok(serde_json::from_slice(&json)?)
    };
    tokio::select! {
        report = report => report,
        never = listen(pipe, output) => match never {},
    }
}

/// Takes in what is written, for as long as somebody waits for this.
async fn listen(pipe: &mut Receiver, output: &mut Kept) -> std::convert::Infallible {
    while take_in(pipe, output).await {}
    std::future::pending().await
}

async fn drain(pipe: &mut Receiver, output: &mut Kept) {
    let deadline = Instant::now() + LAST_WORDS;
    loop {
        tokio::select! {
            more = take_in(pipe, output) => if !more { break },
            () = sleep_until(deadline) => break,
        }
    }
}

/// One piece; false when there will be no more.
async fn take_in(pipe: &mut Receiver, output: &mut Kept) -> bool {
    let mut buffer = [0; 16 * 1024];
    match pipe.read(&mut buffer).await {
        Ok(0) | Err(_) => false,
        Ok(count) => {
            output.push(buffer.get(..count).unwrap_or_default());
            true
        }
    }
}
