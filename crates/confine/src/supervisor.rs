//! The supervisor process: this program, started again as the parent of one command.
//!
//! It has its own session, and every orphan of the command becomes its child. It ends
//! when all of them have ended: after the command has ended, after a signal, or when the
//! process that started it is gone. The supervisor itself is not confined. One of its threads
//! is, and starts the command, because Landlock, seccomp and capabilities apply to a
//! thread and are inherited from it.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, setsid, wait};
use rustix::stdio::stdin;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::low_level::pipe::register;

use crate::launch::{self, CommandEnd, CommandInput, Launch, LaunchReport, Mechanism, OnProtectedChange};
use crate::process_tree;
use crate::protected_copies::{ProtectedChanges, ProtectedCopies};

/// The first argument that makes this program run as the helper.
pub const HELPER_ARGUMENT: &str = "__confine";

/// How long a command has to exit after SIGTERM.
const TERM_GRACE: Duration = Duration::from_millis(500);
/// How long a server has to exit after its input was closed.
const INPUT_CLOSED_GRACE: Duration = Duration::from_millis(500);
/// How long background processes may still write after the command has ended.
const BACKGROUND_GRACE: Duration = Duration::from_millis(200);
/// How long to wait for killed processes to disappear.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);

/// Runs as the helper if this process was started as one. It checks only the first
/// argument, so call it before parsing arguments.
pub fn run_if_helper() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() != Some(OsStr::new(HELPER_ARGUMENT)) {
        return None;
    }
    match arguments.next().as_deref().and_then(OsStr::to_str) {
        Some("try") => Some(crate::self_test::run(arguments)),
        Some("abi") => Some(crate::self_test::print_landlock_abi()),
        Some(_) | None => Some(helper_main()),
    }
}

fn helper_main() -> ExitCode {
    crate::hide_this_process();
    close_inherited();
    // This fails for a group leader, which then lacks only its own group.
    let _ = setsid();
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let launch: Launch = match launch::read_frame(&mut StdinReader) {
        Ok(launch) => launch,
        Err(_) => return ExitCode::from(2),
    };
    let input = launch.input;
    let report = run_command(launch);
    let code = exit_code(&report.end);
    match (input, &report.end) {
        // The parent may already be gone.
        (CommandInput::Empty, _) => drop(launch::write_frame(&mut StdinWriter, &report)),
        (CommandInput::Forwarded, CommandEnd::NotStarted(why)) => drop(writeln!(io::stderr(), "{why}")),
        (CommandInput::Forwarded, CommandEnd::Exited(_) | CommandEnd::Signalled(_) | CommandEnd::Stopped) => (),
    }
    code
}

fn exit_code(end: &CommandEnd) -> ExitCode {
    match end {
        CommandEnd::Exited(code) => ExitCode::from(u8::try_from(*code & 0xff).unwrap_or(1)),
        CommandEnd::Signalled(signal) => ExitCode::from(u8::try_from(128 + (signal & 0x7f)).unwrap_or(1)),
        CommandEnd::Stopped => ExitCode::from(143),
        CommandEnd::NotStarted(_) => ExitCode::from(126),
    }
}

fn run_command(launch: Launch) -> LaunchReport {
    // Before starting anything, so that no signal is missed.
    let signals = match SignalPipes::new() {
        Ok(signals) => signals,
        Err(error) => return LaunchReport::not_started(format!("cannot install signal handlers: {error}")),
    };
    let (copies, child) = match launch.mechanism {
        Mechanism::Kernel { .. } => copy_and_start_confined(&launch),
        Mechanism::None | Mechanism::Bubblewrap { .. } | Mechanism::Seatbelt => {
            (ProtectedCopies::new(&launch.policy), start(&launch))
        }
    };
    let child = match child {
        Ok(child) => child,
        Err(why) => return LaunchReport::not_started(why),
    };
    close_outputs();
    let mut report =
        Supervisor { child, signals, input: launch.input, wrapper_depth: wrapper_depth(&launch.mechanism) }
            .wait_for_end();
    let ProtectedChanges { changed, restored, problems } = match launch.on_protected_change {
        OnProtectedChange::Restore => copies.restore(),
        OnProtectedChange::Keep => copies.changes(),
    };
    (report.changed, report.restored, report.problems) = (changed, restored, problems);
    report
}

/// Closes our copies of the outputs, so that they end with the command.
fn close_outputs() {
    if let Ok(nothing) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&nothing);
        let _ = rustix::stdio::dup2_stderr(&nothing);
    }
}

/// Processes deeper than this below the helper belong to the command.
fn wrapper_depth(mechanism: &Mechanism) -> usize {
    match mechanism {
        // bubblewrap and its first child; they end with the command.
        Mechanism::Bubblewrap { .. } => 2,
        Mechanism::None | Mechanism::Kernel { .. } | Mechanism::Seatbelt => 0,
    }
}

/// Signals as pipes that `poll` can wait for. They are caught rather than blocked,
/// because the command would inherit a blocked signal.
struct SignalPipes {
    /// A terminating signal arrived.
    terminate: UnixStream,
    /// A child has ended.
    child: UnixStream,
}

impl SignalPipes {
    fn new() -> io::Result<SignalPipes> {
        let (terminate, terminate_writer) = UnixStream::pair()?;
        for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
            register(signal, terminate_writer.try_clone()?)?;
        }
        let (child, child_writer) = UnixStream::pair()?;
        register(SIGCHLD, child_writer)?;
        terminate.set_nonblocking(true)?;
        child.set_nonblocking(true)?;
        Ok(SignalPipes { terminate, child })
    }
}

/// Empties a pipe, so that the next wait is for something new.
fn drain(mut pipe: &UnixStream) {
    let mut bytes = [0; 64];
    while let Ok(1..) = pipe.read(&mut bytes) {}
}

/// The state of a supervised command. Each instant is a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SupervisorState {
    Running,
    /// Its input was closed, and it may exit by itself.
    InputClosed(Instant),
    /// All processes received SIGTERM and will be killed.
    Terminating(Instant),
    /// The command has ended, but background processes may still write.
    CommandEnded(Instant),
}

impl SupervisorState {
    fn deadline(self) -> Option<Instant> {
        match self {
            SupervisorState::Running => None,
            SupervisorState::InputClosed(at) | SupervisorState::Terminating(at) | SupervisorState::CommandEnded(at) => {
                Some(at)
            }
        }
    }
}

/// The result of one wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitResult {
    Nothing,
    /// The parent is gone, or closed the server's input.
    HungUp,
    /// A signal asked us to end.
    Terminate,
}

/// Whether any process below this one is left.
enum DescendantStatus {
    Gone,
    Alive,
}

struct Supervisor {
    child: Pid,
    signals: SignalPipes,
    input: CommandInput,
    wrapper_depth: usize,
}

impl Supervisor {
    /// Waits until the command ends, then ends its remaining processes.
    fn wait_for_end(self) -> LaunchReport {
        let mut report = LaunchReport { end: CommandEnd::Stopped, ..LaunchReport::not_started("") };
        let mut state = SupervisorState::Running;
        let mut is_open = true;
        loop {
            let (left, ended) = self.reap();
            if let (Some(end), SupervisorState::Running | SupervisorState::InputClosed(_)) = (ended, state) {
                report.end = end;
                state = SupervisorState::CommandEnded(Instant::now() + BACKGROUND_GRACE);
            }
            if matches!(left, DescendantStatus::Gone) {
                return report;
            }
            let result = self.wait(state.deadline(), is_open);
            is_open &= result != WaitResult::HungUp;
            state = match (result, state, self.input) {
                (WaitResult::HungUp, SupervisorState::Running, CommandInput::Forwarded) => {
                    SupervisorState::InputClosed(Instant::now() + INPUT_CLOSED_GRACE)
                }
                (WaitResult::HungUp, _, CommandInput::Forwarded)
                | (_, SupervisorState::Terminating(_), _)
                | (WaitResult::Nothing, _, _) => state,
                (
                    WaitResult::HungUp | WaitResult::Terminate,
                    SupervisorState::Running | SupervisorState::InputClosed(_) | SupervisorState::CommandEnded(_),
                    _,
                ) => self.terminate(),
            };
            if state.deadline().is_none_or(|at| Instant::now() < at) {
                continue;
            }
            match state {
                SupervisorState::Running => (),
                SupervisorState::InputClosed(_) => state = self.terminate(),
                SupervisorState::Terminating(_) => return self.kill_all(report),
                SupervisorState::CommandEnded(_) => {
                    report.killed_background = process_tree::descendants().iter().any(|process| !process.is_zombie);
                    return self.kill_all(report);
                }
            }
        }
    }

    fn terminate(&self) -> SupervisorState {
        process_tree::signal_descendants(Signal::TERM, self.wrapper_depth);
        SupervisorState::Terminating(Instant::now() + TERM_GRACE)
    }

    /// Waits for the next event. A child that ended counts as `Nothing`.
    fn wait(&self, until: Option<Instant>, is_open: bool) -> WaitResult {
        let interest = match self.input {
            // The parent sends nothing more, so any input means the end.
            CommandInput::Empty => PollFlags::IN,
            // Any input is for the command.
            CommandInput::Forwarded => PollFlags::empty(),
        };
        let mut fds =
            vec![PollFd::new(&self.signals.terminate, PollFlags::IN), PollFd::new(&self.signals.child, PollFlags::IN)];
        if is_open {
            fds.push(PollFd::from_borrowed_fd(stdin(), interest));
        }
        let wait = until.map(|at| at.saturating_duration_since(Instant::now()));
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        // The caller waits again after an interruption.
        if poll(&mut fds, wait.as_ref()).is_err() {
            return WaitResult::Nothing;
        }
        let is_ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        match (is_ready(0), is_ready(2)) {
            (true, _) => {
                drain(&self.signals.terminate);
                WaitResult::Terminate
            }
            (false, true) => WaitResult::HungUp,
            (false, false) => WaitResult::Nothing,
        }
    }

    /// Reaps every process that ended, including the command's orphans.
    fn reap(&self) -> (DescendantStatus, Option<CommandEnd>) {
        drain(&self.signals.child);
        let mut end = None;
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.child => end = Some(command_end(status)),
                Ok(Some(_)) | Err(Errno::INTR) => (),
                Ok(None) => return (DescendantStatus::Alive, end),
                Err(_) => return (DescendantStatus::Gone, end),
            }
        }
    }

    /// Kills until nothing is left. Processes may fork in the meantime, so this repeats.
    fn kill_all(self, mut report: LaunchReport) -> LaunchReport {
        let deadline = Instant::now() + KILL_TIMEOUT;
        let mut pause = Duration::from_millis(1);
        loop {
            process_tree::kill_descendants();
            if let (DescendantStatus::Gone, _) = self.reap() {
                return report;
            }
            if Instant::now() >= deadline {
                let left = process_tree::descendants().into_iter().filter(|process| !process.is_zombie);
                report.survivors = left.map(|process| process.pid.as_raw_nonzero().get()).collect();
                return report;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }
}

/// Copies the protected paths and starts the command from a thread that confines itself
/// meanwhile. The command waits for the copies.
fn copy_and_start_confined(launch: &Launch) -> (ProtectedCopies, Result<Pid, String>) {
    std::thread::scope(|scope| {
        let (copied, when_copied) = mpsc::channel();
        let starter = scope.spawn(move || {
            let command = prepare(launch)?;
            when_copied.recv().map_err(|_| "its protected paths could not be copied".to_owned())?;
            spawn(command, launch)
        });
        let copies = ProtectedCopies::new(&launch.policy);
        // If the thread is gone, joining it says why.
        let _ = copied.send(());
        let child = starter.join().unwrap_or_else(|_| Err("its helper failed".to_owned()));
        (copies, child)
    })
}

fn command_end(status: WaitStatus) -> CommandEnd {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => CommandEnd::Exited(code),
        (None, Some(signal)) => CommandEnd::Signalled(signal),
        (None, None) => CommandEnd::Stopped,
    }
}

/// Confines this thread if it must be, and starts the command from it.
fn start(launch: &Launch) -> Result<Pid, String> {
    spawn(prepare(launch)?, launch)
}

/// The command to start; for the kernel tier this confines the thread.
fn prepare(launch: &Launch) -> Result<Command, String> {
    let program = launch.program.to_os();
    let arguments: Vec<OsString> = launch.arguments.iter().map(|argument| argument.to_os()).collect();
    match &launch.mechanism {
        Mechanism::None => Ok(direct_command(&program, &arguments)),
        Mechanism::Kernel { abi } => {
            crate::apply::kernel(&launch.policy, *abi)?;
            Ok(direct_command(&program, &arguments))
        }
        Mechanism::Bubblewrap { program: wrapper } => {
            crate::apply::bubblewrap(launch, &wrapper.to_os(), &program, &arguments)
        }
        Mechanism::Seatbelt => {
            let mut command = Command::new("/usr/bin/sandbox-exec");
            command.arg("-p").arg(crate::seatbelt::profile(&launch.policy)).arg(&program).args(&arguments);
            Ok(command)
        }
    }
}

fn spawn(mut command: Command, launch: &Launch) -> Result<Pid, String> {
    let folder = launch.folder.to_path();
    command.current_dir(&folder).process_group(0).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    command.stdin(match launch.input {
        CommandInput::Empty => Stdio::null(),
        CommandInput::Forwarded => Stdio::inherit(),
    });
    let child = command.spawn().map_err(|error| match folder.is_dir() {
        true => format!("{} cannot be started: {error}", launch.program.to_os().to_string_lossy()),
        false => format!("{} is not there", folder.display()),
    })?;
    i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(|| "it has no process id".to_owned())
}

fn direct_command(program: &OsStr, arguments: &[OsString]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// Closes files that were open when aside started: the command must not use them, and
/// confinement does not close them.
fn close_inherited() {
    let listed = std::fs::read_dir("/dev/fd");
    let Ok(entries) = listed else { return };
    let open: Vec<i32> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter(|fd| *fd > 2).collect();
    // The directory listing's own descriptor is in the list, already closed.
    for fd in open {
        let _ = nix::unistd::close(fd);
    }
}

/// Unbuffered standard input: what follows the launch belongs to the command.
struct StdinReader;

impl io::Read for StdinReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let input: BorrowedFd<'_> = stdin();
        Ok(rustix::io::read(input, buffer)?)
    }
}

struct StdinWriter;

impl io::Write for StdinWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let input: BorrowedFd<'_> = stdin();
        Ok(rustix::io::write(input, bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
