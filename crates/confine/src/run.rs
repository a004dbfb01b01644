//! Starting the helper, for callers that can wait.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use crate::confine::Helper;
use crate::launch::{self, Launch, Report};

/// More than any trial of ours says.
const MOST_OUTPUT: u64 = 64 * 1024;

/// Starts the command and hands over the launch. The socket is held for as long as
/// the command may run: when it is closed, everything is ended.
pub fn start(command: &mut Command, launch: &Launch) -> io::Result<(Child, UnixStream)> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let child = command.stdin(Stdio::from(OwnedFd::from(theirs))).spawn()?;
    // It holds the other end, and the report would never end.
    command.stdin(Stdio::null());
    launch::write(&mut ours, launch)?;
    Ok((child, ours))
}

/// Runs it to its end with our own outputs. The helper, which then has nothing more
/// to do, may still be there.
pub fn run(mut helper: Command, launch: &Launch) -> io::Result<(Child, Report)> {
    let (child, mut control) = start(&mut helper, launch)?;
    Ok((child, launch::read(&mut control)?))
}

/// The same, with the helper waited for.
pub fn pass_through(helper: Command, launch: &Launch) -> io::Result<Report> {
    let (mut child, report) = run(helper, launch)?;
    child.wait()?;
    Ok(report)
}

/// Runs it to its end; what it says on both outputs.
pub(crate) fn collect(helper: &Helper, launch: &Launch) -> io::Result<(Report, Vec<u8>)> {
    let (reader, writer) = io::pipe()?;
    let mut command = helper.command();
    command.stdout(writer.try_clone()?).stderr(writer);
    let (mut child, mut control) = start(&mut command, launch)?;
    drop(command);
    let mut output = Vec::new();
    reader.take(MOST_OUTPUT).read_to_end(&mut output)?;
    let report = launch::read(&mut control);
    child.wait()?;
    Ok((report?, output))
}
