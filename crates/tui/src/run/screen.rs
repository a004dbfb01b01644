//! The terminal taken over, and given back on every way out.

use std::io::{self, BufWriter, Stdout, Write, stdout};

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

use crate::app::App;
use crate::seam::{Mouse, TerminalAct};
use crate::view;

/// A frame is written at once.
const FRAME_BYTES: usize = 64 * 1024;

pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Screen {
    pub(super) fn open() -> io::Result<Screen> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // The words of the panic are of no use on a screen that vanishes.
            give_back().ok();
            before(panic);
        }));
        take_over()?;
        let out = BufWriter::with_capacity(FRAME_BYTES, stdout());
        Ok(Screen { terminal: Terminal::new(CrosstermBackend::new(out))? })
    }

    pub(super) fn draw(&mut self, app: &mut App) -> io::Result<()> {
        draw_frame(&mut self.terminal, app)
    }

    pub(super) fn carry_out(&mut self, act: &TerminalAct) -> io::Result<()> {
        let out = self.terminal.backend_mut();
        match act {
            // Of the terminal, which may be far away over ssh.
            TerminalAct::Copy(text) => execute!(out, CopyToClipboard::to_clipboard_from(text)),
            TerminalAct::Mouse(Mouse::Ours) => execute!(out, EnableMouseCapture),
            TerminalAct::Mouse(Mouse::Terminals) => execute!(out, DisableMouseCapture),
            TerminalAct::Suspend => self.suspend(),
        }
    }

    fn suspend(&mut self) -> io::Result<()> {
        #[cfg(unix)]
        {
            give_back()?;
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TSTP)?;
            take_over()?;
            self.terminal.clear()?;
        }
        Ok(())
    }
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

fn give_back() -> io::Result<()> {
    execute!(stdout(), PopKeyboardEnhancementFlags).ok();
    let written = execute!(stdout(), DisableBracketedPaste, DisableMouseCapture, LeaveAlternateScreen, cursor::Show);
    disable_raw_mode().and(written)
}
