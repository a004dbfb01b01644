//! Starts the supervisor process, for synchronous callers.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use crate::confine::Helper;
use crate::launch::{self, Launch, LaunchReport};

/// More than any self-test prints.
const MAX_OUTPUT: u64 = 64 * 1024;

/// Starts the helper and sends it the launch. Keep the socket open while the command may
/// run: closing it ends everything.
pub fn start(command: &mut Command, launch: &Launch) -> io::Result<(Child, UnixStream)> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let frame = launch::encode_frame(launch)?;
    // Write what fits into the socket buffer before starting the helper, so that neither side
    // waits.
    let (early, late) = frame.split_at(if frame.len() <= launch::ALWAYS_BUFFERED { frame.len() } else { 0 });
    ours.write_all(early)?;
    let child = command.stdin(Stdio::from(OwnedFd::from(theirs))).spawn()?;
    // `command` would keep the other end open, and reading the report would block.
    command.stdin(Stdio::null());
    ours.write_all(late)?;
    Ok((child, ours))
}

/// Runs the command with our own outputs and returns after its report. The helper may not
/// have exited yet.
pub fn run_until_report(mut helper: Command, launch: &Launch) -> io::Result<(Child, LaunchReport)> {
    let (child, mut control) = start(&mut helper, launch)?;
    Ok((child, launch::read_frame(&mut control)?))
}

/// The same, but waits for the helper to exit.
pub fn run_and_wait(helper: Command, launch: &Launch) -> io::Result<LaunchReport> {
    let (mut child, report) = run_until_report(helper, launch)?;
    child.wait()?;
    Ok(report)
}

/// Runs the command and collects both of its outputs.
pub(crate) fn run_with_output(helper: &Helper, launch: &Launch) -> io::Result<(LaunchReport, Vec<u8>)> {
    let (reader, writer) = io::pipe()?;
    let mut command = helper.command();
    command.stdout(writer.try_clone()?).stderr(writer);
    let (mut child, mut control) = start(&mut command, launch)?;
    drop(command);
    let mut output = Vec::new();
    reader.take(MAX_OUTPUT).read_to_end(&mut output)?;
    let report = launch::read_frame(&mut control);
    child.wait()?;
    Ok((report?, output))
}
