//! A full-screen view of one text: a thinking block, a tool preview or a page. It supports search,
//! an outline, moving to other thinking blocks, and copying.
#![expect(clippy::wildcard_enum_match_arm, reason = "crossterm defines many keys; the others do nothing")]

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::App;
use crate::paint::paint_row;
use crate::text::highlight_jobs::{HighlightId, HighlightJob, HighlightResult};
use crate::text::search::SearchResults;
use crate::text::wrap::{ellipsize, first_that_fits};
use crate::text::{BaseStyle, MarkdownView, Row, RowBackground, Span, TextRole, width_of};
use crate::theme::Theme;
use crate::transcript::Transcript;
use crate::transcript::item::TranscriptItem;
use crate::transcript::plain_text::{Extent, PlainText};

#[derive(Debug)]
pub struct ReaderView {
    content: ReaderContent,
    top: usize,
    search: SearchInput,
    /// Rows that fit into the last frame.
    page: usize,
    /// Rows of the text in the last frame.
    length: usize,
    results: SearchResults,
    /// The selected title, while the outline is open.
    outline: Option<usize>,
    /// A search step to take once the rows are known.
    search_step: Option<SearchStep>,
    /// The current match, by its place among the matches: several may begin in one row.
    found: Option<usize>,
    message: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchStep {
    FromHere,
    Next,
    Previous,
}

#[derive(Debug)]
enum ReaderContent {
    /// The index of a transcript item.
    Thinking(usize),
    Preview {
        title: String,
        text: Box<PlainText>,
    },
    Page {
        title: String,
        text: Box<MarkdownView>,
    },
}

#[derive(Debug, Default)]
struct SearchInput {
    words: String,
    typing: bool,
}

/// The result of a key press.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReaderOutcome {
    Stay,
    Close,
    Copy(String),
}

impl ReaderView {
    fn new(content: ReaderContent) -> ReaderView {
        let search = SearchInput::default();
        ReaderView {
            content,
            top: 0,
            search,
            page: 1,
            length: 0,
            results: SearchResults::default(),
            outline: None,
            search_step: None,
            found: None,
            message: None,
        }
    }

    pub fn thinking(index: usize) -> ReaderView {
        ReaderView::new(ReaderContent::Thinking(index))
    }

    pub fn preview(title: &str, text: &str) -> ReaderView {
        ReaderView::new(ReaderContent::Preview { title: title.to_owned(), text: Box::new(PlainText::output(text)) })
    }

    pub fn page(title: &str, markdown: &str) -> ReaderView {
        ReaderView::new(ReaderContent::Page { title: title.to_owned(), text: Box::new(MarkdownView::new(markdown)) })
    }

    pub fn key(&mut self, key: KeyEvent, transcript: &Transcript) -> ReaderOutcome {
        self.message = None;
        if self.search.typing {
            return self.search_key(key);
        }
        if self.outline.is_some() {
            self.outline_key(key);
            return ReaderOutcome::Stay;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return ReaderOutcome::Close,
            KeyCode::Char('c') if control => return ReaderOutcome::Close,
            KeyCode::Down | KeyCode::Char('j') => self.scroll(1),
            KeyCode::Up | KeyCode::Char('k') => self.scroll(-1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll(self.page as isize),
            KeyCode::PageUp | KeyCode::Char('b') => self.scroll(-(self.page as isize)),
            KeyCode::Home | KeyCode::Char('g') => self.scroll(isize::MIN / 2),
            KeyCode::End | KeyCode::Char('G') => self.scroll(isize::MAX / 2),
            KeyCode::Char('/') => self.search = SearchInput { words: String::new(), typing: true },
            KeyCode::Char('o') => self.open_outline(),
            KeyCode::Char('n') => self.search_step = Some(SearchStep::Next),
            KeyCode::Char('N') => self.search_step = Some(SearchStep::Previous),
            KeyCode::Right | KeyCode::Char(']') => self.show_other(transcript, true),
            KeyCode::Left | KeyCode::Char('[') => self.show_other(transcript, false),
            KeyCode::Char('y' | 'c') => {
                self.message = Some("copied");
                return ReaderOutcome::Copy(self.copy_text(transcript));
            }
            _ => (),
        }
        ReaderOutcome::Stay
    }

    fn search_key(&mut self, key: KeyEvent) -> ReaderOutcome {
        match key.code {
            KeyCode::Esc => self.search = SearchInput::default(),
            KeyCode::Enter => {
                self.search.typing = false;
                (self.found, self.search_step) = (None, Some(SearchStep::FromHere));
            }
            KeyCode::Backspace => {
                self.search.words.pop();
            }
            KeyCode::Char(letter) => self.search.words.push(letter),
            _ => (),
        }
        ReaderOutcome::Stay
    }

    /// Opens the outline with the current title selected.
    fn open_outline(&mut self) {
        if self.results.titles.is_empty() {
            self.message = Some("it has no titles");
            return;
        }
        let before = self.results.titles.iter().rposition(|(row, _)| *row <= self.top);
        self.outline = Some(before.unwrap_or(0));
    }

    fn outline_key(&mut self, key: KeyEvent) {
        let Some(picked) = self.outline else { return };
        let last = self.results.titles.len().saturating_sub(1);
        self.outline = match key.code {
            KeyCode::Esc | KeyCode::Char('q' | 'o') => None,
            KeyCode::Enter => {
                self.top = self.results.titles.get(picked).map_or(self.top, |(row, _)| *row);
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

    /// Shows the previous or next thinking block.
    fn show_other(&mut self, transcript: &Transcript, forward: bool) {
        let ReaderContent::Thinking(at) = self.content else { return };
        let is_thinking = |index: &usize| matches!(transcript.items().get(*index), Some(TranscriptItem::Thinking(_)));
        let found = if forward {
            (at + 1..transcript.items().len()).find(is_thinking)
        } else {
            (0..at).rev().find(is_thinking)
        };
        match found {
            Some(index) => {
                self.content = ReaderContent::Thinking(index);
                (self.top, self.found) = (0, None);
                self.results = SearchResults::default();
            }
            None => self.message = Some(if forward { "this is the last thought" } else { "this is the first thought" }),
        }
    }

    pub(crate) fn next_job(&mut self, next: &mut HighlightId) -> Option<HighlightJob> {
        match &mut self.content {
            // The transcript highlights it.
            ReaderContent::Thinking(_) => None,
            ReaderContent::Preview { text, .. } => text.next_job(next),
            ReaderContent::Page { text, .. } => text.next_job(next),
        }
    }

    pub(crate) fn apply_highlight(&mut self, result: &mut HighlightResult) -> bool {
        match &mut self.content {
            ReaderContent::Thinking(_) => false,
            ReaderContent::Preview { text, .. } => text.apply_highlight(result),
            ReaderContent::Page { text, .. } => text.apply_highlight(result),
        }
    }

    fn copy_text(&self, transcript: &Transcript) -> String {
        match &self.content {
            ReaderContent::Thinking(index) => {
                transcript.items().get(*index).map(TranscriptItem::copy_text).unwrap_or_default()
            }
            ReaderContent::Preview { text, .. } => text.source().to_owned(),
            ReaderContent::Page { text, .. } => text.source().to_owned(),
        }
    }
}

pub(crate) fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let theme = app.theme;
    let width = usize::from(area.width);
    let Some(reader) = &mut app.reader else { return };
    let title = title(reader, &app.transcript, width);
    paint_row(buffer, area, 0, &Row::new(vec![Span::new(TextRole::Heading, title)]), None, &theme);
    let page = Rect { y: area.y + 1, height: area.height.saturating_sub(2), ..area };
    reader.page = usize::from(page.height).max(1);
    let body = match &mut reader.content {
        ReaderContent::Thinking(index) => app.transcript.thinking_rows(*index, width),
        ReaderContent::Preview { text, .. } => text.body(width, Extent::All, crate::transcript::HintKeys::default()),
        ReaderContent::Page { text, .. } => {
            text.body(width, BaseStyle::TEXT.with_prose_width(app.transcript.prose_width()))
        }
    };
    let rows = body.rows;
    reader.length = rows.len();
    reader.results.search(&reader.search.words, rows, width);
    if let Some(search_step) = reader.search_step.take() {
        // The match goes to the top; the next search continues after it.
        let hits = &reader.results.hits;
        reader.found = find_hit(search_step, hits, reader.found, reader.top);
        reader.top = reader.found.and_then(|found| hits.get(found)).copied().unwrap_or(reader.top);
    }
    reader.top = reader.top.min(rows.len().saturating_sub(reader.page));
    match reader.outline {
        Some(picked) => draw_outline(&reader.results.titles, picked, page, buffer, &theme),
        None => {
            let indexes = reader.top..reader.top + reader.page;
            for (y, index) in indexes.enumerate() {
                let Some(row) = body.row(index) else { break };
                paint_row(buffer, page, y as u16, &reader.results.mark(index, &row), None, &theme);
            }
        }
    }
    if area.height > 1 {
        let foot = Rect { y: area.bottom() - 1, height: 1, ..area };
        let waits = app.permission_prompt.is_waiting() && !matches!(reader.content, ReaderContent::Preview { .. });
        let waits = if waits { "a tool waits for an answer · " } else { "" };
        let text = format!("{waits}{}", footer_text(reader, width.saturating_sub(width_of(waits))));
        let text = ellipsize(&text, width);
        paint_row(buffer, foot, 0, &Row::new(vec![Span::new(TextRole::Muted, text)]), None, &theme);
    }
}

/// The index of the match to go to: the one after or before the current match, or after or before the top row if
/// there is none. After the last comes the first.
fn find_hit(search_step: SearchStep, hits: &[usize], found: Option<usize>, top: usize) -> Option<usize> {
    let last = hits.len().checked_sub(1)?;
    let next = |index: usize| if index > last { 0 } else { index };
    Some(match (search_step, found) {
        (SearchStep::FromHere, _) => next(hits.partition_point(|row| *row < top)),
        (SearchStep::Next, Some(found)) => next(found + 1),
        (SearchStep::Next, None) => next(hits.partition_point(|row| *row <= top)),
        (SearchStep::Previous, Some(found)) => found.checked_sub(1).unwrap_or(last),
        (SearchStep::Previous, None) => hits.partition_point(|row| *row < top).checked_sub(1).unwrap_or(last),
    })
}

fn title(reader: &ReaderView, transcript: &Transcript, width: usize) -> String {
    match &reader.content {
        ReaderContent::Preview { title, .. } | ReaderContent::Page { title, .. } => ellipsize(title, width),
        ReaderContent::Thinking(at) => {
            let blocks =
                transcript.items().iter().enumerate().filter(|(_, item)| matches!(item, TranscriptItem::Thinking(_)));
            let indexes: Vec<usize> = blocks.map(|(index, _)| index).collect();
            let number = indexes.iter().position(|index| index == at).map_or(0, |position| position + 1);
            let title = format!("Thought {number} of {}", indexes.len());
            let label = match transcript.items().get(*at) {
                Some(TranscriptItem::Thinking(thinking)) => thinking.label(),
                Some(
                    TranscriptItem::User(_)
                    | TranscriptItem::Text(_)
                    | TranscriptItem::Tool(_)
                    | TranscriptItem::Notice(_)
                    | TranscriptItem::Output(_),
                )
                | None => String::new(),
            };
            ellipsize(&format!("{title}{label}"), width)
        }
    }
}

/// Where the user is, and as many keys as fit.
fn footer_text(reader: &ReaderView, width: usize) -> String {
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
    let message = reader.message.map(|message| format!("{message} · ")).unwrap_or_default();
    let words = &reader.search.words;
    let hits = match (words.is_empty(), reader.found, reader.results.hits.len()) {
        (true, _, _) => String::new(),
        (false, _, 0) => format!("\"{words}\" not found · "),
        (false, _, 1) => format!("\"{words}\" found once · "),
        (false, Some(index), hits) => format!("\"{words}\" {} of {hits} · ", index + 1),
        (false, None, hits) => format!("\"{words}\" found {hits} times · "),
    };
    let is_thought = matches!(reader.content, ReaderContent::Thinking(_));
    let has_outline = !reader.results.titles.is_empty();
    let place = format!("{message}{hits}{place} · q back");
    let keys = |search: &'static str, others: &'static str| {
        let keys = [Some(search), has_outline.then_some("o outline"), is_thought.then_some(others), Some("y copy")];
        keys.into_iter().flatten().collect::<Vec<_>>()
    };
    let long = keys("/ search, n next", "← → other thoughts");
    let short = keys("/ search", "← →");
    let texts: Vec<String> = [long.as_slice()]
        .into_iter()
        .chain((0..=short.len()).rev().filter_map(|kept| short.get(..kept)))
        .map(|keys| [&[place.as_str()], keys].concat().join(" · "))
        .collect();
    first_that_fits(&texts, width)
}

fn draw_outline(titles: &[(usize, String)], picked: usize, page: Rect, buffer: &mut Buffer, theme: &Theme) {
    let room = usize::from(page.height);
    let from = (picked + 1).saturating_sub(room);
    for (y, (index, (_, title))) in titles.iter().enumerate().skip(from).take(room).enumerate() {
        let (mark, background) =
            if index == picked { ("› ", RowBackground::Selected) } else { ("  ", RowBackground::None) };
        let text = ellipsize(title, usize::from(page.width).saturating_sub(2));
        let row = Row::new(vec![Span::new(TextRole::Accent, mark), Span::new(TextRole::Plain, text)])
            .with_background(background);
        paint_row(buffer, page, y as u16, &row, None, theme);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t12_the_next_match_may_be_in_the_same_row() {
        let hits = [2, 2, 5, 9];
        let steps = |step, start: Option<usize>, top, n: usize| {
            let mut found = start;
            let visited = (0..n).map(|_| {
                found = find_hit(step, &hits, found, top);
                found.expect("there are matches")
            });
            visited.collect::<Vec<_>>()
        };
        assert_eq!(steps(SearchStep::Next, None, 0, 6), [0, 1, 2, 3, 0, 1]);
        assert_eq!(steps(SearchStep::Previous, None, 6, 5), [2, 1, 0, 3, 2]);
        assert_eq!(steps(SearchStep::Next, None, 2, 1), [2], "after the top row");
        assert_eq!(steps(SearchStep::FromHere, None, 2, 1), [0], "from the top row on");
        assert_eq!(steps(SearchStep::FromHere, None, 10, 1), [0], "after the last comes the first");
        assert_eq!(find_hit(SearchStep::Next, &[], None, 0), None);
    }
}
