//! A terminal emulator: cells, modes, and replies to queries.

use std::num::NonZeroU16;

use vt100::{Callbacks, Cell, Color, MouseProtocolMode, Parser, Screen};

/// The background that the terminal reports when queried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Background {
    Dark,
    Light,
}

pub(crate) struct Emulator(Parser<TerminalQueries>);

/// The style of a cell.
#[expect(clippy::struct_excessive_bools, reason = "a terminal has them one by one")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Style {
    pub(crate) ink: Color,
    pub(crate) back: Color,
    pub(crate) bold: bool,
    pub(crate) dim: bool,
    pub(crate) italic: bool,
    pub(crate) underlined: bool,
    pub(crate) inverse: bool,
}

impl Style {
    pub(crate) fn of(cell: &Cell) -> Style {
        Style {
            ink: cell.fgcolor(),
            back: cell.bgcolor(),
            bold: cell.bold(),
            dim: cell.dim(),
            italic: cell.italic(),
            underlined: cell.underline(),
            inverse: cell.inverse(),
        }
    }
}

/// State that vt100's screen does not keep.
struct TerminalQueries {
    background: Background,
    replies: Vec<u8>,
    /// Inside a synchronized update.
    drawing: bool,
    /// Keyboard modes pushed and not popped.
    keyboard_modes: i32,
    copied: Vec<Vec<u8>>,
    bells: usize,
    title: Option<String>,
    /// Titles saved and not restored.
    saved_titles: i32,
    /// The notifications, without their escape codes.
    notifications: Vec<String>,
}

/// The modes that a program must restore.
#[expect(clippy::struct_excessive_bools, reason = "a terminal has them one by one")]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Modes {
    pub(crate) alternate_screen: bool,
    pub(crate) mouse: bool,
    pub(crate) bracketed_paste: bool,
    pub(crate) cursor_hidden: bool,
    pub(crate) keyboard_modes: i32,
    pub(crate) drawing: bool,
}

impl Modes {
    /// The modes of a shell.
    pub(crate) const DEFAULT: Modes = Modes {
        alternate_screen: false,
        mouse: false,
        bracketed_paste: false,
        cursor_hidden: false,
        keyboard_modes: 0,
        drawing: false,
    };
}

impl Emulator {
    pub(crate) fn new(columns: u16, rows: u16, background: Background) -> Emulator {
        let queries = TerminalQueries {
            background,
            replies: Vec::new(),
            drawing: false,
            keyboard_modes: 0,
            copied: Vec::new(),
            bells: 0,
            title: None,
            saved_titles: 0,
            notifications: Vec::new(),
        };
        Emulator(Parser::new_with_callbacks(size(rows), size(columns), 0, queries))
    }

    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.0.process(bytes);
    }

    pub(crate) fn take_replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0.callbacks_mut().replies)
    }

    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.0.set_size(size(rows), size(columns));
    }

    pub(crate) fn is_drawing(&self) -> bool {
        self.0.callbacks().drawing
    }

    /// The data sent to the clipboard, still base64.
    pub(crate) fn copied(&self) -> &[Vec<u8>] {
        &self.0.callbacks().copied
    }

    pub(crate) fn bells(&self) -> usize {
        self.0.callbacks().bells
    }

    pub(crate) fn title(&self) -> Option<&str> {
        self.0.callbacks().title.as_deref()
    }

    pub(crate) fn saved_titles(&self) -> i32 {
        self.0.callbacks().saved_titles
    }

    pub(crate) fn notifications(&self) -> &[String] {
        &self.0.callbacks().notifications
    }

    pub(crate) fn screen(&self) -> &Screen {
        self.0.screen()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let columns = self.screen().size().1.get();
        self.screen().rows(0, columns).map(|row| row.trim_end().to_owned()).collect()
    }

    pub(crate) fn styles(&self, row: u16) -> Vec<Style> {
        let columns = 0..self.screen().size().1.get();
        columns.filter_map(|column| self.screen().cell(row, column)).map(Style::of).collect()
    }

    pub(crate) fn modes(&self) -> Modes {
        let screen = self.screen();
        Modes {
            alternate_screen: screen.alternate_screen(),
            mouse: screen.mouse_protocol_mode() != MouseProtocolMode::None,
            bracketed_paste: screen.bracketed_paste(),
            cursor_hidden: screen.hide_cursor(),
            keyboard_modes: self.0.callbacks().keyboard_modes,
            drawing: self.is_drawing(),
        }
    }
}

fn size(cells: u16) -> NonZeroU16 {
    NonZeroU16::new(cells).unwrap()
}

impl Callbacks for TerminalQueries {
    fn unhandled_csi(&mut self, _: &mut Screen, i1: Option<u8>, _: Option<u8>, params: &[&[u16]], c: char) {
        match (i1, c, params.first().and_then(|first| first.first())) {
            (None, 'c', _) => self.replies.extend(b"\x1b[?62;22c"),
            (Some(b'?'), 'h', Some(2026)) => self.drawing = true,
            (Some(b'?'), 'l', Some(2026)) => self.drawing = false,
            (Some(b'>'), 'u', _) => self.keyboard_modes += 1,
            (Some(b'<'), 'u', _) => self.keyboard_modes -= 1,
            (None, 't', Some(22)) => self.saved_titles += 1,
            (None, 't', Some(23)) => self.saved_titles -= 1,
            _ => (),
        }
    }

    fn audible_bell(&mut self, _: &mut Screen) {
        self.bells += 1;
    }

    fn set_window_title(&mut self, _: &mut Screen, title: &[u8]) {
        self.title = Some(String::from_utf8_lossy(title).into_owned());
    }

    fn unhandled_osc(&mut self, _: &mut Screen, params: &[&[u8]]) {
        if matches!(params.first(), Some(&b"9" | &b"777")) {
            self.notifications.push(String::from_utf8_lossy(&params.join(&b';')).into_owned());
        }
        if params == [&b"11"[..], b"?"] {
            self.replies.extend(match self.background {
                Background::Dark => &b"\x1b]11;rgb:1010/1111/1414\x1b\\"[..],
                Background::Light => b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\",
            });
        }
    }

    fn copy_to_clipboard(&mut self, _: &mut Screen, _: &[u8], data: &[u8]) {
        self.copied.push(data.to_vec());
    }
}
