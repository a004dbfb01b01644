//! Starts the supervisor process, for synchronous callers.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use crate::confine::Helper;
use crate::launch::{self, Launch, LaunchReport};

/// More than any self-test prints.
const MAX_OUTPUT: u64 = 64 * 1024;

/// A helper process that waits to be told which command to run. Closing the socket ends it
/// and everything under it.
#[derive(Debug)]
pub struct WaitingHelper {
    child: Child,
    control: UnixStream,
}

impl WaitingHelper {
    /// Starts the helper.
    pub fn start(command: &mut Command) -> io::Result<WaitingHelper> {
        let (control, theirs) = UnixStream::pair()?;
        let child = command.stdin(Stdio::from(OwnedFd::from(theirs))).spawn()?;
        // `command` would keep the other end open, and reading the report would block.
        command.stdin(Stdio::null());
        Ok(WaitingHelper { child, control })
    }

    /// Sends it the launch. Keep the socket open while the command may run.
    pub fn send(mut self, launch: &Launch) -> io::Result<(Child, UnixStream)> {
        match launch::write_frame(&mut self.control, launch) {
            Ok(()) => Ok((self.child, self.control)),
            Err(error) => {
                // Without a launch it exits at once.
                drop(self.control);
                self.child.wait()?;
                Err(error)
            }
        }
    }

    /// Runs the command and returns after its report. The helper may not have exited yet.
    pub fn run_until_report(self, launch: &Launch) -> io::Result<(Child, LaunchReport)> {
        let (child, mut control) = self.send(launch)?;
        Ok((child, launch::read_frame(&mut control)?))
    }
}

/// Starts the helper and sends it the launch.
pub fn start(command: &mut Command, launch: &Launch) -> io::Result<(Child, UnixStream)> {
    WaitingHelper::start(command)?.send(launch)
}

/// Runs the command with our own outputs, and returns when the helper has exited.
pub fn run_and_wait(mut helper: Command, launch: &Launch) -> io::Result<LaunchReport> {
    let (mut child, report) = WaitingHelper::start(&mut helper)?.run_until_report(launch)?;
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
