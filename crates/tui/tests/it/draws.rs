//! Any text in any place of the screen: no panic, and nothing in a cell that a
//! terminal would obey. Shared by the fuzzer and the tests.

use std::sync::OnceLock;

use aside_core::block::{Arguments, Block, CallId, Time, ToolCall, ToolResult};
use aside_core::event::{BlockId, End, Ending};
use aside_core::screen::is_harmless;
use aside_core::settings::Display;
use aside_core::turn::TurnEnd;
use aside_tui::app::{App, Msg, Setup};
use aside_tui::seam::{Opening, Question, QuestionId, Said, Status, Update};
use aside_tui::syntax::Highlighter;
use aside_tui::theme::Theme;
use aside_tui::view;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The first bytes say where the rest goes, how wide the screen is, and in
/// which pieces it comes.
pub(crate) fn check(data: &[u8]) {
    let Some(([place, width, height, size], bytes)) = data.split_first_chunk() else { return };
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    // The fuzzer finds bytes; controls beyond ASCII are spelled by a letter no text needs.
    text = text.replace('\u{1}', "\u{9b}").replace('\u{2}', "\u{202e}").replace('\u{3}', "\u{2066}");
    let mut screen = Screen::new(u16::from(*width), u16::from(*height) % 40);
    let pieces = pieces(&text, usize::from(*size) + 1);
    match place % 8 {
        0 => screen.stream(Opening::Text, &pieces),
        1 => screen.stream(Opening::Thinking, &pieces),
        2 => screen.stream(Opening::ToolCall { name: text.clone() }, &pieces),
        3 => screen.result(&text, false),
        4 => screen.result(&text, true),
        5 => screen.tell(Update::Said(Said::Markdown(text.clone()))),
        6 => screen.ask(&text),
        _ => screen.status(&text),
    }
    screen.frame();
    for code in [KeyCode::Char('r'), KeyCode::Char('o')] {
        screen.app.update(Msg::Key(KeyEvent::new(code, KeyModifiers::CONTROL)));
        screen.frame();
    }
    // In the reader, if there is one: a search that spans whatever there is.
    for code in [KeyCode::Char('/'), KeyCode::Char('a'), KeyCode::Enter, KeyCode::Char('o'), KeyCode::Esc] {
        screen.app.update(Msg::Key(KeyEvent::new(code, KeyModifiers::NONE)));
        screen.frame();
    }
}

/// Each piece is a frame, so there are a few small ones and the rest.
fn pieces(text: &str, size: usize) -> Vec<String> {
    let mut letters = text.chars();
    let mut pieces: Vec<String> = (0..16).map(|_| letters.by_ref().take(size).collect()).collect();
    pieces.push(letters.collect());
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

struct Screen {
    app: App,
    size: (u16, u16),
}

impl Screen {
    fn new(width: u16, height: u16) -> Screen {
        let status = Status { view: Display::Full, ..Status::default() };
        let mut app = App::new(Setup { theme: Theme::default(), status, ..Setup::default() });
        app.update(Msg::Tick(Time(1_000)));
        Screen { app, size: (width, height) }
    }

    fn tell(&mut self, update: Update) {
        self.app.update(Msg::Update(Box::new(update)));
    }

    fn stream(&mut self, opening: Opening, pieces: &[String]) {
        let block = BlockId(0);
        self.tell(Update::Opened { block, opening });
        for piece in pieces {
            self.tell(Update::Grew { block, text: piece.clone() });
            self.frame();
        }
        self.tell(Update::ReplyEnded(End { ending: Ending::Stop, error: None }));
        self.tell(Update::TurnEnded(TurnEnd::Answered));
    }

    fn result(&mut self, text: &str, is_error: bool) {
        let arguments = Arguments::parse(text.to_owned());
        let id = CallId::Given("c".into());
        let call = ToolCall { id, name: text.to_owned(), arguments, seal: None, native: None };
        self.tell(Update::Closed { block: BlockId(0), value: Box::new(Block::ToolCall(call)) });
        self.frame();
        let result = ToolResult { id: "c".into(), name: text.to_owned(), content: text.to_owned(), is_error };
        self.tell(Update::ToolEnded(Box::new(result)));
    }

    fn ask(&mut self, text: &str) {
        let text = text.to_owned();
        self.tell(Update::Asked(Box::new(Question {
            id: QuestionId(1),
            about: crate::support::about(&text, &text, Some(text.clone()), Some(text.clone())),
        })));
        self.frame();
        self.app.update(Msg::Tick(Time(10_000)));
        self.app.update(Msg::Key(KeyEvent::new(KeyCode::Char('v'), KeyModifiers::NONE)));
    }

    fn status(&mut self, text: &str) {
        let name = Some(text.to_owned());
        let status = Status { model: text.to_owned(), profile: name.clone(), title: name, ..Status::default() };
        self.tell(Update::Status(Box::new(status)));
        self.tell(Update::TurnEnded(TurnEnd::Unreachable(text.to_owned())));
    }

    /// Draws, gives the code its colours, and draws again.
    fn frame(&mut self) {
        static HIGHLIGHTER: OnceLock<Highlighter> = OnceLock::new();
        for _ in 0..2 {
            let area = Rect::new(0, 0, self.size.0, self.size.1);
            let mut buffer = Buffer::empty(area);
            view::draw(&mut self.app, area, &mut buffer);
            for cell in buffer.content() {
                let symbol = cell.symbol();
                let is_safe = symbol.chars().all(|letter| is_harmless(letter) && !letter.is_control());
                assert!(is_safe, "a cell holds {symbol:?}");
            }
            for job in self.app.unlit() {
                let lit = HIGHLIGHTER.get_or_init(Highlighter::new).work(job);
                self.app.update(Msg::Lit(Box::new(lit)));
            }
        }
    }
}
