//! The program under test, in a terminal of its own.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::watch::{ScreenLog, SharedOutput, lock_output, watch};

const COLUMNS: u16 = 200;
const ROWS: u16 = 50;

pub(crate) struct ProgramUnderTest {
    child: Child,
    keys: File,
    pub(crate) output: SharedOutput,
    pub(crate) began: Instant,
}

impl ProgramUnderTest {
    /// Starts it with a controlling terminal, as a shell would.
    pub(crate) fn start(binary: &Path, arguments: &[&str], folder: &Path) -> io::Result<ProgramUnderTest> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        tcsetwinsize(&master, Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 })?;
        let name = ptsname(&master, Vec::new())?;
        let open = || OpenOptions::new().read(true).write(true).open(OsStr::from_bytes(name.as_bytes()));
        let began = Instant::now();
        // `setsid` executes the program in the same process, so the process id stays.
        let child = Command::new("setsid")
            .arg("--ctty")
            .arg(binary)
            .args(arguments)
            .current_dir(folder)
            .env("ASIDE_CONFIG_DIR", folder.join("config"))
            .env("ASIDE_DATA_DIR", folder.join("data"))
            .env("TERM", "xterm-256color")
            .env("COLORTERM", "truecolor")
            .env_remove("NO_COLOR")
            .stdin(Stdio::from(open()?))
            .stdout(Stdio::from(open()?))
            .stderr(Stdio::from(open()?))
            .spawn()?;
        let terminal = File::from(master);
        let keys = terminal.try_clone()?;
        let output = SharedOutput::default();
        let (pid, shared) = (child.id(), Arc::clone(&output));
        std::thread::spawn(move || watch(terminal, pid, &shared));
        Ok(ProgramUnderTest { child, keys, output, began })
    }

    pub(crate) fn type_in(&mut self, text: &str) -> io::Result<()> {
        self.keys.write_all(text.as_bytes())
    }

    /// CPU nanoseconds of all its threads.
    pub(crate) fn cpu(&self) -> u64 {
        let pid = self.child.id();
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        threads
            .filter_map(|thread| thread.file_name().to_str()?.parse().ok())
            .map(|thread| thread_times(pid, thread).cpu)
            .sum()
    }

    /// CPU nanoseconds of the drawing thread.
    pub(crate) fn screen_cpu(&self) -> u64 {
        thread_times(self.child.id(), self.child.id()).cpu
    }

    /// Bytes of anonymous memory.
    pub(crate) fn memory(&self) -> usize {
        self.status_bytes("RssAnon:")
    }

    /// Bytes of memory, with the program's own code.
    pub(crate) fn resident(&self) -> usize {
        self.status_bytes("VmRSS:")
    }

    fn status_bytes(&self, name: &str) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok());
        kilobytes.unwrap_or(0) * 1024
    }

    /// Waits for a condition on the output.
    pub(crate) fn until<T>(&mut self, most: Duration, found: impl Fn(&ScreenLog) -> Option<T>) -> io::Result<T> {
        let end = Instant::now() + most;
        loop {
            if let Some(found) = found(&lock_output(&self.output)) {
                return Ok(found);
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(io::Error::other(format!("the program ended: {status}")));
            }
            if Instant::now() > end {
                return Err(io::Error::other("the program did not show what was waited for"));
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Quits as a user does; fails if that does not work.
    pub(crate) fn leave(mut self) -> io::Result<()> {
        self.type_in("\x03\x03\x03")?;
        let end = Instant::now() + Duration::from_secs(3);
        while Instant::now() < end {
            if self.child.try_wait()?.is_some() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(io::Error::other("the program does not leave"))
    }
}

impl Drop for ProgramUnderTest {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Nanoseconds that a thread ran, and that it was runnable but waited for a core.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ThreadTimes {
    pub(crate) cpu: u64,
    pub(crate) waited: u64,
}

pub(crate) fn thread_times(pid: u32, thread: u32) -> ThreadTimes {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).unwrap_or_default();
    let mut numbers = text.split_whitespace().map_while(|number| number.parse().ok());
    ThreadTimes { cpu: numbers.next().unwrap_or(0), waited: numbers.next().unwrap_or(0) }
}
