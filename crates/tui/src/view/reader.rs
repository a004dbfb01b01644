//! One text on the whole screen: a thought, or what a tool wants to do. With
//! search, the next and the one before, and copy.
#![expect(clippy::wildcard_enum_match_arm, reason = "keys are many and not ours; one we do not know does nothing")]

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::App;
use crate::paint::paint_row;
use crate::text::markdown::Base;
use crate::text::wrap::cut;
use crate::text::{Doc, Ink, Row, Span, width_of};
use crate::transcript::Transcript;
use crate::transcript::item::Item;
use crate::transcript::plain::{Manner, Plain, has_diff};

#[derive(Debug)]
pub struct Reader {
    what: What,
    top: usize,
    search: Search,
    /// Rows the last frame had room for.
    page: usize,
    /// Rows the text had in the last frame.
    length: usize,
    /// Rows with a hit, in order.
    hits: Vec<usize>,
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
        text: Plain,
    },
    Page {
        title: String,
        text: Doc,
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
        Reader { what, top: 0, search, page: 1, length: 0, hits: Vec::new(), seek: None, found: None, said: None }
    }

    pub fn thought(index: usize) -> Reader {
        Reader::new(What::Thought(index))
    }

    pub fn preview(title: &str, text: &str) -> Reader {
        let manner = if has_diff(text) { Manner::Diff } else { Manner::Output };
        Reader::new(What::Preview { title: title.to_owned(), text: Plain::new(text, manner) })
    }

    pub fn page(title: &str, markdown: &str) -> Reader {
        Reader::new(What::Page { title: title.to_owned(), text: Doc::new(markdown) })
    }

    pub fn key(&mut self, key: KeyEvent, transcript: &Transcript) -> Outcome {
        self.said = None;
        if self.search.typing {
            return self.search_key(key);
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
            }
            None => self.said = Some(if forward { "this is the last thought" } else { "this is the first thought" }),
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
    let rows: &[Row] = match &mut reader.what {
        What::Thought(index) => app.transcript.thought_rows(*index, width),
        What::Preview { text, .. } => text.rows(width),
        What::Page { text, .. } => text.rows(width, Base::TEXT),
    };
    reader.length = rows.len();
    let words = reader.search.words.to_lowercase();
    reader.hits.clear();
    if !words.is_empty() {
        let hits = rows.iter().enumerate().filter(|(_, row)| row.text().to_lowercase().contains(&words));
        reader.hits.extend(hits.map(|(index, _)| index));
    }
    let length = rows.len();
    if let Some(seek) = reader.seek.take() {
        // The row goes to the top; the search goes on behind it.
        reader.found = hit(seek, &reader.hits, reader.found.unwrap_or(reader.top));
        reader.top = reader.found.unwrap_or(reader.top);
    }
    reader.top = reader.top.min(length.saturating_sub(reader.page));
    for (y, row) in rows.iter().skip(reader.top).take(reader.page).enumerate() {
        let marked = mark(row, &words);
        paint_row(buffer, page, y as u16, &marked, None, &theme);
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
    let place = match (reader.length, reader.top + reader.page >= reader.length) {
        (0, _) => "empty".to_owned(),
        (_, true) => "end".to_owned(),
        (length, false) => format!("{}%", (reader.top + reader.page) * 100 / length),
    };
    let said = reader.said.map(|said| format!("{said} · ")).unwrap_or_default();
    let words = &reader.search.words;
    let hits = match (words.is_empty(), reader.hits.len()) {
        (true, _) => String::new(),
        (false, 0) => format!("\"{words}\" not found · "),
        (false, 1) => format!("\"{words}\" in 1 row · "),
        (false, hits) => format!("\"{words}\" in {hits} rows · "),
    };
    let others = match reader.what {
        What::Thought(_) => "← → other thoughts · ",
        What::Preview { .. } | What::Page { .. } => "",
    };
    format!("{said}{hits}{place} · q back · / search, n next · {others}y copy")
}

/// The row with what was searched for standing out.
fn mark(row: &Row, words: &str) -> Row {
    if words.is_empty() {
        return row.clone();
    }
    let mut out = Row { spans: Vec::new(), shade: row.shade };
    for span in &row.spans {
        let mut rest = span.text.as_str();
        let lower = rest.to_lowercase();
        // Letters whose small form has another length would shift the marks.
        let same = lower.len() == rest.len() && width_of(&lower) == width_of(rest);
        let mut from = 0;
        while let Some(at) = lower.get(from..).filter(|_| same).and_then(|lower| lower.find(words)) {
            let Some((before, found)) = rest.split_at_checked(at) else { break };
            let Some((found, after)) = found.split_at_checked(words.len()) else { break };
            out.spans.push(Span { text: before.to_owned(), ..span.clone() });
            out.spans.push(Span { text: found.to_owned(), ink: Ink::Found, ..span.clone() });
            rest = after;
            from += at + words.len();
        }
        out.spans.push(Span { text: rest.to_owned(), ..span.clone() });
    }
    out.spans.retain(|span| !span.text.is_empty());
    out
}
