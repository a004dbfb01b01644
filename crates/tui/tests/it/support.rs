//! A screen that is driven by hand.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::OnceLock;

use aside_core::block::{
    Arguments, Block, CallId, Content, Seal, SealKind, Seals, Span, Text, Thinking, Time, ToolCall, ToolResult,
};
use aside_core::event::{BlockId, End, Ending};
use aside_core::question::{self, Risk};
use aside_core::settings::Display;
use aside_core::turn::TurnEnd;
use aside_tui::app::{App, Msg, Setup};
use aside_tui::seam::{Command, Lists, Opening, Sending, Status, Update};
use aside_tui::syntax::Highlighter;
use aside_tui::text::light::Job;
use aside_tui::theme::{Depth, Ground, Theme};
use aside_tui::view;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

pub(crate) struct Stage {
    pub(crate) app: App,
    pub(crate) size: (u16, u16),
    pub(crate) now: u64,
    /// Everything the screen asked for.
    pub(crate) sent: Vec<Command>,
}

impl Stage {
    pub(crate) fn new(width: u16, height: u16) -> Stage {
        Stage::themed(width, height, Theme::default(), Display::Live)
    }

    pub(crate) fn viewed(width: u16, height: u16, view: Display) -> Stage {
        Stage::themed(width, height, Theme::default(), view)
    }

    pub(crate) fn themed(width: u16, height: u16, theme: Theme, view: Display) -> Stage {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let status = Status { model: "acme/deep".into(), limit: Some(200_000), view, ..Status::default() };
        let lists = Lists { files: words(&["src/lib.rs"]), models: words(&["acme/deep"]), ..Lists::default() };
        let app = App::new(Setup { theme, status, lists, sent: Vec::new() });
        let mut stage = Stage { app, size: (width, height), now: 1_000_000, sent: Vec::new() };
        stage.pass(0);
        stage
    }

    pub(crate) fn msg(&mut self, msg: Msg) {
        let commands = self.app.update(msg);
        self.sent.extend(commands);
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        self.now += ms;
        self.msg(Msg::Tick(Time(self.now)));
    }

    pub(crate) fn tell(&mut self, update: Update) {
        let is_question = matches!(update, Update::Asked(_));
        self.msg(Msg::Update(Box::new(update)));
        if is_question {
            // An answer counts once the question was seen.
            self.buffer();
            self.app.frame_shown();
        }
    }

    pub(crate) fn send(&mut self) {
        self.tell(Update::Sending(Box::new(sending())));
    }

    pub(crate) fn open(&mut self, block: u32, opening: Opening) {
        self.tell(Update::Opened { block: BlockId(block), opening });
    }

    pub(crate) fn grow(&mut self, block: u32, text: &str) {
        self.tell(Update::Grew { block: BlockId(block), text: text.into() });
    }

    pub(crate) fn close(&mut self, block: u32, value: Block) {
        self.tell(Update::Closed { block: BlockId(block), value: Box::new(value) });
    }

    /// A whole thought that took this long.
    pub(crate) fn think(&mut self, block: u32, text: &str, ms: u64) {
        self.open(block, Opening::Thinking);
        let started = self.now;
        self.grow(block, text);
        self.pass(ms);
        let span = Span { started: Time(started), ended: Time(self.now) };
        self.close(block, Block::Thinking(thinking(text, Some(span))));
    }

    pub(crate) fn write(&mut self, block: u32, text: &str) {
        self.open(block, Opening::Text);
        self.grow(block, text);
        self.close(block, words(text));
    }

    pub(crate) fn call(&mut self, block: u32, id: &str, name: &str, arguments: &str) {
        self.open(block, Opening::ToolCall { name: name.into() });
        self.grow(block, arguments);
        self.close(block, call(id, name, arguments));
    }

    pub(crate) fn result(&mut self, id: &str, content: &str, is_error: bool) {
        let result = ToolResult { id: id.into(), name: "tool".into(), content: content.into(), is_error };
        self.tell(Update::ToolEnded(Box::new(result)));
    }

    pub(crate) fn end(&mut self, end: TurnEnd) {
        self.tell(Update::ReplyEnded(End { ending: Ending::Stop, error: None }));
        self.tell(Update::TurnEnded(end));
    }

    pub(crate) fn key(&mut self, code: KeyCode) {
        self.msg(Msg::Key(KeyEvent::new(code, KeyModifiers::NONE)));
    }

    pub(crate) fn control(&mut self, letter: char) {
        self.msg(Msg::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL)));
    }

    pub(crate) fn typed(&mut self, text: &str) {
        for letter in text.chars() {
            self.key(KeyCode::Char(letter));
        }
    }

    /// Types a line and sends it.
    pub(crate) fn line(&mut self, text: &str) {
        // Pasted, so that no completion stands in the way.
        self.msg(Msg::Paste(text.to_owned()));
        self.key(KeyCode::Enter);
    }

    pub(crate) fn click(&mut self, x: u16, y: u16) {
        let kind = MouseEventKind::Down(MouseButton::Left);
        self.msg(Msg::Mouse(MouseEvent { kind, column: x, row: y, modifiers: KeyModifiers::NONE }));
    }

    pub(crate) fn wheel(&mut self, up: bool) {
        let kind = if up { MouseEventKind::ScrollUp } else { MouseEventKind::ScrollDown };
        self.msg(Msg::Mouse(MouseEvent { kind, column: 0, row: 0, modifiers: KeyModifiers::NONE }));
    }

    /// Draws until all code in sight has its colours.
    pub(crate) fn light(&mut self) {
        loop {
            self.buffer();
            let jobs = self.app.unlit();
            if jobs.is_empty() {
                return;
            }
            self.answer(jobs);
        }
    }

    pub(crate) fn answer(&mut self, jobs: Vec<Job>) {
        static HIGHLIGHTER: OnceLock<Highlighter> = OnceLock::new();
        for job in jobs {
            let lit = HIGHLIGHTER.get_or_init(Highlighter::new).work(job);
            self.msg(Msg::Lit(Box::new(lit)));
        }
    }

    pub(crate) fn buffer(&mut self) -> Buffer {
        let area = Rect::new(0, 0, self.size.0, self.size.1);
        let mut buffer = Buffer::empty(area);
        view::draw(&mut self.app, area, &mut buffer);
        buffer
    }

    /// The rows of the frame, without the spaces at their ends.
    pub(crate) fn rows(&mut self) -> Vec<String> {
        let buffer = self.buffer();
        (0..self.size.1).map(|y| row_text(&buffer, y)).collect()
    }

    pub(crate) fn screen(&mut self) -> String {
        self.rows().join("\n")
    }

    /// The rows of the transcript that have something on them.
    pub(crate) fn said(&mut self) -> Vec<String> {
        let rows = self.rows();
        let input = rows.iter().rposition(|row| row.starts_with('─')).unwrap_or(rows.len());
        rows[..input].iter().filter(|row| !row.is_empty()).cloned().collect()
    }

    /// The style of the first place where a text stands.
    pub(crate) fn style_of(&mut self, text: &str) -> (Color, Modifier) {
        let rows = self.rows();
        let y = rows.iter().position(|row| row.contains(text)).unwrap_or_else(|| panic!("no {text:?} in {rows:#?}"));
        let row = &rows[y];
        let x = row[..row.find(text).unwrap()].chars().count();
        let cell = &self.buffer()[(x as u16, y as u16)];
        (cell.fg, cell.modifier)
    }

    /// The frame with the styles of each row beside it and a legend below.
    pub(crate) fn picture(&mut self) -> String {
        let mut styles = Styles::default();
        self.styled(&mut styles) + &styles.legend()
    }

    /// The frame with the styles of each row beside it.
    pub(crate) fn styled(&mut self, styles: &mut Styles) -> String {
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

/// A letter for each style, in the order in which they were met.
#[derive(Default)]
pub(crate) struct Styles(BTreeMap<String, char>);

impl Styles {
    fn letter(&mut self, style: Style) -> Option<char> {
        let name = style_name(style);
        if name.is_empty() {
            return None;
        }
        let next = ('a'..='z').chain('A'..='Z').nth(self.0.len()).unwrap();
        Some(*self.0.entry(name).or_insert(next))
    }

    pub(crate) fn legend(&self) -> String {
        // Small letters come first.
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

pub(crate) fn thinking(text: &str, span: Option<Span>) -> Thinking {
    let content = Content::Open { text: text.into() };
    Thinking { content, source: "reasoning_content".into(), id: None, items: Vec::new(), span, native: None }
}

pub(crate) fn hidden() -> Thinking {
    let seal = Seal { kind: SealKind::Encrypted, payload: "x".repeat(640) };
    let seals = Seals { encrypted: Some(seal), ..Seals::default() };
    Thinking { content: Content::Hidden { seals }, ..thinking("", None) }
}

pub(crate) fn words(text: &str) -> Block {
    Block::Text(Text { text: text.into(), ..Text::default() })
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> Block {
    Block::ToolCall(ToolCall {
        id: CallId::Given(id.into()),
        name: name.into(),
        arguments: Arguments::parse(arguments.into()),
        seal: None,
        native: None,
    })
}

/// A request as most tests send it.
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

/// Every ground and depth a terminal may have, by the name of its picture.
pub(crate) fn themes() -> [(&'static str, Theme); 7] {
    let on = |ground, depth| Theme { ground, depth, ..Theme::default() };
    #[rustfmt::skip]
    let themes = [
        ("dark",      on(Ground::Dark, Depth::True)),
        ("light",     on(Ground::Light, Depth::True)),
        ("dark-256",  on(Ground::Dark, Depth::Indexed)),
        ("light-256", on(Ground::Light, Depth::Indexed)),
        ("dark-16",   on(Ground::Dark, Depth::Sixteen)),
        ("light-16",  on(Ground::Light, Depth::Sixteen)),
        ("no-colour", on(Ground::Dark, Depth::None)),
    ];
    themes
}

/// A question, with what is to be looked at and what a longer yes covers.
pub(crate) fn about(tool: &str, subject: &str, preview: Option<String>, covers: Option<String>) -> question::Question {
    let risk = if tool == "shell" { Risk::Runs } else { Risk::Writes };
    question::Question { preview, covers, ..question::Question::new(tool, subject, risk) }
}
