//! One command, run to its end with everything it started.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::group::Group;
use super::kept::Kept;

/// How long a command has to end by itself once it is told to.
const GRACE: Duration = Duration::from_millis(500);
/// How long output may still come once the command has ended. Somebody else may
/// hold the pipe open for ever.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) output: Kept,
    pub(crate) end: End,
    /// Something it had put into the background was still running.
    pub(crate) ended_others: bool,
}

#[derive(Debug)]
pub(crate) enum End {
    Exited(ExitStatus),
    TimedOut,
    Cancelled,
}

/// Runs the command in a process group of its own. When this returns, or is
/// dropped, nothing of the group runs any more.
pub(crate) async fn run(
    mut command: Command,
    limit: Duration,
    most_output: usize,
    cancel: &CancellationToken,
) -> io::Result<Ran> {
    // One pipe for both, so that lines stand in the order they were written.
    let (reader, writer) = io::pipe()?;
    let mut pipe = Receiver::from_owned_fd(reader.into())?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let (mut child, mut group) = Group::start(&mut command)?;
    // It holds our ends of the pipe, and the output would never end.
    drop(command);
    let mut output = Kept::new(most_output);
    let end = tokio::select! {
        status = watch(&mut child, &mut pipe, &mut output) => End::Exited(status?),
        () = sleep(limit) => End::TimedOut,
        () = cancel.cancelled() => End::Cancelled,
    };
    let ended_others = match end {
        End::Exited(_) => {
            drain(&mut pipe, &mut output).await;
            group.end()
        }
        End::TimedOut | End::Cancelled => {
            group.ask_to_end();
            drop(timeout(GRACE, watch(&mut child, &mut pipe, &mut output)).await);
            group.end_with_escaped();
            child.wait().await?;
            false
        }
    };
    drain(&mut pipe, &mut output).await;
    Ok(Ran { output, end, ended_others })
}

/// Takes in what is written until the command itself ends.
async fn watch(child: &mut Child, pipe: &mut Receiver, output: &mut Kept) -> io::Result<ExitStatus> {
    tokio::select! {
        status = child.wait() => status,
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
