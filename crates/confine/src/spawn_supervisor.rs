//! Starts the supervisor process, for synchronous callers.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use crate::confine::Helper;
use crate::launch::{self, Launch, LaunchReport};

/// More than any self-test prints.
const MAX_OUTPUT: u64 = 64 * 1024;

/// Starts the helper and sends it the launch, which is created while the helper starts.
/// Keep the socket open while the command may run: closing it ends everything.
pub fn start(command: &mut Command, launch: impl FnOnce() -> io::Result<Launch>) -> io::Result<(Child, UnixStream)> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let mut child = command.stdin(Stdio::from(OwnedFd::from(theirs))).spawn()?;
    // `command` would keep the other end open, and reading the report would block.
    command.stdin(Stdio::null());
    match launch().and_then(|launch| launch::write_frame(&mut ours, &launch)) {
        Ok(()) => Ok((child, ours)),
        Err(error) => {
            // Without a launch it exits at once.
            drop(ours);
            child.wait()?;
            Err(error)
        }
    }
}

/// Runs the command with our own outputs and returns after its report. The helper may not
/// have exited yet.
pub fn run_until_report(
    mut helper: Command,
    launch: impl FnOnce() -> io::Result<Launch>,
) -> io::Result<(Child, LaunchReport)> {
    let (child, mut control) = start(&mut helper, launch)?;
    Ok((child, launch::read_frame(&mut control)?))
}

/// The same, but waits for the helper to exit.
pub fn run_and_wait(helper: Command, launch: Launch) -> io::Result<LaunchReport> {
    let (mut child, report) = run_until_report(helper, || Ok(launch))?;
    child.wait()?;
    Ok(report)
}

/// Runs the command and collects both of its outputs.
pub(crate) fn run_with_output(helper: &Helper, launch: Launch) -> io::Result<(LaunchReport, Vec<u8>)> {
    let (reader, writer) = io::pipe()?;
    let mut command = helper.command();
    command.stdout(writer.try_clone()?).stderr(writer);
    let (mut child, mut control) = start(&mut command, || Ok(launch))?;
    drop(command);
    let mut output = Vec::new();
    reader.take(MAX_OUTPUT).read_to_end(&mut output)?;
    let report = launch::read_frame(&mut control);
    child.wait()?;
    Ok((report?, output))
}
