//! Sets up the terminal and restores it on every exit path.

use std::io::{self, Write, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::clipboard::CopyToClipboard;
use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste, EnableFocusChange,
    EnableMouseCapture, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::style::Print;
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, SetTitle,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute, queue};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;

use super::notification_sequence::{Multiplexer, notification_sequence};
use super::terminal_output::TerminalOutput;
use crate::app::{App, Notification};
use crate::theme::ColourDepth;
use crate::view;
use aside_front::MouseMode;

/// Most terminals keep a stack of titles; the others ignore this.
const SAVE_TITLE: &str = "\x1b[22;2t";
const RESTORE_TITLE: &str = "\x1b[23;2t";

pub(super) struct TerminalGuard {
    terminal: Terminal<CrosstermBackend<TerminalOutput>>,
    mouse: MouseMode,
    title: Option<String>,
    multiplexer: Multiplexer,
}

impl TerminalGuard {
    pub(super) fn open(depth: ColourDepth, mouse: MouseMode) -> io::Result<TerminalGuard> {
        let panicked = Arc::new(AtomicBool::new(false));
        let (breaks, before) = (Arc::clone(&panicked), std::panic::take_hook());
        std::panic::set_hook(Box::new(move |panic| {
            // Waits for a frame that is being written; no further frame is written.
            let output = stdout().lock();
            breaks.store(true, Ordering::Relaxed);
            // The panic message would be lost on the alternate screen.
            leave_screen().ok();
            drop(output);
            before(panic);
        }));
        enter_screen()?;
        let terminal = Terminal::new(CrosstermBackend::new(TerminalOutput::new(depth, panicked)))?;
        let mut guard = TerminalGuard { terminal, mouse, title: None, multiplexer: Multiplexer::of_environment() };
        guard.mouse(mouse)?;
        Ok(guard)
    }

    /// Sets the title of the window, if it is another one.
    pub(super) fn set_title(&mut self, title: Option<String>) -> io::Result<()> {
        if title == self.title {
            return Ok(());
        }
        self.title = title;
        let out = self.terminal.backend_mut();
        match &self.title {
            Some(title) => execute!(out, SetTitle(title)),
            None => execute!(out, Print(RESTORE_TITLE), Print(SAVE_TITLE)),
        }
    }

    /// Calls the user.
    pub(super) fn notify(&mut self, notification: &Notification) -> io::Result<()> {
        match notification_sequence(notification, self.multiplexer) {
            Some(sequence) => execute!(self.terminal.backend_mut(), Print(sequence)),
            None => Ok(()),
        }
    }

    pub(super) fn draw(&mut self, app: &mut App) -> io::Result<()> {
        draw_frame(&mut self.terminal, app)
    }

    pub(super) fn copy(&mut self, text: &str) -> io::Result<()> {
        // OSC 52 sets the clipboard of the terminal, which may be remote over ssh.
        execute!(self.terminal.backend_mut(), CopyToClipboard::to_clipboard_from(text))
    }

    pub(super) fn mouse(&mut self, mode: MouseMode) -> io::Result<()> {
        self.mouse = mode;
        let out = self.terminal.backend_mut();
        match mode {
            MouseMode::Captured => execute!(out, EnableMouseCapture),
            MouseMode::Released => execute!(out, DisableMouseCapture),
        }
    }

    /// Hands the terminal to another program for a while.
    pub(super) fn lend<T>(&mut self, to: impl FnOnce() -> T) -> io::Result<T> {
        leave_screen()?;
        let result = to();
        enter_screen()?;
        self.mouse(self.mouse)?;
        let title = self.title.take();
        self.set_title(title)?;
        // `clear` would query the cursor position, and some terminals never answer.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))?;
        Ok(result)
    }

    /// Stops this job until the shell resumes it.
    pub(super) fn suspend(&mut self) -> io::Result<SuspendOutcome> {
        #[cfg(unix)]
        {
            use rustix::process::{Signal, getpgrp, getsid, kill_current_process_group};
            // Being in its own process group means that a shell started it as a job. Otherwise
            // nothing could resume it.
            if getsid(None)? != getpgrp() {
                self.lend(|| kill_current_process_group(Signal::STOP))??;
                return Ok(SuspendOutcome::Resumed);
            }
        }
        Ok(SuspendOutcome::NoShell)
    }
}

/// The result of a request to suspend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SuspendOutcome {
    Resumed,
    NoShell,
}

/// Paints one frame, compares it with the last one, and writes the difference.
pub fn draw_frame<W: Write>(terminal: &mut Terminal<CrosstermBackend<W>>, app: &mut App) -> io::Result<()> {
    queue!(terminal.backend_mut(), BeginSynchronizedUpdate)?;
    terminal.draw(|frame| {
        let area = frame.area();
        if let Some(cursor) = view::draw(app, area, frame.buffer_mut()) {
            frame.set_cursor_position(cursor);
        }
    })?;
    queue!(terminal.backend_mut(), EndSynchronizedUpdate)?;
    Write::flush(terminal.backend_mut())
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        // The program is ending, so an error has nowhere to go.
        leave_screen().ok();
    }
}

fn enter_screen() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(
        stdout(),
        Print(SAVE_TITLE),
        EnterAlternateScreen,
        EnableMouseCapture,
        EnableBracketedPaste,
        EnableFocusChange
    )?;
    // Terminals that support this distinguish Shift+Enter from Enter.
    let flags = KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES;
    execute!(stdout(), PushKeyboardEnhancementFlags(flags)).ok();
    Ok(())
}

/// Restores the terminal before the process exits early.
pub fn restore_terminal() {
    // The program is ending, so an error has nowhere to go.
    leave_screen().ok();
}

fn leave_screen() -> io::Result<()> {
    // Ends a frame that was begun, so that later output is shown.
    execute!(stdout(), EndSynchronizedUpdate, PopKeyboardEnhancementFlags).ok();
    let written = execute!(
        stdout(),
        DisableFocusChange,
        DisableBracketedPaste,
        DisableMouseCapture,
        LeaveAlternateScreen,
        Print(RESTORE_TITLE),
        cursor::Show
    );
    disable_raw_mode().and(written)
}
