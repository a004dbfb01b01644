//! The screen as a person meets it: the built binary in a real terminal, with
//! keys, a mouse and sizes that change. What is asserted is what is seen.
//!
//! Nothing sleeps and hopes: whatever is expected is waited for, and the
//! screen is printed if it does not come.

mod emulator;
mod folder;
pub(crate) mod provider;
mod svg;

mod asked;
mod ends;
mod picture;
mod sessions;
mod sizes;
mod thoughts;
mod writing;

use std::io::{ErrorKind, Read, Write};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use emulator::{Emulator, Ground, Style};
use folder::Folder;

/// How long anything may take. A busy machine is slow; a bug waits for ever.
const PATIENCE: Duration = Duration::from_secs(40);

pub(crate) const UP: &str = "\x1b[A";
pub(crate) const HOME: &str = "\x1b[H";
pub(crate) const END: &str = "\x1b[F";
pub(crate) const PAGE_UP: &str = "\x1b[5~";
pub(crate) const ESC: &str = "\x1b";
pub(crate) const ENTER: &str = "\r";
pub(crate) const CTRL_C: &str = "\x03";
pub(crate) const CTRL_O: &str = "\x0f";
pub(crate) const CTRL_T: &str = "\x14";

/// How the terminal is before the program starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) columns: u16,
    pub(crate) rows: u16,
    pub(crate) ground: Ground,
    /// Variables besides the usual ones.
    pub(crate) env: &'static [(&'static str, &'static str)],
}

pub(crate) const USUAL: Kind = Kind { columns: 80, rows: 24, ground: Ground::Dark, env: &[] };

/// The program in its terminal.
pub(crate) struct Terminal {
    pty: Pty,
    child: Child,
    emulator: Emulator,
}

impl Terminal {
    /// Starts the program in a folder of its own, with nothing of whoever runs
    /// the tests: no keys, no config, no data.
    pub(crate) fn start(folder: &Folder, arguments: &[&str], kind: Kind) -> Terminal {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(kind.rows, kind.columns)).unwrap();
        let command = Command::new(env!("CARGO_BIN_EXE_aside"))
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &folder.home)
            .env("ASIDE_CONFIG_DIR", &folder.config)
            .env("ASIDE_DATA_DIR", &folder.data)
            .env("TERM", "xterm-256color")
            .env("COLORTERM", "truecolor")
            .env("LANG", "C.UTF-8")
            .envs(kind.env.iter().copied())
            .current_dir(&folder.project);
        let child = command.spawn(pts).unwrap();
        rustix::io::ioctl_fionbio(&pty, true).unwrap();
        Terminal { pty, child, emulator: Emulator::new(kind.columns, kind.rows, kind.ground) }
    }

    /// Started, and ready to be written to.
    pub(crate) fn ready(folder: &Folder, arguments: &[&str]) -> Terminal {
        let mut terminal = Terminal::start(folder, arguments, USUAL);
        terminal.see("❯ ");
        terminal
    }

    /// Passes bytes both ways until nothing has happened for a moment.
    fn pump(&mut self, mut input: &[u8], moment: Duration) -> Flow {
        let mut bytes = [0; 16 * 1024];
        loop {
            let replies = self.emulator.take_replies();
            if !replies.is_empty() {
                // A few bytes, and the program waits for them.
                drop((&self.pty).write_all(&replies));
            }
            // Keys that are not taken yet are waited with; nothing else is.
            let (wanted, moment) = match input.is_empty() {
                true => (PollFlags::IN, moment),
                false => (PollFlags::IN | PollFlags::OUT, PATIENCE),
            };
            let mut ready = [PollFd::new(&self.pty, wanted)];
            poll(&mut ready, Some(&Timespec::try_from(moment).unwrap())).unwrap();
            let found = ready[0].revents();
            if found.is_empty() {
                assert!(input.is_empty(), "the program does not take its keys\n{}", self.picture());
                return Flow::Open;
            }
            if found.contains(PollFlags::OUT) && !input.is_empty() {
                let piece = &input[..input.len().min(4096)];
                match (&self.pty).write(piece) {
                    Ok(count) => input = &input[count..],
                    Err(error) if error.kind() == ErrorKind::WouldBlock => (),
                    Err(error) => panic!("the program does not take its keys: {error}\n{}", self.picture()),
                }
            }
            if found.intersects(PollFlags::IN | PollFlags::HUP) {
                match (&self.pty).read(&mut bytes) {
                    Ok(0) => return Flow::Closed,
                    Ok(count) => self.emulator.take(&bytes[..count]),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => (),
                    // So Linux says that nobody has the other end any more.
                    Err(_) => return Flow::Closed,
                }
            }
            if input.is_empty() && !self.emulator.is_drawing() {
                return Flow::Open;
            }
        }
    }

    /// Keys as the terminal sends them.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.pump(keys.as_bytes(), Duration::ZERO);
    }

    /// A line, and Enter.
    pub(crate) fn enter(&mut self, line: &str) {
        self.keys(line);
        self.see_in_input(line);
        self.keys(ENTER);
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.keys(&format!("\x1b[200~{text}\x1b[201~"));
    }

    /// A click of the left button on a cell, counted from nought.
    pub(crate) fn click(&mut self, row: usize, column: usize) {
        let (row, column) = (row + 1, column + 1);
        self.keys(&format!("\x1b[<0;{column};{row}M\x1b[<0;{column};{row}m"));
    }

    pub(crate) fn click_on(&mut self, text: &str) {
        let row = self.row_of(text);
        self.click(row, 3);
    }

    pub(crate) fn wheel_up(&mut self) {
        self.keys("\x1b[<64;5;5M");
    }

    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.emulator.resize(columns, rows);
        self.pty.resize(Size::new(rows, columns)).unwrap();
    }

    /// What is on the screen, without blanks at the ends of rows.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.emulator.lines()
    }

    pub(crate) fn emulator(&self) -> &Emulator {
        &self.emulator
    }

    /// The colours and letters of a row.
    pub(crate) fn styles(&self, row: u16) -> Vec<Style> {
        self.emulator.styles(row)
    }

    pub(crate) fn shows(&self, text: &str) -> bool {
        self.lines().iter().any(|line| line.contains(text))
    }

    pub(crate) fn row_of(&self, text: &str) -> usize {
        let lines = self.lines();
        let row = lines.iter().position(|line| line.contains(text));
        row.unwrap_or_else(|| panic!("`{text}` is not on the screen\n{}", self.picture()))
    }

    pub(crate) fn line_with(&self, text: &str) -> String {
        self.lines().swap_remove(self.row_of(text))
    }

    /// Waits until the screen is as it should be.
    pub(crate) fn until(&mut self, what: &str, is_so: impl Fn(&[String]) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so(&self.lines()) {
            let left = until.saturating_duration_since(Instant::now());
            let flow = self.pump(b"", left.min(Duration::from_millis(200)));
            let over = flow == Flow::Closed || left.is_zero();
            assert!(!over || is_so(&self.lines()), "{what}: it did not come to it\n{}", self.picture());
        }
    }

    pub(crate) fn see(&mut self, text: &str) {
        self.until(text, |lines| lines.iter().any(|line| line.contains(text)));
    }

    pub(crate) fn see_all(&mut self, texts: &[&str]) {
        texts.iter().for_each(|text| self.see(text));
    }

    pub(crate) fn miss(&mut self, text: &str) {
        self.until(&format!("no {text}"), |lines| !lines.iter().any(|line| line.contains(text)));
    }

    /// The last rows are the input and the status; the input says this.
    fn see_in_input(&mut self, text: &str) {
        let end: String = text.chars().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect();
        self.until(text, |lines| lines.iter().rev().take(13).any(|line| line.contains(end.trim())));
    }

    /// Nothing is answered any more.
    pub(crate) fn idle(&mut self) {
        self.until("the end of the turn", |lines| !lines.iter().any(|line| line.starts_with("─ ")));
    }

    /// Something is.
    pub(crate) fn busy(&mut self) {
        self.until("the turn", |lines| lines.iter().any(|line| line.contains("Esc stops")));
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until the program has ended by itself.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        while self.pump(b"", Duration::from_millis(200)) == Flow::Open {
            assert!(Instant::now() < until, "it does not end\n{}", self.picture());
        }
        self.child.wait().unwrap()
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// The screen for whoever reads why a test failed.
    pub(crate) fn picture(&self) -> String {
        let lines = self.lines();
        lines.iter().fold(String::new(), |all, line| format!("{all}▕{line}\n"))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended; either way it is gone afterwards.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Open,
    /// The program has closed the terminal.
    Closed,
}
