//! The helper: this program, started again, as the parent of one command.
//!
//! It has a session of its own, every orphan of the command becomes its child,
//! and it ends only when none of them is left: when the command has ended, when
//! it is told to, and when whoever started it is gone. It is not confined itself.
//! A thread of it is, and starts the command, because Landlock, seccomp and
//! capabilities belong to a thread and are inherited from it.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal as Number};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, setsid, wait};
use rustix::stdio::stdin;

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

/// What happens to a command.
enum Event {
    Started,
    NotStarted(String),
    Ended(End),
    /// It has ended, and something of it has not.
    Leftovers,
    /// Nothing is below this process any more.
    Empty,
    /// Whoever started it is gone, or closed the input of its server.
    HungUp,
    /// It should end now.
    Told,
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
    let told = [Number::SIGTERM, Number::SIGINT, Number::SIGHUP, Number::SIGQUIT];
    let told: SigSet = told.into_iter().collect();
    // For every thread that follows; a child gets none of it.
    if let Err(error) = told.thread_block() {
        return Report::not_started(format!("signals cannot be held back: {error}"));
    }
    let guard = Guard::new(&launch.policy);
    let protection = launch.protection;
    let skipped = match launch.barrier {
        // bubblewrap and its first process; the command ends with them.
        Barrier::Bubblewrap { .. } => 2,
        Barrier::None | Barrier::Kernel { .. } | Barrier::Seatbelt => 0,
    };
    let input = launch.input;
    let (tell, events) = channel();
    let (watching, signals) = (tell.clone(), tell.clone());
    std::thread::spawn(move || run(launch, &tell));
    std::thread::spawn(move || watch_input(input, &watching));
    std::thread::spawn(move || {
        while told.wait().is_ok() {
            drop(signals.send(Event::Told));
        }
    });
    let mut report = attend(&events, input, skipped);
    let Findings { changed, restored, troubles } = match protection {
        Protection::Restore => guard.restore(),
        Protection::Keep => guard.changes(),
    };
    (report.changed, report.restored, report.troubles) = (changed, restored, troubles);
    report
}

/// Waits for the end of the command and ends what is left of it.
fn attend(events: &Receiver<Event>, input: Input, skipped: usize) -> Report {
    let mut report = Report::not_started("its helper gave up");
    let mut deadline: Option<(Instant, Step)> = None;
    loop {
        let event = match deadline {
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some((at, _)) => events.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        let later = |wait: Duration, step: Step| Some((Instant::now() + wait, step));
        match event {
            Ok(Event::Started) => report.end = End::Stopped,
            Ok(Event::NotStarted(why)) => return Report::not_started(why),
            Ok(Event::Ended(end)) => {
                if deadline.is_none() {
                    report.end = end;
                }
            }
            Ok(Event::Leftovers) => deadline = deadline.or(later(LAST_WORDS, Step::KillOthers)),
            Ok(Event::Empty) => return report,
            Ok(Event::HungUp) if deadline.is_none() && input == Input::Passed => {
                deadline = later(CLOSED_GRACE, Step::Ask);
            }
            Ok(Event::HungUp | Event::Told) => {
                if !matches!(deadline, Some((_, Step::Kill))) {
                    tree::signal(Signal::TERM, skipped);
                    deadline = later(GRACE, Step::Kill);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return report,
            Err(RecvTimeoutError::Timeout) => {
                deadline = match deadline.map(|(_, step)| step) {
                    None => None,
                    Some(Step::Ask) => {
                        tree::signal(Signal::TERM, skipped);
                        later(GRACE, Step::Kill)
                    }
                    Some(step @ (Step::Kill | Step::KillOthers)) => {
                        report.ended_others |= step == Step::KillOthers && tree::below().iter().any(|one| !one.is_dead);
                        end_all(events, &mut report);
                        return report;
                    }
                };
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Tell all to end.
    Ask,
    Kill,
    /// The command has ended by itself, what it left behind has not.
    KillOthers,
}

/// Kills until nothing is left. Something may fork while we look, so this is
/// done again and again.
fn end_all(events: &Receiver<Event>, report: &mut Report) {
    let deadline = Instant::now() + DYING;
    let mut pause = Duration::from_millis(2);
    loop {
        tree::kill();
        match events.recv_timeout(pause) {
            Ok(Event::Empty) | Err(RecvTimeoutError::Disconnected) => return,
            Ok(_) => (),
            Err(RecvTimeoutError::Timeout) => pause = (pause * 2).min(Duration::from_millis(50)),
        }
        if Instant::now() >= deadline {
            let left = tree::below().into_iter().filter(|one| !one.is_dead);
            report.left = left.map(|one| one.pid.as_raw_nonzero().get()).collect();
            return;
        }
    }
}

/// Starts the command and waits for it and for every orphan it leaves.
fn run(launch: Launch, tell: &Sender<Event>) {
    let send = |event| {
        drop(tell.send(event));
    };
    let child = match start(launch) {
        Ok(child) => child,
        Err(why) => return send(Event::NotStarted(why)),
    };
    send(Event::Started);
    let mut options = WaitOptions::empty();
    loop {
        match wait(options) {
            Ok(Some((pid, status))) if pid == child => {
                send(Event::Ended(ended(status)));
                options = WaitOptions::NOHANG;
            }
            Ok(Some(_)) | Err(Errno::INTR) => (),
            Ok(None) => {
                send(Event::Leftovers);
                options = WaitOptions::empty();
            }
            Err(_) => return send(Event::Empty),
        }
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
fn start(launch: Launch) -> Result<Pid, String> {
    let program = launch.program.to_os();
    let arguments: Vec<OsString> = launch.arguments.iter().map(|argument| argument.to_os()).collect();
    let mut command = match &launch.barrier {
        Barrier::None => plain(&program, &arguments),
        Barrier::Kernel { abi } => {
            crate::barrier::kernel(&launch.policy, *abi)?;
            plain(&program, &arguments)
        }
        Barrier::Bubblewrap { program: wrapper } => {
            crate::barrier::bubblewrap(&launch, &wrapper.to_os(), &program, &arguments)?
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

/// Hears that whoever started the helper is gone.
fn watch_input(input: Input, tell: &Sender<Event>) {
    let interest = match input {
        // Nothing more is said there, so what comes is the end.
        Input::Nothing => PollFlags::IN,
        // What comes is for the command.
        Input::Passed => PollFlags::empty(),
    };
    loop {
        let mut fds = [PollFd::from_borrowed_fd(stdin(), interest)];
        match poll(&mut fds, None) {
            Ok(_) => {
                drop(tell.send(Event::HungUp));
                return;
            }
            Err(Errno::INTR) => (),
            Err(_) => return,
        }
    }
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
