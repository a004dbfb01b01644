//! The helper: this program, started again, as the parent of one command.
//!
//! It has a session of its own, every orphan of the command becomes its child,
//! and it ends only when none of them is left: when the command has ended, when
//! it is told to, and when whoever started it is gone. It is not confined itself.
//! A thread of it is, and starts the command, because Landlock, seccomp and
//! capabilities belong to a thread and are inherited from it.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, setsid, wait};
use rustix::stdio::stdin;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::low_level::pipe::register;

use crate::guard::{Findings, Guard};
use crate::launch::{self, Barrier, End, Input, Launch, Protection, Report};
use crate::tree;

/// The first argument that makes a helper of this program.
pub const WORD: &str = "__confine";

/// How long a command has to end by itself once it is told to.
const GRACE: Duration = Duration::from_millis(500);
/// How long a server has to end by itself once its input is closed.
const CLOSED_GRACE: Duration = Duration::from_millis(500);
/// How long what is in the background may still write once the command has ended.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// How long it may take the kernel to end what was killed.
const DYING: Duration = Duration::from_secs(3);

/// Does the helper's work if this process was started as one. It looks at nothing
/// else, so it comes before arguments are parsed.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() != Some(OsStr::new(WORD)) {
        return None;
    }
    match arguments.next().as_deref().and_then(OsStr::to_str) {
        Some("try") => Some(crate::attempt::run(arguments)),
        Some("abi") => Some(crate::attempt::abi()),
        Some(_) | None => Some(supervise()),
    }
}

fn supervise() -> ExitCode {
    crate::hide_this_process();
    close_inherited();
    // A leader of a group cannot, and then it has what it needs but for the group.
    let _ = setsid();
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let launch: Launch = match launch::read(&mut FromStdin) {
        Ok(launch) => launch,
        Err(_) => return ExitCode::from(2),
    };
    let input = launch.input;
    let report = oversee(launch);
    let code = code(&report.end);
    match (input, &report.end) {
        // Nobody may be there to read it.
        (Input::Nothing, _) => drop(launch::write(&mut ToStdin, &report)),
        (Input::Passed, End::NotStarted(why)) => drop(writeln!(io::stderr(), "{why}")),
        (Input::Passed, End::Exited(_) | End::Signalled(_) | End::Stopped) => (),
    }
    code
}

fn code(end: &End) -> ExitCode {
    match end {
        End::Exited(code) => ExitCode::from(u8::try_from(*code & 0xff).unwrap_or(1)),
        End::Signalled(signal) => ExitCode::from(u8::try_from(128 + (signal & 0x7f)).unwrap_or(1)),
        End::Stopped => ExitCode::from(143),
        End::NotStarted(_) => ExitCode::from(126),
    }
}

fn oversee(launch: Launch) -> Report {
    // Before anything is started, so that nothing is missed.
    let signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => return Report::not_started(format!("signals cannot be heard: {error}")),
    };
    let guard = Guard::new(&launch.policy);
    let child = match started(&launch) {
        Ok(child) => child,
        Err(why) => return Report::not_started(why),
    };
    let_go_of_outputs();
    let mut report = Overseer { child, signals, input: launch.input, first: first_depth(&launch.barrier) }.attend();
    let Findings { changed, restored, troubles } = match launch.protection {
        Protection::Restore => guard.restore(),
        Protection::Keep => guard.changes(),
    };
    (report.changed, report.restored, report.troubles) = (changed, restored, troubles);
    report
}

/// From here on the outputs are the command's, and end with it.
fn let_go_of_outputs() {
    if let Ok(nothing) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&nothing);
        let _ = rustix::stdio::dup2_stderr(&nothing);
    }
}

/// Whose depth below the helper is greater belongs to the command itself.
fn first_depth(barrier: &Barrier) -> usize {
    match barrier {
        // bubblewrap and its first process; the command ends with them.
        Barrier::Bubblewrap { .. } => 2,
        Barrier::None | Barrier::Kernel { .. } | Barrier::Seatbelt => 0,
    }
}

/// Signals, as pipes that can be waited for. They are caught and not blocked: what
/// is blocked stays blocked in the command.
struct Signals {
    /// It should end.
    told: UnixStream,
    /// A child has ended.
    child: UnixStream,
}

impl Signals {
    fn new() -> io::Result<Signals> {
        let (told, tell) = UnixStream::pair()?;
        for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
            register(signal, tell.try_clone()?)?;
        }
        let (child, ended) = UnixStream::pair()?;
        register(SIGCHLD, ended)?;
        told.set_nonblocking(true)?;
        child.set_nonblocking(true)?;
        Ok(Signals { told, child })
    }
}

/// Takes out what a pipe holds, so that the next wait is for something new.
fn clear(mut pipe: &UnixStream) {
    let mut bytes = [0; 64];
    while let Ok(1..) = pipe.read(&mut bytes) {}
}

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Running,
    /// Its input was closed; it may end by itself until then.
    Closed(Instant),
    /// All were asked to end, and are killed then.
    Asked(Instant),
    /// The command has ended, what it left behind may still say something.
    Leftovers(Instant),
}

impl Step {
    fn deadline(self) -> Option<Instant> {
        match self {
            Step::Running => None,
            Step::Closed(at) | Step::Asked(at) | Step::Leftovers(at) => Some(at),
        }
    }
}

/// What one wait came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    Nothing,
    /// Whoever started it is gone, or closed the input of its server.
    HungUp,
    /// It should end now.
    Told,
}

/// What is left below this process.
enum Left {
    Nothing,
    Something,
}

struct Overseer {
    child: Pid,
    signals: Signals,
    input: Input,
    first: usize,
}

impl Overseer {
    /// Waits for the end of the command and ends what is left of it.
    fn attend(self) -> Report {
        let mut report = Report { end: End::Stopped, ..Report::not_started("") };
        let mut step = Step::Running;
        let mut is_open = true;
        loop {
            let (left, ended) = self.reap();
            if let (Some(end), Step::Running | Step::Closed(_)) = (ended, step) {
                report.end = end;
                step = Step::Leftovers(Instant::now() + LAST_WORDS);
            }
            if matches!(left, Left::Nothing) {
                return report;
            }
            let heard = self.wait(step.deadline(), is_open);
            is_open &= heard != Heard::HungUp;
            step = match (heard, step, self.input) {
                (Heard::HungUp, Step::Running, Input::Passed) => Step::Closed(Instant::now() + CLOSED_GRACE),
                (Heard::HungUp, _, Input::Passed) | (_, Step::Asked(_), _) | (Heard::Nothing, _, _) => step,
                (Heard::HungUp | Heard::Told, Step::Running | Step::Closed(_) | Step::Leftovers(_), _) => self.ask(),
            };
            if step.deadline().is_none_or(|at| Instant::now() < at) {
                continue;
            }
            match step {
                Step::Running => (),
                Step::Closed(_) => step = self.ask(),
                Step::Asked(_) => return self.end_all(report),
                Step::Leftovers(_) => {
                    report.ended_others = tree::below().iter().any(|one| !one.is_dead);
                    return self.end_all(report);
                }
            }
        }
    }

    fn ask(&self) -> Step {
        tree::signal(Signal::TERM, self.first);
        Step::Asked(Instant::now() + GRACE)
    }

    /// Waits for whatever comes first; a child that ended is `Nothing` too.
    fn wait(&self, until: Option<Instant>, is_open: bool) -> Heard {
        let interest = match self.input {
            // Nothing more is said there, so what comes is the end.
            Input::Nothing => PollFlags::IN,
            // What comes is for the command.
            Input::Passed => PollFlags::empty(),
        };
        let mut fds =
            vec![PollFd::new(&self.signals.told, PollFlags::IN), PollFd::new(&self.signals.child, PollFlags::IN)];
        if is_open {
            fds.push(PollFd::from_borrowed_fd(stdin(), interest));
        }
        let wait = until.map(|at| at.saturating_duration_since(Instant::now()));
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        // An interrupted wait is followed by another one.
        if poll(&mut fds, wait.as_ref()).is_err() {
            return Heard::Nothing;
        }
        let is_ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        match (is_ready(0), is_ready(2)) {
            (true, _) => {
                clear(&self.signals.told);
                Heard::Told
            }
            (false, true) => Heard::HungUp,
            (false, false) => Heard::Nothing,
        }
    }

    /// Takes note of every process that ended, orphans of the command included.
    fn reap(&self) -> (Left, Option<End>) {
        clear(&self.signals.child);
        let mut end = None;
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.child => end = Some(ended(status)),
                Ok(Some(_)) | Err(Errno::INTR) => (),
                Ok(None) => return (Left::Something, end),
                Err(_) => return (Left::Nothing, end),
            }
        }
    }

    /// Kills until nothing is left. Something may fork while we look, so this is
    /// done again and again.
    fn end_all(self, mut report: Report) -> Report {
        let deadline = Instant::now() + DYING;
        let mut pause = Duration::from_millis(1);
        loop {
            tree::kill();
            if let (Left::Nothing, _) = self.reap() {
                return report;
            }
            if Instant::now() >= deadline {
                let left = tree::below().into_iter().filter(|one| !one.is_dead);
                report.left = left.map(|one| one.pid.as_raw_nonzero().get()).collect();
                return report;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }
}

/// The command, started from a thread of its own where that thread is confined.
fn started(launch: &Launch) -> Result<Pid, String> {
    match launch.barrier {
        Barrier::Kernel { .. } => std::thread::scope(|scope| scope.spawn(|| start(launch)).join())
            .unwrap_or_else(|_| Err("its helper failed".to_owned())),
        Barrier::None | Barrier::Bubblewrap { .. } | Barrier::Seatbelt => start(launch),
    }
}

fn ended(status: WaitStatus) -> End {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => End::Exited(code),
        (None, Some(signal)) => End::Signalled(signal),
        (None, None) => End::Stopped,
    }
}

/// Confines this thread and starts the command from it.
fn start(launch: &Launch) -> Result<Pid, String> {
    let program = launch.program.to_os();
    let arguments: Vec<OsString> = launch.arguments.iter().map(|argument| argument.to_os()).collect();
    let mut command = match &launch.barrier {
        Barrier::None => plain(&program, &arguments),
        Barrier::Kernel { abi } => {
            crate::barrier::kernel(&launch.policy, *abi)?;
            plain(&program, &arguments)
        }
        Barrier::Bubblewrap { program: wrapper } => {
            crate::barrier::bubblewrap(launch, &wrapper.to_os(), &program, &arguments)?
        }
        Barrier::Seatbelt => {
            let mut command = Command::new("/usr/bin/sandbox-exec");
            command.arg("-p").arg(crate::seatbelt::profile(&launch.policy)).arg(&program).args(&arguments);
            command
        }
    };
    let folder = launch.folder.to_path();
    command.current_dir(&folder).process_group(0).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    command.stdin(match launch.input {
        Input::Nothing => Stdio::null(),
        Input::Passed => Stdio::inherit(),
    });
    let child = command.spawn().map_err(|error| match folder.is_dir() {
        true => format!("{} cannot be started: {error}", program.to_string_lossy()),
        false => format!("{} is not there", folder.display()),
    })?;
    i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(|| "it has no process id".to_owned())
}

fn plain(program: &OsStr, arguments: &[OsString]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// Files that whoever started aside left open are none of the command's business,
/// and no confinement closes them.
fn close_inherited() {
    let listed = std::fs::read_dir("/dev/fd");
    let Ok(entries) = listed else { return };
    let open: Vec<i32> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter(|fd| *fd > 2).collect();
    // The list itself was one of them and is closed by now.
    for fd in open {
        let _ = nix::unistd::close(fd);
    }
}

/// The helper's input, byte for byte: what follows the launch is not ours.
struct FromStdin;

impl io::Read for FromStdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let input: BorrowedFd<'_> = stdin();
        Ok(rustix::io::read(input, buffer)?)
    }
}

struct ToStdin;

impl io::Write for ToStdin {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let input: BorrowedFd<'_> = stdin();
        Ok(rustix::io::write(input, bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
