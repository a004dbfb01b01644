//! The terminal taken over, and given back on every way out.

use std::io::{self, Write, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::clipboard::CopyToClipboard;
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture, KeyboardEnhancementFlags,
    PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use crossterm::{cursor, execute, queue};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;

use super::out::Out;
use crate::app::App;
use crate::seam::Mouse;
use crate::theme::Depth;
use crate::view;

pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Out>>,
    mouse: Mouse,
}

impl Screen {
    pub(super) fn open(depth: Depth) -> io::Result<Screen> {
        let broken = Arc::new(AtomicBool::new(false));
        let (breaks, before) = (Arc::clone(&broken), std::panic::take_hook());
        std::panic::set_hook(Box::new(move |panic| {
            // A frame on its way is whole first; the next one is not written.
            let output = stdout().lock();
            breaks.store(true, Ordering::Relaxed);
            // The words of the panic are of no use on a screen that vanishes.
            give_back().ok();
            drop(output);
            before(panic);
        }));
        take_over()?;
        let terminal = Terminal::new(CrosstermBackend::new(Out::new(depth, broken)))?;
        Ok(Screen { terminal, mouse: Mouse::Ours })
    }

    pub(super) fn draw(&mut self, app: &mut App) -> io::Result<()> {
        draw_frame(&mut self.terminal, app)
    }

    pub(super) fn copy(&mut self, text: &str) -> io::Result<()> {
        // Of the terminal, which may be far away over ssh.
        execute!(self.terminal.backend_mut(), CopyToClipboard::to_clipboard_from(text))
    }

    pub(super) fn mouse(&mut self, whose: Mouse) -> io::Result<()> {
        self.mouse = whose;
        let out = self.terminal.backend_mut();
        match whose {
            Mouse::Ours => execute!(out, EnableMouseCapture),
            Mouse::Terminals => execute!(out, DisableMouseCapture),
        }
    }

    /// Somebody else has the terminal for a while.
    pub(super) fn lend<T>(&mut self, to: impl FnOnce() -> T) -> io::Result<T> {
        give_back()?;
        let result = to();
        take_over()?;
        self.mouse(self.mouse)?;
        // To `clear`, the terminal would have to say where its cursor is, and
        // some never answer.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))?;
        Ok(result)
    }

    /// Stops this job until the shell calls it again.
    pub(super) fn suspend(&mut self) -> io::Result<Suspended> {
        #[cfg(unix)]
        {
            use rustix::process::{Signal, getpgrp, getsid, kill_current_process_group};
            // A group of its own means that a shell made it a job. Without one,
            // nobody would ever wake us.
            if getsid(None)? != getpgrp() {
                self.lend(|| kill_current_process_group(Signal::STOP))??;
                return Ok(Suspended::AndBack);
            }
        }
        Ok(Suspended::NoShell)
    }
}

/// What became of the wish to be suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suspended {
    AndBack,
    NoShell,
}

/// One frame: painted, compared with the last one, and what changed written.
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

impl Drop for Screen {
    fn drop(&mut self) {
        // There is nobody left to tell.
        give_back().ok();
    }
}

fn take_over() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, EnableMouseCapture, EnableBracketedPaste)?;
    // Where it is known, Shift+Enter can be told from Enter; elsewhere not.
    let flags = KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES;
    execute!(stdout(), PushKeyboardEnhancementFlags(flags)).ok();
    Ok(())
}

/// Gives the terminal back, for whoever ends the process in a hurry.
pub fn restore() {
    // There is nobody left to tell.
    give_back().ok();
}

fn give_back() -> io::Result<()> {
    // A frame that was begun is shown, and what comes behind it.
    execute!(stdout(), EndSynchronizedUpdate, PopKeyboardEnhancementFlags).ok();
    let written = execute!(stdout(), DisableBracketedPaste, DisableMouseCapture, LeaveAlternateScreen, cursor::Show);
    disable_raw_mode().and(written)
}
