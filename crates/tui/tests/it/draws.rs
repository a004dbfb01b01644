//! Puts any text anywhere on the screen: no panic, and no cell holds anything that a terminal would
//! execute. Shared by the fuzzer and the tests.

use std::sync::OnceLock;

use aside_core::block::{Arguments, Block, CallId, Time, ToolCall, ToolResult};
use aside_core::connection_failure::{ConnectionError, ConnectionFailure};
use aside_core::event::{BlockId, Ending, ReplyEnd};
use aside_core::permission_question::{PermissionQuestion, Risk};
use aside_core::settings::ThinkingDisplay;
use aside_core::terminal_text::is_terminal_safe;
use aside_core::turn::TurnEnd;
use aside_front::{CommandOutput, OpenedBlock, PendingQuestion, QuestionId, Status, Update};
use aside_tui::app::{App, Msg, Setup};
use aside_tui::highlighter::Highlighter;
use aside_tui::theme::Theme;
use aside_tui::view;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The first bytes select the place, the screen size and the chunk size for the rest.
pub(crate) fn check(data: &[u8]) {
    let Some(([place, width, height, size], bytes)) = data.split_first_chunk() else { return };
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    // The fuzzer rarely finds controls beyond ASCII, so unused characters stand for them.
    text = text.replace('\u{1}', "\u{9b}").replace('\u{2}', "\u{202e}").replace('\u{3}', "\u{2066}");
    let mut screen = FuzzScreen::new(u16::from(*width), u16::from(*height) % 40);
    let pieces = pieces(&text, usize::from(*size) + 1);
    match place % 8 {
        0 => screen.stream(OpenedBlock::Text, &pieces),
        1 => screen.stream(OpenedBlock::Thinking, &pieces),
        2 => screen.stream(OpenedBlock::ToolCall { name: text.clone() }, &pieces),
        3 => screen.result(&text, false),
        4 => screen.result(&text, true),
        5 => screen.update(Update::CommandOutput(CommandOutput::Markdown(text.clone()))),
        6 => screen.ask(&text),
        _ => screen.status(&text),
    }
    screen.frame();
    for code in [KeyCode::Char('r'), KeyCode::Char('o')] {
        screen.app.update(Msg::Key(KeyEvent::new(code, KeyModifiers::CONTROL)));
        screen.frame();
    }
    // In the reader, if it is open: a search and the outline.
    for code in [KeyCode::Char('/'), KeyCode::Char('a'), KeyCode::Enter, KeyCode::Char('o'), KeyCode::Esc] {
        screen.app.update(Msg::Key(KeyEvent::new(code, KeyModifiers::NONE)));
        screen.frame();
    }
}

/// Each chunk is drawn, so there are some small ones and the rest.
fn pieces(text: &str, size: usize) -> Vec<String> {
    let mut letters = text.chars();
    let mut pieces: Vec<String> = (0..16).map(|_| letters.by_ref().take(size).collect()).collect();
    pieces.push(letters.collect());
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

struct FuzzScreen {
    app: App,
    size: (u16, u16),
}

impl FuzzScreen {
    fn new(width: u16, height: u16) -> FuzzScreen {
        let status = Status { view: ThinkingDisplay::Full, ..Status::default() };
        let mut app = App::new(Setup { theme: Theme::default(), status, ..Setup::default() });
        app.update(Msg::Tick(Time(1_000)));
        FuzzScreen { app, size: (width, height) }
    }

    fn update(&mut self, update: Update) {
        self.app.update(Msg::Update(Box::new(update)));
    }

    fn stream(&mut self, opening: OpenedBlock, pieces: &[String]) {
        let block = BlockId(0);
        self.update(Update::Opened { block, opening });
        for piece in pieces {
            self.update(Update::Grew { block, text: piece.as_str().into() });
            self.frame();
        }
        self.update(Update::ReplyEnded(ReplyEnd { ending: Ending::Stop, error: None }));
        self.update(Update::TurnEnded(TurnEnd::Answered));
    }

    fn result(&mut self, text: &str, is_error: bool) {
        let arguments = Arguments::parse(text.to_owned());
        let id = CallId::Given("c".into());
        let call = ToolCall::new(id, text, arguments);
        self.update(Update::Closed { block: BlockId(0), value: Box::new(Block::ToolCall(call)) });
        self.frame();
        let result =
            ToolResult { id: "c".into(), name: text.to_owned(), content: text.to_owned(), is_error, media: Vec::new() };
        self.update(Update::ToolEnded(Box::new(result)));
    }

    fn ask(&mut self, text: &str) {
        let about = PermissionQuestion {
            preview: Some(text.to_owned()),
            covers: Some(text.to_owned()),
            ..PermissionQuestion::new(text, text, Risk::Writes)
        };
        self.update(Update::QuestionAsked(Box::new(PendingQuestion { id: QuestionId(1), about })));
        self.frame();
        self.app.update(Msg::Tick(Time(10_000)));
        self.app.update(Msg::Key(KeyEvent::new(KeyCode::Char('v'), KeyModifiers::NONE)));
    }

    fn status(&mut self, text: &str) {
        let name = Some(text.to_owned());
        let status = Status { model: text.to_owned(), profile: name.clone(), title: name, ..Status::default() };
        self.update(Update::Status(Box::new(status)));
        self.update(Update::TurnEnded(TurnEnd::Unreachable(ConnectionError::new(ConnectionFailure::Other, text))));
    }

    /// Draws, highlights the code, and draws again.
    fn frame(&mut self) {
        static HIGHLIGHTER: OnceLock<Highlighter> = OnceLock::new();
        for _ in 0..2 {
            let area = Rect::new(0, 0, self.size.0, self.size.1);
            let mut buffer = Buffer::empty(area);
            view::draw(&mut self.app, area, &mut buffer);
            for cell in buffer.content() {
                let symbol = cell.symbol();
                let is_safe = symbol.chars().all(|letter| is_terminal_safe(letter) && !letter.is_control());
                assert!(is_safe, "a cell holds {symbol:?}");
            }
            for job in self.app.highlight_jobs() {
                let result = HIGHLIGHTER.get_or_init(Highlighter::new).highlight(job);
                self.app.update(Msg::Highlighted(Box::new(result)));
            }
        }
    }
}
