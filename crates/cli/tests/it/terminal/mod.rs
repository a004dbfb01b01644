//! The screen of the built binary in a real terminal, with keys, mouse and resizes.
//! Assertions are about the visible screen.
//!
//! Tests wait for the expected state instead of sleeping, and print the screen if
//! it never appears.

mod emulator;
pub(crate) mod scripted_provider;
mod svg;
mod test_folders;

mod find_and_commands;
mod input;
mod permission_questions;
mod picture;
mod resizing;
mod running_tools;
mod sessions;
mod status_and_attention;
mod steering_and_modes;
mod stopping_and_leaving;
mod thinking;
mod undo;

use std::io::{ErrorKind, Read, Write};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use emulator::{Background, Emulator, Style};
use test_folders::TestFolders;

/// How long anything may take; long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(40);

pub(crate) const UP: &str = "\x1b[A";
pub(crate) const HOME: &str = "\x1b[H";
pub(crate) const END: &str = "\x1b[F";
pub(crate) const PAGE_UP: &str = "\x1b[5~";
pub(crate) const ESC: &str = "\x1b";
pub(crate) const ENTER: &str = "\r";
pub(crate) const CTRL_C: &str = "\x03";
pub(crate) const CTRL_F: &str = "\x06";
pub(crate) const CTRL_O: &str = "\x0f";
pub(crate) const CTRL_Q: &str = "\x11";
pub(crate) const CTRL_T: &str = "\x14";
pub(crate) const SHIFT_TAB: &str = "\x1b[Z";

/// The terminal before the program starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TerminalOptions {
    pub(crate) columns: u16,
    pub(crate) rows: u16,
    pub(crate) background: Background,
    /// Additional environment variables.
    pub(crate) env: &'static [(&'static str, &'static str)],
}

pub(crate) const DEFAULT_OPTIONS: TerminalOptions =
    TerminalOptions { columns: 80, rows: 24, background: Background::Dark, env: &[] };

/// The program in its terminal.
pub(crate) struct Terminal {
    pty: Pty,
    child: Child,
    emulator: Emulator,
}

impl Terminal {
    /// Starts the program in its own folders, without the developer's keys, config and
    /// data.
    pub(crate) fn start(folder: &TestFolders, arguments: &[&str], options: TerminalOptions) -> Terminal {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(options.rows, options.columns)).unwrap();
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
            .envs(options.env.iter().copied())
            .current_dir(&folder.project);
        let child = command.spawn(pts).unwrap();
        rustix::io::ioctl_fionbio(&pty, true).unwrap();
        Terminal { pty, child, emulator: Emulator::new(options.columns, options.rows, options.background) }
    }

    /// Starts the program and waits for the input.
    pub(crate) fn ready(folder: &TestFolders, arguments: &[&str]) -> Terminal {
        let mut terminal = Terminal::start(folder, arguments, DEFAULT_OPTIONS);
        terminal.see("❯ ");
        terminal
    }

    /// Passes bytes both ways until nothing happens for `moment`, and never stops within a frame: half a frame shows what
    /// no user sees.
    fn pump(&mut self, mut input: &[u8], moment: Duration) -> Flow {
        let mut bytes = [0; 16 * 1024];
        loop {
            let replies = self.emulator.take_replies();
            if !replies.is_empty() {
                // Small enough to be written without blocking.
                drop((&self.pty).write_all(&replies));
            }
            // Wait longer only for the rest of a frame, and while keys are still to be written.
            let (wanted, moment) = match (input.is_empty(), self.emulator.is_drawing()) {
                (true, false) => (PollFlags::IN, moment),
                (true, true) => (PollFlags::IN, TIMEOUT),
                (false, _) => (PollFlags::IN | PollFlags::OUT, TIMEOUT),
            };
            let mut ready = [PollFd::new(&self.pty, wanted)];
            poll(&mut ready, Some(&Timespec::try_from(moment).unwrap())).unwrap();
            let found = ready[0].revents();
            if found.is_empty() {
                assert!(input.is_empty(), "the program does not take its keys\n{}", self.picture());
                assert!(!self.emulator.is_drawing(), "the program does not end its frame\n{}", self.picture());
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
                    // Linux reports a closed pty as an error.
                    Err(_) => return Flow::Closed,
                }
            }
            if input.is_empty() && !self.emulator.is_drawing() {
                return Flow::Open;
            }
        }
    }

    /// Sends keys as a terminal encodes them.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.pump(keys.as_bytes(), Duration::ZERO);
    }

    /// Types a line and presses Enter.
    pub(crate) fn enter(&mut self, line: &str) {
        self.keys(line);
        self.see_in_input(line);
        self.keys(ENTER);
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.keys(&format!("\x1b[200~{text}\x1b[201~"));
    }

    /// Clicks the left button on a cell; coordinates start at 0.
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

    /// The rows of the screen, without trailing blanks.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.emulator.lines()
    }

    pub(crate) fn emulator(&self) -> &Emulator {
        &self.emulator
    }

    /// The styles of a row's cells.
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

    /// Waits until the screen meets a condition.
    pub(crate) fn until(&mut self, what: &str, is_so: impl Fn(&[String]) -> bool) {
        let until = Instant::now() + TIMEOUT;
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

    /// Waits until the window has this title.
    pub(crate) fn title_is(&mut self, title: &str) {
        let until = Instant::now() + TIMEOUT;
        while self.emulator.title() != Some(title) {
            self.pump(b"", Duration::from_millis(200));
            let found = self.emulator.title();
            assert!(Instant::now() < until, "the title is {found:?}, not {title:?}\n{}", self.picture());
        }
    }

    /// Waits until the bell has rung this often; the title may arrive before it.
    pub(crate) fn rings(&mut self, times: usize) {
        let until = Instant::now() + TIMEOUT;
        while self.emulator.bells() != times {
            self.pump(b"", Duration::from_millis(200));
            let found = self.emulator.bells();
            assert!(Instant::now() < until, "the bell has rung {found} times, not {times}\n{}", self.picture());
        }
    }

    /// Waits until all of these notifications have arrived; the title may arrive before them.
    pub(crate) fn notifications_are(&mut self, expected: &[&str]) {
        let until = Instant::now() + TIMEOUT;
        while self.emulator.notifications() != expected {
            self.pump(b"", Duration::from_millis(200));
            let found = self.emulator.notifications();
            assert!(Instant::now() < until, "the notifications are {found:?}, not {expected:?}\n{}", self.picture());
        }
    }

    pub(crate) fn see_all(&mut self, texts: &[&str]) {
        texts.iter().for_each(|text| self.see(text));
    }

    pub(crate) fn miss(&mut self, text: &str) {
        self.until(&format!("no {text}"), |lines| !lines.iter().any(|line| line.contains(text)));
    }

    /// Waits until the input, near the bottom of the screen, contains the text.
    fn see_in_input(&mut self, text: &str) {
        let end: String = text.chars().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect();
        self.until(text, |lines| lines.iter().rev().take(13).any(|line| line.contains(end.trim())));
    }

    /// Waits until no turn is running.
    pub(crate) fn idle(&mut self) {
        self.until("the end of the turn", |lines| !lines.iter().any(|line| line.starts_with("─ ")));
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until the program exits.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let until = Instant::now() + TIMEOUT;
        while self.pump(b"", Duration::from_millis(200)) == Flow::Open {
            assert!(Instant::now() < until, "it does not end\n{}", self.picture());
        }
        self.child.wait().unwrap()
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// The screen as text, for assertion messages.
    pub(crate) fn picture(&self) -> String {
        let lines = self.lines();
        lines.iter().fold(String::new(), |all, line| format!("{all}▕{line}\n"))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may already have ended.
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
