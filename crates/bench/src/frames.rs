//! Draws the real screen without a terminal: the app, the layout, the diff with the
//! last frame and the bytes written.

use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;

use aside_core::block::{Block, Text, Thinking, ThinkingContent, Time};
use aside_core::event::BlockId;
use aside_core::message::{Message, Role};
use aside_core::settings::ThinkingDisplay;
use aside_front::{OpenedBlock, Sending, Status, Update};
use aside_tui::app::{App, Msg, Setup};
use aside_tui::theme::Theme;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};

pub const SIZE: (u16, u16) = (200, 50);
/// 1,000 deltas a second at thirty frames.
pub const DELTAS_A_FRAME: usize = 33;
const FRAME_MS: u64 = 33;
/// Every this many deltas, a line ends.
const DELTAS_A_LINE: usize = 5;

/// A conversation with `lines` lines of thinking, 26 bytes each, `a_turn` of them in each turn.
pub fn long_conversation(lines: usize, a_turn: usize) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut line = 0;
    while line < lines {
        let to = lines.min(line + a_turn);
        let thought: String = (line..to).map(|at| format!("thought {at:06} of so many\n")).collect();
        let thinking = Thinking::new(ThinkingContent::Open { text: thought }, "thinking");
        let answer = format!("Here is **the answer** after line {to}.\n\n- one thing\n- and `another`\n");
        messages.push(Message::new(Role::User, vec![text(&format!("question at line {line}"))]));
        messages.push(Message::new(Role::Assistant, vec![Block::Thinking(thinking), text(&answer)]));
        line = to;
    }
    messages
}

fn text(text: &str) -> Block {
    Block::Text(Text { text: text.to_owned(), seal: None, native: None, extra: Default::default() })
}

/// Discards frames and counts their bytes.
#[derive(Debug, Default, Clone)]
struct CountingWriter {
    bytes: Rc<Cell<usize>>,
}

impl Write for CountingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.set(self.bytes.get() + bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A screen that a turn is streamed to.
pub struct ScreenBench {
    pub app: App,
    terminal: Terminal<CrosstermBackend<CountingWriter>>,
    out: CountingWriter,
    now: u64,
    block: u32,
    deltas: usize,
}

impl ScreenBench {
    pub fn new(view: ThinkingDisplay, above: Vec<Message>) -> ScreenBench {
        let area = Rect::new(0, 0, SIZE.0, SIZE.1);
        let options = TerminalOptions { viewport: Viewport::Fixed(area) };
        let out = CountingWriter::default();
        let terminal = Terminal::with_options(CrosstermBackend::new(out.clone()), options);
        let status = Status { model: "acme/deep".into(), limit: Some(200_000), view, ..Status::default() };
        let app = App::new(Setup { theme: Theme::default(), status, ..Setup::default() });
        let terminal = terminal.expect("a sink cannot fail");
        let mut screen = ScreenBench { app, terminal, out, now: 1_000_000, block: 0, deltas: 0 };
        screen.update(Update::Restored(above.into_iter().map(Arc::new).collect()));
        screen.frame();
        screen
    }

    pub fn update(&mut self, update: Update) {
        self.app.update(Msg::Update(Box::new(update)));
    }

    /// Starts a request and opens a block of thinking or text.
    pub fn begin(&mut self, opening: OpenedBlock) {
        self.block += 1;
        self.update(Update::Sending(Box::new(Sending { model: "acme/deep".into(), ..Sending::default() })));
        self.update(Update::Opened { block: BlockId(self.block), opening });
    }

    pub fn deltas(&mut self, count: usize) {
        for _ in 0..count {
            self.deltas += 1;
            let end = if self.deltas.is_multiple_of(DELTAS_A_LINE) { "\n" } else { "" };
            let text = format!(" w{:04}{end}", self.deltas % 10_000);
            self.update(Update::Grew { block: BlockId(self.block), text: text.into() });
        }
    }

    /// Adds lines in one delta.
    pub fn lines(&mut self, count: usize) {
        let text: String = (0..count).map(|at| format!("thought {at:06} of so many\n")).collect();
        self.update(Update::Grew { block: BlockId(self.block), text: text.into() });
    }

    /// Draws a frame as the event loop does.
    pub fn frame(&mut self) {
        self.now += FRAME_MS;
        self.app.update(Msg::Tick(Time(self.now)));
        aside_tui::draw_frame(&mut self.terminal, &mut self.app).expect("a sink cannot fail");
    }

    /// Bytes written to the terminal so far.
    pub fn written(&self) -> usize {
        self.out.bytes.get()
    }

    pub fn frames(&mut self, count: usize) {
        for _ in 0..count {
            self.deltas(DELTAS_A_FRAME);
            self.frame();
        }
    }

    pub fn key(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        self.app.update(Msg::Key(KeyEvent::new(code, modifiers)));
    }
}

/// Keeps the compiler from merging functions with the same body, which would be measured as one.
fn distinct(number: u32) {
    std::hint::black_box(number);
}

#[inline(never)]
pub fn measured_empty_frames(screen: &mut ScreenBench, count: usize) {
    distinct(0);
    screen.frames(count);
}

#[inline(never)]
pub fn measured_full_frames(screen: &mut ScreenBench, count: usize) {
    distinct(1);
    screen.frames(count);
}

#[inline(never)]
pub fn measured_early_deltas(screen: &mut ScreenBench, count: usize) {
    distinct(2);
    screen.frames(count);
}

#[inline(never)]
pub fn measured_late_deltas(screen: &mut ScreenBench, count: usize) {
    distinct(3);
    screen.frames(count);
}

/// `Ctrl+T`: changes the display of all thinking blocks and draws the next frame.
#[inline(never)]
pub fn measured_toggle(screen: &mut ScreenBench) {
    screen.key(KeyCode::Char('t'), KeyModifiers::CONTROL);
    screen.frame();
}

#[inline(never)]
pub fn measured_opening(view: ThinkingDisplay, above: Vec<Message>) -> ScreenBench {
    ScreenBench::new(view, above)
}
