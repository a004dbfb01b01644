//! The real screen without a terminal: the app, the layout, the comparison
//! with the last frame and the bytes that go out.

use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;

use aside_core::block::{Block, Content, Text, Thinking, Time};
use aside_core::event::BlockId;
use aside_core::message::{Message, Role};
use aside_core::settings::Display;
use aside_tui::app::{App, Msg, Setup};
use aside_tui::seam::{Opening, Sending, Status, Update};
use aside_tui::theme::Theme;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};

pub const SIZE: (u16, u16) = (200, 50);
/// 1,000 deltas a second at thirty frames.
pub const DELTAS_A_FRAME: usize = 33;
const FRAME_MS: u64 = 33;
/// A line ends after so many deltas.
const DELTAS_A_LINE: usize = 5;

/// So many lines of thinking, of 26 bytes each, in turns of so many lines.
pub fn talk(lines: usize, a_turn: usize) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut line = 0;
    while line < lines {
        let to = lines.min(line + a_turn);
        let thought: String = (line..to).map(|at| format!("thought {at:06} of so many\n")).collect();
        let thinking = Thinking {
            content: Content::Open { text: thought },
            source: "thinking".to_owned(),
            id: None,
            items: Vec::new(),
            span: None,
            native: None,
        };
        let answer = format!("Here is **the answer** after line {to}.\n\n- one thing\n- and `another`\n");
        messages.push(Message::new(Role::User, vec![text(&format!("question at line {line}"))]));
        messages.push(Message::new(Role::Assistant, vec![Block::Thinking(thinking), text(&answer)]));
        line = to;
    }
    messages
}

fn text(text: &str) -> Block {
    Block::Text(Text { text: text.to_owned(), seal: None, native: None })
}

/// Where frames go: nowhere, but they are counted.
#[derive(Debug, Default, Clone)]
struct Out {
    bytes: Rc<Cell<usize>>,
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.set(self.bytes.get() + bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A screen that a turn streams to.
pub struct Stage {
    pub app: App,
    terminal: Terminal<CrosstermBackend<Out>>,
    out: Out,
    now: u64,
    block: u32,
    deltas: usize,
}

impl Stage {
    pub fn new(view: Display, above: Vec<Message>) -> Stage {
        let area = Rect::new(0, 0, SIZE.0, SIZE.1);
        let options = TerminalOptions { viewport: Viewport::Fixed(area) };
        let out = Out::default();
        let terminal = Terminal::with_options(CrosstermBackend::new(out.clone()), options);
        let status = Status { model: "acme/deep".into(), limit: Some(200_000), view, ..Status::default() };
        let app = App::new(Setup { theme: Theme::default(), status, ..Setup::default() });
        let terminal = terminal.expect("a sink cannot fail");
        let mut stage = Stage { app, terminal, out, now: 1_000_000, block: 0, deltas: 0 };
        stage.tell(Update::Restored(above));
        stage.frame();
        stage
    }

    pub fn tell(&mut self, update: Update) {
        self.app.update(Msg::Update(Box::new(update)));
    }

    /// A request goes out and thinking, or an answer, begins to come.
    pub fn begin(&mut self, opening: Opening) {
        self.block += 1;
        self.tell(Update::Sending(Box::new(Sending { model: "acme/deep".into(), ..Sending::default() })));
        self.tell(Update::Opened { block: BlockId(self.block), opening });
    }

    pub fn deltas(&mut self, count: usize) {
        for _ in 0..count {
            self.deltas += 1;
            let end = if self.deltas.is_multiple_of(DELTAS_A_LINE) { "\n" } else { "" };
            let text = format!(" w{:04}{end}", self.deltas % 10_000);
            self.tell(Update::Grew { block: BlockId(self.block), text });
        }
    }

    /// So many lines at once.
    pub fn lines(&mut self, count: usize) {
        let text = (0..count).map(|at| format!("thought {at:06} of so many\n")).collect();
        self.tell(Update::Grew { block: BlockId(self.block), text });
    }

    /// What the loop does for a frame.
    pub fn frame(&mut self) {
        self.now += FRAME_MS;
        self.app.update(Msg::Tick(Time(self.now)));
        aside_tui::draw_frame(&mut self.terminal, &mut self.app).expect("a sink cannot fail");
    }

    /// Bytes that went to the terminal so far.
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

/// Functions that do the same would become one, and be counted as one.
fn distinct(number: u32) {
    std::hint::black_box(number);
}

#[inline(never)]
pub fn measured_empty_frames(stage: &mut Stage, count: usize) {
    distinct(0);
    stage.frames(count);
}

#[inline(never)]
pub fn measured_full_frames(stage: &mut Stage, count: usize) {
    distinct(1);
    stage.frames(count);
}

#[inline(never)]
pub fn measured_early_deltas(stage: &mut Stage, count: usize) {
    distinct(2);
    stage.frames(count);
}

#[inline(never)]
pub fn measured_late_deltas(stage: &mut Stage, count: usize) {
    distinct(3);
    stage.frames(count);
}

/// `Ctrl+T`: every thought looks different, and the next frame shows it.
#[inline(never)]
pub fn measured_toggle(stage: &mut Stage) {
    stage.key(KeyCode::Char('t'), KeyModifiers::CONTROL);
    stage.frame();
}

#[inline(never)]
pub fn measured_opening(view: Display, above: Vec<Message>) -> Stage {
    Stage::new(view, above)
}
