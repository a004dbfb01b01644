//! A screen driven by the tests.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::OnceLock;

use aside_core::block::{
    Arguments, Block, CallId, Seal, SealKind, Seals, Text, Thinking, ThinkingContent, ThinkingSpan, Time, ToolCall,
    ToolResult,
};
use aside_core::event::{BlockId, Ending, ReplyEnd};
use aside_core::permission_question::{self, Risk};
use aside_core::settings::ThinkingDisplay;
use aside_core::turn::TurnEnd;
use aside_front::{Command, CompletionLists, OpenedBlock, Sending, Status, Update};
use aside_tui::app::{App, Msg, Setup};
use aside_tui::highlighter::Highlighter;
use aside_tui::text::highlight_jobs::HighlightJob;
use aside_tui::theme::{ColourDepth, ColourScheme, Theme};
use aside_tui::view;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

pub(crate) struct TestTerminal {
    pub(crate) app: App,
    pub(crate) size: (u16, u16),
    pub(crate) now: u64,
    /// All commands that the screen sent.
    pub(crate) sent: Vec<Command>,
}

impl TestTerminal {
    pub(crate) fn new(width: u16, height: u16) -> TestTerminal {
        TestTerminal::with_theme(width, height, Theme::default(), ThinkingDisplay::Live)
    }

    pub(crate) fn with_view(width: u16, height: u16, view: ThinkingDisplay) -> TestTerminal {
        TestTerminal::with_theme(width, height, Theme::default(), view)
    }

    pub(crate) fn with_theme(width: u16, height: u16, theme: Theme, view: ThinkingDisplay) -> TestTerminal {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let status = Status { model: "acme/deep".into(), limit: Some(200_000), view, ..Status::default() };
        let lists = CompletionLists {
            files: words(&["src/lib.rs"]),
            models: words(&["acme/deep"]),
            ..CompletionLists::default()
        };
        let app = App::new(Setup { theme, status, lists, sent: Vec::new() });
        let mut term = TestTerminal { app, size: (width, height), now: 1_000_000, sent: Vec::new() };
        term.advance(0);
        term
    }

    pub(crate) fn msg(&mut self, msg: Msg) {
        let commands = self.app.update(msg);
        self.sent.extend(commands);
    }

    pub(crate) fn advance(&mut self, ms: u64) {
        self.now += ms;
        self.msg(Msg::Tick(Time(self.now)));
    }

    pub(crate) fn update(&mut self, update: Update) {
        let begins_turn = matches!(update, Update::QuestionAsked(_));
        self.msg(Msg::Update(Box::new(update)));
        if begins_turn {
            // Answers count only once the question was shown.
            self.buffer();
            self.app.frame_shown();
        }
    }

    pub(crate) fn send(&mut self) {
        self.update(Update::Sending(Box::new(sending())));
    }

    pub(crate) fn open(&mut self, block: u32, opening: OpenedBlock) {
        self.update(Update::Opened { block: BlockId(block), opening });
    }

    pub(crate) fn grow(&mut self, block: u32, text: &str) {
        self.update(Update::Grew { block: BlockId(block), text: text.into() });
    }

    pub(crate) fn close(&mut self, block: u32, value: Block) {
        self.update(Update::Closed { block: BlockId(block), value: Box::new(value) });
    }

    /// A complete thinking block that took this long.
    pub(crate) fn think(&mut self, block: u32, text: &str, ms: u64) {
        self.open(block, OpenedBlock::Thinking);
        let started = self.now;
        self.grow(block, text);
        self.advance(ms);
        let span = ThinkingSpan { started: Time(started), ended: Time(self.now) };
        self.close(block, Block::Thinking(thinking(text, Some(span))));
    }

    pub(crate) fn write(&mut self, block: u32, text: &str) {
        self.open(block, OpenedBlock::Text);
        self.grow(block, text);
        self.close(block, text_block(text));
    }

    pub(crate) fn call(&mut self, block: u32, id: &str, name: &str, arguments: &str) {
        self.open(block, OpenedBlock::ToolCall { name: name.into() });
        self.grow(block, arguments);
        self.close(block, call(id, name, arguments));
    }

    pub(crate) fn result(&mut self, id: &str, content: &str, is_error: bool) {
        let result =
            ToolResult { id: id.into(), name: "tool".into(), content: content.into(), is_error, media: Vec::new() };
        self.update(Update::ToolEnded(Box::new(result)));
    }

    pub(crate) fn end(&mut self, end: TurnEnd) {
        self.update(Update::ReplyEnded(ReplyEnd { ending: Ending::Stop, error: None }));
        self.update(Update::TurnEnded(end));
    }

    pub(crate) fn key(&mut self, code: KeyCode) {
        self.msg(Msg::Key(KeyEvent::new(code, KeyModifiers::NONE)));
    }

    pub(crate) fn shifted(&mut self, letter: char) {
        self.msg(Msg::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::SHIFT)));
    }

    pub(crate) fn control(&mut self, letter: char) {
        self.msg(Msg::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL)));
    }

    pub(crate) fn type_text(&mut self, text: &str) {
        for letter in text.chars() {
            self.key(KeyCode::Char(letter));
        }
    }

    /// Types a line and submits it.
    pub(crate) fn line(&mut self, text: &str) {
        // Pasted, so that no completion popup opens.
        self.msg(Msg::Paste(text.to_owned()));
        self.key(KeyCode::Enter);
    }

    /// Sends a line for after the turn.
    pub(crate) fn queue_line(&mut self, text: &str) {
        self.msg(Msg::Paste(text.to_owned()));
        self.control('q');
    }

    pub(crate) fn click(&mut self, x: u16, y: u16) {
        let kind = MouseEventKind::Down(MouseButton::Left);
        self.msg(Msg::Mouse(MouseEvent { kind, column: x, row: y, modifiers: KeyModifiers::NONE }));
    }

    pub(crate) fn wheel(&mut self, up: bool) {
        let kind = if up { MouseEventKind::ScrollUp } else { MouseEventKind::ScrollDown };
        self.msg(Msg::Mouse(MouseEvent { kind, column: 0, row: 0, modifiers: KeyModifiers::NONE }));
    }

    /// Draws until all visible code is highlighted.
    pub(crate) fn highlight_code(&mut self) {
        loop {
            self.buffer();
            let jobs = self.app.highlight_jobs();
            if jobs.is_empty() {
                return;
            }
            self.run_jobs(jobs);
        }
    }

    pub(crate) fn run_jobs(&mut self, jobs: Vec<HighlightJob>) {
        static HIGHLIGHTER: OnceLock<Highlighter> = OnceLock::new();
        for job in jobs {
            let result = HIGHLIGHTER.get_or_init(Highlighter::new).highlight(job);
            self.msg(Msg::Highlighted(Box::new(result)));
        }
    }

    pub(crate) fn buffer(&mut self) -> Buffer {
        let area = Rect::new(0, 0, self.size.0, self.size.1);
        let mut buffer = Buffer::empty(area);
        view::draw(&mut self.app, area, &mut buffer);
        buffer
    }

    /// The rows of the frame, without trailing spaces.
    pub(crate) fn rows(&mut self) -> Vec<String> {
        let buffer = self.buffer();
        (0..self.size.1).map(|y| row_text(&buffer, y)).collect()
    }

    pub(crate) fn screen(&mut self) -> String {
        self.rows().join("\n")
    }

    /// The non-blank rows of the transcript.
    pub(crate) fn transcript(&mut self) -> Vec<String> {
        let rows = self.rows();
        let input = rows.iter().rposition(|row| row.starts_with('─')).unwrap_or(rows.len());
        rows[..input].iter().filter(|row| !row.is_empty()).cloned().collect()
    }

    /// The style where a text first appears.
    pub(crate) fn style_of(&mut self, text: &str) -> (Color, Modifier) {
        let rows = self.rows();
        let y = rows.iter().position(|row| row.contains(text)).unwrap_or_else(|| panic!("no {text:?} in {rows:#?}"));
        let row = &rows[y];
        let x = row[..row.find(text).unwrap()].chars().count();
        let cell = &self.buffer()[(x as u16, y as u16)];
        (cell.fg, cell.modifier)
    }

    /// The frame with the styles of each row, and a legend.
    pub(crate) fn picture(&mut self) -> String {
        let mut styles = StyleLegend::default();
        self.styled(&mut styles) + &styles.legend()
    }

    /// The frame with the styles of each row.
    pub(crate) fn styled(&mut self, styles: &mut StyleLegend) -> String {
        let buffer = self.buffer();
        let mut out = String::new();
        for y in 0..self.size.1 {
            let mut codes = String::new();
            for (style, count) in runs(&buffer, y) {
                match styles.letter(style) {
                    None => write!(codes, " {count}").unwrap(),
                    Some(letter) => write!(codes, " {letter}{count}").unwrap(),
                }
            }
            let text = row_text(&buffer, y);
            if text.is_empty() && codes.trim().parse::<u16>().is_ok() {
                out.push('\n');
                continue;
            }
            writeln!(out, "{text}  ◂{codes}").unwrap();
        }
        out
    }
}

/// A letter for each style, in order of appearance.
#[derive(Default)]
pub(crate) struct StyleLegend(BTreeMap<String, char>);

impl StyleLegend {
    fn letter(&mut self, style: Style) -> Option<char> {
        let name = style_name(style);
        if name.is_empty() {
            return None;
        }
        let next = ('a'..='z').chain('A'..='Z').nth(self.0.len()).unwrap();
        Some(*self.0.entry(name).or_insert(next))
    }

    pub(crate) fn legend(&self) -> String {
        // Lower-case letters come first.
        let mut legend: Vec<(bool, char, &str)> =
            self.0.iter().map(|(style, letter)| (letter.is_uppercase(), *letter, style.as_str())).collect();
        legend.sort();
        legend.into_iter().map(|(_, letter, style)| format!("{letter} = {style}\n")).collect()
    }
}

pub(crate) fn text_of(buffer: &Buffer) -> String {
    (0..buffer.area.height).map(|y| row_text(buffer, y)).collect::<Vec<_>>().join("\n")
}

fn row_text(buffer: &Buffer, y: u16) -> String {
    let mut row = String::new();
    let mut skip = 0;
    for x in 0..buffer.area.width {
        if skip > 0 {
            skip -= 1;
            continue;
        }
        let symbol = buffer[(x, y)].symbol();
        skip = aside_tui::text::width_of(symbol).saturating_sub(1);
        row.push_str(symbol);
    }
    row.trim_end().to_owned()
}

fn runs(buffer: &Buffer, y: u16) -> Vec<(Style, usize)> {
    let mut runs: Vec<(Style, usize)> = Vec::new();
    for x in 0..buffer.area.width {
        let style = buffer[(x, y)].style();
        match runs.last_mut() {
            Some((last, count)) if *last == style => *count += 1,
            _ => runs.push((style, 1)),
        }
    }
    runs
}

fn style_name(style: Style) -> String {
    let colour = |name: &str, colour: Option<Color>| match colour {
        None | Some(Color::Reset) => String::new(),
        Some(colour) => format!("{name} {colour} "),
    };
    let modifier = style.add_modifier;
    let modifiers = if modifier.is_empty() { String::new() } else { format!("{modifier:?}").to_lowercase() };
    format!("{}{}{modifiers}", colour("on", style.bg), colour("in", style.fg)).trim().to_owned()
}

pub(crate) fn thinking(text: &str, span: Option<ThinkingSpan>) -> Thinking {
    let content = ThinkingContent::Open { text: text.into() };
    Thinking { span, ..Thinking::new(content, "reasoning_content") }
}

pub(crate) fn hidden() -> Thinking {
    let seal = Seal { kind: SealKind::Encrypted, payload: "x".repeat(640) };
    let seals = Seals { encrypted: Some(seal), ..Seals::default() };
    Thinking { content: ThinkingContent::Hidden { seals }, ..thinking("", None) }
}

pub(crate) fn text_block(text: &str) -> Block {
    Block::Text(Text { text: text.into(), ..Text::default() })
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> Block {
    Block::ToolCall(ToolCall::new(CallId::Given(id.into()), name, Arguments::parse(arguments.into())))
}

/// The request that most tests send.
pub(crate) fn sending() -> Sending {
    Sending {
        step: 1,
        model: "acme/deep".into(),
        effort: Some("high".into()),
        tokens: 12_300,
        limit: Some(200_000),
        ..Sending::default()
    }
}

/// Every colour scheme and depth, by the name of its golden file.
pub(crate) fn themes() -> [(&'static str, Theme); 7] {
    let on = |scheme, depth| Theme { scheme, depth, ..Theme::default() };
    #[rustfmt::skip]
    let themes = [
        ("dark",      on(ColourScheme::Dark, ColourDepth::True)),
        ("light",     on(ColourScheme::Light, ColourDepth::True)),
        ("dark-256",  on(ColourScheme::Dark, ColourDepth::Indexed)),
        ("light-256", on(ColourScheme::Light, ColourDepth::Indexed)),
        ("dark-16",   on(ColourScheme::Dark, ColourDepth::Sixteen)),
        ("light-16",  on(ColourScheme::Light, ColourDepth::Sixteen)),
        ("no-colour", on(ColourScheme::Dark, ColourDepth::None)),
    ];
    themes
}

/// A question with its preview and the scope of a lasting permission.
pub(crate) fn question_about(
    tool: &str,
    subject: &str,
    preview: Option<String>,
    covers: Option<String>,
) -> permission_question::PermissionQuestion {
    let risk = if tool == "shell" { Risk::Runs } else { Risk::Writes };
    permission_question::PermissionQuestion {
        preview,
        covers,
        ..permission_question::PermissionQuestion::new(tool, subject, risk)
    }
}
