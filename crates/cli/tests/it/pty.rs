//! The binary in a terminal of its own: a real pty, which is its controlling
//! terminal, and every byte it writes.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::support::Config;

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Seen {
    bytes: Mutex<Vec<u8>>,
    more: Condvar,
    unplugged: AtomicBool,
}

pub(crate) struct Terminal {
    /// Our end of the wire.
    wire: File,
    /// Held open, so that its modes can be looked at afterwards.
    line: File,
    child: Child,
    seen: Arc<Seen>,
    /// What was found already.
    from: usize,
}

impl Terminal {
    /// Runs a program, with `aside` in its path.
    pub(crate) fn run(program: &[&str], config: &Config, variables: &[(&str, &str)]) -> Terminal {
        let wire = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&wire).unwrap();
        unlockpt(&wire).unwrap();
        tcsetwinsize(&wire, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let name = ptsname(&wire, Vec::new()).unwrap().into_string().unwrap();
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
        let wire = File::from(wire);
        let seen = Arc::new(Seen::default());
        listen(wire.try_clone().unwrap(), Arc::clone(&seen));
        Terminal { wire, line, child, seen, from: 0 }
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.wire.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is written, behind what was waited for before; returns
    /// what came until then.
    pub(crate) fn wait_for(&mut self, words: &str) -> String {
        let until = Instant::now() + PATIENCE;
        let mut bytes = self.seen.bytes.lock().unwrap();
        loop {
            let fresh = &bytes[self.from..];
            if let Some(at) = fresh.windows(words.len()).position(|window| window == words.as_bytes()) {
                let (found, _) = fresh.split_at(at + words.len());
                self.from += found.len();
                return String::from_utf8_lossy(found).into_owned();
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "`{words}` never came: {:?}", String::from_utf8_lossy(fresh));
            bytes = self.seen.more.wait_timeout(bytes, left).unwrap().0;
        }
    }

    /// Everything that was written.
    pub(crate) fn all(&self) -> String {
        String::from_utf8_lossy(&self.seen.bytes.lock().unwrap()).into_owned()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Lines as a shell wants them: echoed, and read when they are whole.
    pub(crate) fn is_as_it_was(&self) -> bool {
        let modes = tcgetattr(&self.line).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Waits until the program ends.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let ended = end_of(&mut self.child);
        ended.unwrap_or_else(|| panic!("it does not end: {:?}", self.all()))
    }

    /// Pulls the plug: the terminal is gone, and whoever ran in it ends.
    pub(crate) fn unplug(self) -> ExitStatus {
        let Terminal { wire, line, mut child, seen, .. } = self;
        // Our thread holds the wire as well, until it can read no more.
        seen.unplugged.store(true, Ordering::Relaxed);
        drop((wire, line));
        end_of(&mut child).expect("it ends with its terminal")
    }

    pub(crate) fn id(&self) -> String {
        self.child.id().to_string()
    }
}

fn end_of(child: &mut Child) -> Option<ExitStatus> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    None
}

fn listen(mut wire: File, seen: Arc<Seen>) {
    std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        // An error means that the other end is closed.
        while let Ok(count) = wire.read(&mut chunk) {
            if count == 0 {
                return;
            }
            seen.bytes.lock().unwrap().extend_from_slice(&chunk[..count]);
            seen.more.notify_all();
            if seen.unplugged.load(Ordering::Relaxed) {
                return;
            }
        }
    });
}
