//! One text on the whole screen: a thought, or what a tool wants to do. With
//! search, an outline, the next and the one before, and copy.
#![expect(clippy::wildcard_enum_match_arm, reason = "keys are many and not ours; one we do not know does nothing")]

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::find::Finds;
use crate::app::App;
use crate::paint::paint_row;
use crate::text::light::{Job, Lit, Ticket};
use crate::text::wrap::cut;
use crate::text::{Base, Doc, Ink, Row, Shade, Span};
use crate::theme::Theme;
use crate::transcript::Transcript;
use crate::transcript::item::Item;
use crate::transcript::plain::{Extent, Plain};

#[derive(Debug)]
pub struct Reader {
    what: What,
    top: usize,
    search: Search,
    /// Rows the last frame had room for.
    page: usize,
    /// Rows the text had in the last frame.
    length: usize,
    finds: Finds,
    /// The titles of the text while one is being picked: which one.
    outline: Option<usize>,
    /// A hit to go to, once the rows are known.
    seek: Option<Seek>,
    /// The row of the hit one is at.
    found: Option<usize>,
    said: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seek {
    FromHere,
    Next,
    Previous,
}

#[derive(Debug)]
enum What {
    /// An item of the transcript.
    Thought(usize),
    Preview {
        title: String,
        text: Box<Plain>,
    },
    Page {
        title: String,
        text: Box<Doc>,
    },
}

#[derive(Debug, Default)]
struct Search {
    words: String,
    typing: bool,
}

/// What a key of the reader leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Stay,
    Close,
    Copy(String),
}

impl Reader {
    fn new(what: What) -> Reader {
        let search = Search::default();
        Reader {
            what,
            top: 0,
            search,
            page: 1,
            length: 0,
            finds: Finds::default(),
            outline: None,
            seek: None,
            found: None,
            said: None,
        }
    }

    pub fn thought(index: usize) -> Reader {
        Reader::new(What::Thought(index))
    }

    pub fn preview(title: &str, text: &str) -> Reader {
        Reader::new(What::Preview { title: title.to_owned(), text: Box::new(Plain::output(text)) })
    }

    pub fn page(title: &str, markdown: &str) -> Reader {
        Reader::new(What::Page { title: title.to_owned(), text: Box::new(Doc::new(markdown)) })
    }

    pub fn key(&mut self, key: KeyEvent, transcript: &Transcript) -> Outcome {
        self.said = None;
        if self.search.typing {
            return self.search_key(key);
        }
        if self.outline.is_some() {
            self.outline_key(key);
            return Outcome::Stay;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return Outcome::Close,
            KeyCode::Char('c') if control => return Outcome::Close,
            KeyCode::Down | KeyCode::Char('j') => self.scroll(1),
            KeyCode::Up | KeyCode::Char('k') => self.scroll(-1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll(self.page as isize),
            KeyCode::PageUp | KeyCode::Char('b') => self.scroll(-(self.page as isize)),
            KeyCode::Home | KeyCode::Char('g') => self.scroll(isize::MIN / 2),
            KeyCode::End | KeyCode::Char('G') => self.scroll(isize::MAX / 2),
            KeyCode::Char('/') => self.search = Search { words: String::new(), typing: true },
            KeyCode::Char('o') => self.open_outline(),
            KeyCode::Char('n') => self.seek = Some(Seek::Next),
            KeyCode::Char('N') => self.seek = Some(Seek::Previous),
            KeyCode::Right | KeyCode::Char(']') => self.other(transcript, true),
            KeyCode::Left | KeyCode::Char('[') => self.other(transcript, false),
            KeyCode::Char('y' | 'c') => {
                self.said = Some("copied");
                return Outcome::Copy(self.copy_text(transcript));
            }
            _ => (),
        }
        Outcome::Stay
    }

    fn search_key(&mut self, key: KeyEvent) -> Outcome {
        match key.code {
            KeyCode::Esc => self.search = Search::default(),
            KeyCode::Enter => {
                self.search.typing = false;
                self.seek = Some(Seek::FromHere);
            }
            KeyCode::Backspace => {
                self.search.words.pop();
            }
            KeyCode::Char(letter) => self.search.words.push(letter),
            _ => (),
        }
        Outcome::Stay
    }

    /// The title that one is reading is picked.
    fn open_outline(&mut self) {
        if self.finds.titles.is_empty() {
            self.said = Some("it has no titles");
            return;
        }
        let before = self.finds.titles.iter().rposition(|(row, _)| *row <= self.top);
        self.outline = Some(before.unwrap_or(0));
    }

    fn outline_key(&mut self, key: KeyEvent) {
        let Some(picked) = self.outline else { return };
        let last = self.finds.titles.len().saturating_sub(1);
        self.outline = match key.code {
            KeyCode::Esc | KeyCode::Char('q' | 'o') => None,
            KeyCode::Enter => {
                self.top = self.finds.titles.get(picked).map_or(self.top, |(row, _)| *row);
                self.found = None;
                None
            }
            KeyCode::Down | KeyCode::Char('j') => Some((picked + 1).min(last)),
            KeyCode::Up | KeyCode::Char('k') => Some(picked.saturating_sub(1)),
            KeyCode::PageDown => Some((picked + self.page).min(last)),
            KeyCode::PageUp => Some(picked.saturating_sub(self.page)),
            KeyCode::Home => Some(0),
            KeyCode::End => Some(last),
            _ => self.outline,
        };
    }

    pub fn scroll(&mut self, by: isize) {
        let last = self.length.saturating_sub(self.page);
        self.top = self.top.saturating_add_signed(by).min(last);
        self.found = None;
    }

    /// To the thought before or behind.
    fn other(&mut self, transcript: &Transcript, forward: bool) {
        let What::Thought(at) = self.what else { return };
        let is_thought = |index: &usize| matches!(transcript.items().get(*index), Some(Item::Thought(_)));
        let found =
            if forward { (at + 1..transcript.items().len()).find(is_thought) } else { (0..at).rev().find(is_thought) };
        match found {
            Some(index) => {
                self.what = What::Thought(index);
                (self.top, self.found) = (0, None);
                self.finds = Finds::default();
            }
            None => self.said = Some(if forward { "this is the last thought" } else { "this is the first thought" }),
        }
    }

    pub(crate) fn wants(&mut self, next: &mut Ticket) -> Option<Job> {
        match &mut self.what {
            // It is the transcript's.
            What::Thought(_) => None,
            What::Preview { text, .. } => text.wants(next),
            What::Page { text, .. } => text.wants(next),
        }
    }

    pub(crate) fn lit(&mut self, lit: &mut Lit) -> bool {
        match &mut self.what {
            What::Thought(_) => false,
            What::Preview { text, .. } => text.lit(lit),
            What::Page { text, .. } => text.lit(lit),
        }
    }

    fn copy_text(&self, transcript: &Transcript) -> String {
        match &self.what {
            What::Thought(index) => transcript.items().get(*index).map(Item::copy_text).unwrap_or_default(),
            What::Preview { text, .. } => text.source().to_owned(),
            What::Page { text, .. } => text.source().to_owned(),
        }
    }
}

pub(crate) fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let theme = app.theme;
    let width = usize::from(area.width);
    let Some(reader) = &mut app.reader else { return };
    let title = title(reader, &app.transcript, width);
    paint_row(buffer, area, 0, &Row::new(vec![Span::new(Ink::Heading, title)]), None, &theme);
    let page = Rect { y: area.y + 1, height: area.height.saturating_sub(2), ..area };
    reader.page = usize::from(page.height).max(1);
    let body = match &mut reader.what {
        What::Thought(index) => app.transcript.thought_body(*index, width),
        What::Preview { text, .. } => text.body(width, Extent::All),
        What::Page { text, .. } => text.body(width, Base::TEXT),
    };
    let rows = body.rows;
    reader.length = rows.len();
    reader.finds.search(&reader.search.words, rows, width);
    if let Some(seek) = reader.seek.take() {
        // The row goes to the top; the search goes on behind it.
        reader.found = hit(seek, &reader.finds.hits, reader.found.unwrap_or(reader.top));
        reader.top = reader.found.unwrap_or(reader.top);
    }
    reader.top = reader.top.min(rows.len().saturating_sub(reader.page));
    match reader.outline {
        Some(picked) => draw_outline(&reader.finds.titles, picked, page, buffer, &theme),
        None => {
            let indexes = reader.top..reader.top + reader.page;
            for (y, index) in indexes.enumerate() {
                let Some(row) = body.row(index) else { break };
                paint_row(buffer, page, y as u16, &reader.finds.mark(index, &row), None, &theme);
            }
        }
    }
    if area.height > 1 {
        let foot = Rect { y: area.bottom() - 1, height: 1, ..area };
        let waits = app.asking.is_waiting() && !matches!(reader.what, What::Preview { .. });
        let waits = if waits { "a tool waits for an answer · " } else { "" };
        let text = cut(&format!("{waits}{}", foot_text(reader)), width);
        paint_row(buffer, foot, 0, &Row::new(vec![Span::new(Ink::Muted, text)]), None, &theme);
    }
}

fn hit(seek: Seek, hits: &[usize], at: usize) -> Option<usize> {
    let mut rows = hits.iter().copied();
    match seek {
        Seek::FromHere => rows.find(|row| *row >= at).or(hits.first().copied()),
        Seek::Next => rows.find(|row| *row > at).or(hits.first().copied()),
        Seek::Previous => rows.rfind(|row| *row < at).or(hits.last().copied()),
    }
}

fn title(reader: &Reader, transcript: &Transcript, width: usize) -> String {
    match &reader.what {
        What::Preview { title, .. } | What::Page { title, .. } => cut(title, width),
        What::Thought(at) => {
            let thoughts = transcript.items().iter().enumerate().filter(|(_, item)| matches!(item, Item::Thought(_)));
            let indexes: Vec<usize> = thoughts.map(|(index, _)| index).collect();
            let number = indexes.iter().position(|index| index == at).map_or(0, |position| position + 1);
            let title = format!("Thought {number} of {}", indexes.len());
            let label = match transcript.items().get(*at) {
                Some(Item::Thought(thought)) => thought.label(),
                Some(Item::User(_) | Item::Text(_) | Item::Tool(_) | Item::Notice(_) | Item::Said(_)) | None => {
                    String::new()
                }
            };
            cut(&format!("{title}{label}"), width)
        }
    }
}

fn foot_text(reader: &Reader) -> String {
    if reader.search.typing {
        return format!("/{}", reader.search.words);
    }
    if reader.outline.is_some() {
        return "↑ ↓ titles · Enter goes there · Esc back".to_owned();
    }
    let place = match (reader.length, reader.top + reader.page >= reader.length) {
        (0, _) => "empty".to_owned(),
        (_, true) => "end".to_owned(),
        (length, false) => format!("{}%", (reader.top + reader.page) * 100 / length),
    };
    let said = reader.said.map(|said| format!("{said} · ")).unwrap_or_default();
    let words = &reader.search.words;
    let hits = match (words.is_empty(), reader.finds.hits.len()) {
        (true, _) => String::new(),
        (false, 0) => format!("\"{words}\" not found · "),
        (false, 1) => format!("\"{words}\" found once · "),
        (false, hits) => format!("\"{words}\" found {hits} times · "),
    };
    let others = match reader.what {
        What::Thought(_) => "← → other thoughts · ",
        What::Preview { .. } | What::Page { .. } => "",
    };
    let outline = if reader.finds.titles.is_empty() { "" } else { "o outline · " };
    format!("{said}{hits}{place} · q back · / search, n next · {outline}{others}y copy")
}

fn draw_outline(titles: &[(usize, String)], picked: usize, page: Rect, buffer: &mut Buffer, theme: &Theme) {
    let room = usize::from(page.height);
    let from = (picked + 1).saturating_sub(room);
    for (y, (index, (_, title))) in titles.iter().enumerate().skip(from).take(room).enumerate() {
        let (mark, shade) = if index == picked { ("› ", Shade::Picked) } else { ("  ", Shade::None) };
        let text = cut(title, usize::from(page.width).saturating_sub(2));
        let row = Row::new(vec![Span::new(Ink::Accent, mark), Span::new(Ink::Plain, text)]).shaded(shade);
        paint_row(buffer, page, y as u16, &row, None, theme);
    }
}
