//! Runs the binary in a real pty, as its controlling terminal, and collects every
//! byte it writes.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, SpecialCodeIndex, Winsize, tcgetattr, tcsetwinsize};

use crate::support::TestConfig;

/// Longer than anything takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Default)]
struct PtyOutput {
    bytes: Mutex<Vec<u8>>,
    more: Condvar,
    closed: AtomicBool,
}

pub(crate) struct Terminal {
    /// Our end of the pty.
    pty: File,
    /// The other end, kept open to inspect its modes afterwards.
    line: File,
    child: Child,
    output: Arc<PtyOutput>,
    /// Where `wait_for` continues to search.
    from: usize,
}

impl Terminal {
    /// Runs a program with `aside` in its PATH.
    pub(crate) fn run(program: &[&str], config: &TestConfig, variables: &[(&str, &str)]) -> Terminal {
        let pty = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&pty).unwrap();
        unlockpt(&pty).unwrap();
        tcsetwinsize(&pty, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let name = ptsname(&pty, Vec::new()).unwrap().into_string().unwrap();
        let line = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let end = || line.try_clone().unwrap();
        let path = Path::new(env!("CARGO_BIN_EXE_aside")).parent().unwrap().display().to_string();
        let child = Command::new("setsid")
            .arg("--ctty")
            .args(program)
            .current_dir(config.project())
            .env_clear()
            .env("PATH", format!("{path}:{}", std::env::var("PATH").unwrap()))
            .env("HOME", &config.0)
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .env("ASIDE_CONFIG_DIR", &config.0)
            .env("ASIDE_DATA_DIR", config.0.join("data"))
            .envs(variables.iter().copied())
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let pty = File::from(pty);
        let output = Arc::new(PtyOutput::default());
        read_output(pty.try_clone().unwrap(), Arc::clone(&output));
        Terminal { pty, line, child, output, from: 0 }
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.pty.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for this text after the previously found one. Returns the output up to
    /// it.
    pub(crate) fn wait_for(&mut self, words: &str) -> String {
        let until = Instant::now() + TIMEOUT;
        let mut bytes = self.output.bytes.lock().unwrap();
        loop {
            let fresh = &bytes[self.from..];
            if let Some(at) = fresh.windows(words.len()).position(|window| window == words.as_bytes()) {
                let (found, _) = fresh.split_at(at + words.len());
                self.from += found.len();
                return String::from_utf8_lossy(found).into_owned();
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "`{words}` never came: {:?}", String::from_utf8_lossy(fresh));
            bytes = self.output.more.wait_timeout(bytes, left).unwrap().0;
        }
    }

    /// The whole output.
    pub(crate) fn all(&self) -> String {
        String::from_utf8_lossy(&self.output.bytes.lock().unwrap()).into_owned()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Whether the terminal is in the normal mode of a shell: line input with echo, and Ctrl+C sends a signal.
    pub(crate) fn is_restored(&self) -> bool {
        let modes = tcgetattr(&self.line).unwrap();
        modes.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
            && modes.special_codes[SpecialCodeIndex::VINTR] == 3
    }

    /// Waits until the program has ended and all its output was read.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let ended = wait_for_exit(&mut self.child);
        let ended = ended.unwrap_or_else(|| panic!("it does not end: {:?}", self.all()));
        self.read_rest();
        ended
    }

    /// Output can still be on its way when the program has ended. A mark that is written after it arrives after it.
    fn read_rest(&mut self) {
        const MARK: &[u8] = b"<all output was read>";
        self.line.write_all(MARK).unwrap();
        let until = Instant::now() + TIMEOUT;
        let mut bytes = self.output.bytes.lock().unwrap();
        loop {
            if let Some(at) = bytes.windows(MARK.len()).position(|window| window == MARK) {
                bytes.drain(at..at + MARK.len());
                return;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the end of the output never came: {:?}", String::from_utf8_lossy(&bytes));
            bytes = self.output.more.wait_timeout(bytes, left).unwrap().0;
        }
    }

    /// Closes the terminal and waits for the program to end.
    pub(crate) fn hang_up(self) -> ExitStatus {
        let Terminal { pty, line, mut child, output, .. } = self;
        // The reading thread holds the pty too, until its next read.
        output.closed.store(true, Ordering::Relaxed);
        drop((pty, line));
        wait_for_exit(&mut child).expect("it ends with its terminal")
    }

    pub(crate) fn id(&self) -> String {
        self.child.id().to_string()
    }
}

fn wait_for_exit(child: &mut Child) -> Option<ExitStatus> {
    let until = Instant::now() + TIMEOUT;
    while Instant::now() < until {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    None
}

fn read_output(mut pty: File, output: Arc<PtyOutput>) {
    std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        // An error means that the other end is closed.
        while let Ok(count) = pty.read(&mut chunk) {
            if count == 0 {
                return;
            }
            output.bytes.lock().unwrap().extend_from_slice(&chunk[..count]);
            output.more.notify_all();
            if output.closed.load(Ordering::Relaxed) {
                return;
            }
        }
    });
}
