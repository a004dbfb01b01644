//! A thinking block on the screen. Running and folded are independent states: either can change
//! without the other.

use std::borrow::Cow;
use std::cell::OnceCell;

use aside_core::block::{Thinking, ThinkingSpan as Times, Time};
use aside_core::settings::ThinkingDisplay;
use aside_core::terminal_text::{TerminalFilter, terminal_safe};

use super::loop_notice::{self, LoopWatch};
use super::{OpenHint, RenderContext};
use crate::text::highlight_jobs::{HighlightId, HighlightJob, HighlightResult};
use crate::text::wrap::ellipsize;
use crate::text::{
    BaseStyle, HighlightedRows, LazyText, Row, RowBackground, RowMark, SectionRows, Span, TextRole, width_of,
};
use crate::token_estimate::format_count;
use aside_front::StreamedTokens;
use aside_front::thinking_title::{self, TitleReader, first_words};
use aside_front::wording::duration;

/// Rows shown of running thinking in the `live` view.
pub const TAIL_ROWS: usize = 8;
/// How many columns of its first words a folded block shows.
const SUMMARY_WIDTH: usize = 40;
/// At least this much of it is shown beside a longer hint.
const LEAST_SUMMARY: usize = 22;

/// A shorter time means that the block did not stream.
const MIN_DURATION_MS: u64 = 50;

/// The user's choice for this block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldChoice {
    Folded,
    Open,
}

/// How the block is currently shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingShape {
    Hidden,
    /// Only the header.
    Header,
    /// The header and the last rows.
    Tail,
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThinkingState {
    Running,
    Done,
    Interrupted,
}

/// Whether there is anything to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readability {
    Text,
    /// Encrypted or redacted: this many stored bytes.
    HiddenByProvider(usize),
}

#[derive(Debug)]
pub struct ThinkingBlock {
    /// The whole text.
    doc: LazyText,
    /// The current summary item.
    current: Option<LazyText>,
    /// The text shown when an unreadable block is opened.
    note: Option<LazyText>,
    titles: TitleReader,
    /// For a restored block, computed when first shown.
    first_title: OnceCell<Option<String>>,
    filter: TerminalFilter,
    /// The last rows, as shown.
    tail: Vec<Row>,
    state: ThinkingState,
    readable: Readability,
    began: Option<Time>,
    times: Option<Times>,
    tokens: StreamedTokens,
    loop_watch: LoopWatch,
    choice: Option<FoldChoice>,
    /// The reply contains nothing else, so it stays open.
    keep_open: bool,
}

impl ThinkingBlock {
    pub fn begin(now: Option<Time>) -> ThinkingBlock {
        ThinkingBlock {
            doc: LazyText::default(),
            current: None,
            note: None,
            titles: TitleReader::default(),
            first_title: OnceCell::new(),
            filter: TerminalFilter::default(),
            tail: Vec::new(),
            state: ThinkingState::Running,
            readable: Readability::Text,
            began: now,
            times: None,
            tokens: StreamedTokens::default(),
            loop_watch: LoopWatch::watching(),
            choice: None,
            keep_open: false,
        }
    }

    /// A finished block.
    pub fn finished(doc: LazyText, span: Option<Times>, sealed_bytes: usize) -> ThinkingBlock {
        let mut block = ThinkingBlock { doc, loop_watch: LoopWatch::default(), ..ThinkingBlock::begin(None) };
        block.settle(span, sealed_bytes);
        block
    }

    /// A block from the history; `doc` is its text.
    pub fn restored(thinking: &Thinking, doc: LazyText) -> ThinkingBlock {
        ThinkingBlock::finished(doc, thinking.span, sealed_bytes(thinking))
    }

    pub fn push(&mut self, text: &str) {
        let shown = self.filter.take(text);
        self.doc.push_safe(&shown);
        if let Some(current) = &mut self.current {
            current.push_safe(&shown);
        }
        self.tokens.push(&shown);
        self.loop_watch.push(&shown);
        self.titles.push(&shown);
    }

    /// A summary item begins.
    pub fn item(&mut self) {
        if !self.doc.is_empty() {
            self.push("\n\n");
        }
        self.current = Some(LazyText::default());
        self.titles.item();
    }

    /// Replaces the deltas by the final block.
    pub fn close(&mut self, thinking: &Thinking) {
        self.loop_watch.stop();
        if !self.doc.equals(&terminal_safe(thinking.text())) {
            self.doc = LazyText::new(thinking.text());
            (self.titles, self.first_title) = (TitleReader::default(), OnceCell::new());
        }
        self.doc.finish();
        self.settle(thinking.span, sealed_bytes(thinking));
    }

    /// The deltas were all of it.
    pub fn close_as_streamed(&mut self, span: Option<Times>, sealed_bytes: usize) {
        self.loop_watch.stop();
        self.doc.finish();
        self.settle(span, sealed_bytes);
    }

    /// The whole text.
    pub fn text_mut(&mut self) -> &mut LazyText {
        &mut self.doc
    }

    /// Sets everything but the text.
    fn settle(&mut self, span: Option<Times>, sealed_bytes: usize) {
        self.current = None;
        self.times = span;
        if self.doc.is_blank() && sealed_bytes > 0 {
            self.readable = Readability::HiddenByProvider(sealed_bytes);
        }
        self.end();
    }

    /// Marks it as complete.
    pub fn end(&mut self) {
        if self.state == ThinkingState::Running {
            self.state = ThinkingState::Done;
            self.current = None;
            self.loop_watch.stop();
        }
    }

    /// Marks it as interrupted.
    pub fn interrupt(&mut self, now: Option<Time>) {
        if self.state == ThinkingState::Running
            && let (None, Some(started), Some(ended)) = (self.times, self.began, now)
        {
            self.times = Some(Times { started, ended });
        }
        self.state = ThinkingState::Interrupted;
        self.current = None;
        self.loop_watch.stop();
        self.loop_watch.check_text(&self.doc.source());
    }

    /// Whether it is running and repeats itself.
    pub fn is_looping(&self) -> bool {
        self.is_running() && self.loop_watch.finding().is_some()
    }

    /// The notice below running thinking that repeats itself.
    pub fn footer(&self, width: usize, view: ThinkingDisplay) -> Vec<Row> {
        let is_open = match self.shape(view) {
            ThinkingShape::Tail | ThinkingShape::Open => true,
            ThinkingShape::Hidden | ThinkingShape::Header => false,
        };
        let found = self.loop_watch.finding().filter(|_| is_open && self.is_running());
        found.map(|found| loop_notice::notice_rows(found, width)).unwrap_or_default()
    }

    pub fn is_running(&self) -> bool {
        self.state == ThinkingState::Running
    }

    pub fn source(&self) -> Cow<'_, str> {
        self.doc.source()
    }

    pub fn keep_open_when_done(&mut self) {
        self.keep_open = true;
    }

    /// Folds or opens it, and returns what the user had chosen.
    pub(crate) fn set_choice(&mut self, choice: Option<FoldChoice>) -> Option<FoldChoice> {
        std::mem::replace(&mut self.choice, choice)
    }

    pub fn reset_fold(&mut self) {
        self.choice = None;
    }

    pub fn shape(&self, view: ThinkingDisplay) -> ThinkingShape {
        // An empty block is not shown.
        let is_empty = !self.is_running() && self.doc.is_blank() && self.readable == Readability::Text;
        if is_empty || view == ThinkingDisplay::Off {
            return ThinkingShape::Hidden;
        }
        match (self.choice, view) {
            (Some(FoldChoice::Open), _) => ThinkingShape::Open,
            (Some(FoldChoice::Folded), _) => ThinkingShape::Header,
            (None, ThinkingDisplay::Off) => ThinkingShape::Hidden,
            (None, ThinkingDisplay::Full) => ThinkingShape::Open,
            (None, ThinkingDisplay::Live) if self.is_running() => ThinkingShape::Tail,
            (None, ThinkingDisplay::Live | ThinkingDisplay::Collapsed) if self.keep_open => ThinkingShape::Open,
            (None, ThinkingDisplay::Live | ThinkingDisplay::Collapsed) => ThinkingShape::Header,
        }
    }

    /// The tail opens, because a user who follows it wants more.
    pub fn toggle(&mut self, view: ThinkingDisplay) {
        self.choice = Some(match self.shape(view) {
            ThinkingShape::Open => FoldChoice::Folded,
            ThinkingShape::Header | ThinkingShape::Tail | ThinkingShape::Hidden => FoldChoice::Open,
        });
    }

    pub fn header(&self, context: &RenderContext, hint: Option<&OpenHint>) -> Row {
        let shape = self.shape(context.view);
        let hint = hint.filter(|_| shape == ThinkingShape::Header && !self.is_running());
        let arrow = if shape == ThinkingShape::Open { "▼" } else { "▶" };
        let (mark, word) = if self.is_running() { (context.spinner(), "Thinking") } else { (arrow, "Thought") };
        let mut head = format!("{mark} {word}");
        let (mut tail, mut tokens) = (String::new(), String::new());
        if self.is_running() {
            let seconds = self.began.and_then(|began| elapsed(began, context.now)).filter(|ms| *ms >= 1000);
            tail.extend(seconds.map(|ms| format!(" · {}", duration(ms))));
            tokens = match self.tokens.tokens() {
                0 => String::new(),
                1 => " · ~1 token".to_owned(),
                tokens => format!(" · ~{} tokens", format_count(tokens)),
            };
        } else if let Some(ms) = self.duration_ms() {
            head.push_str(&format!(" for {}", duration(ms)));
        }
        head.push_str(match (self.state, self.loop_watch.finding()) {
            (ThinkingState::Interrupted, Some(_)) => " · stopped in a loop",
            (ThinkingState::Interrupted, None) => " · interrupted",
            (ThinkingState::Running, Some(_)) => " · repeats itself",
            (ThinkingState::Running, None) | (ThinkingState::Done, _) => "",
        });
        let room = context.width.saturating_sub(width_of(&head) + width_of(&tail));
        // A title is more useful than a token count.
        let is_title_cut =
            |title: &str| room < width_of(title).min(SUMMARY_WIDTH) + width_of(" · ") + width_of(&tokens);
        if self.titles.current().is_none_or(|title| !is_title_cut(title)) {
            tail.push_str(&tokens);
        }
        let summary = match shape == ThinkingShape::Open && self.begins_with_title() {
            // It stands right below.
            true => String::new(),
            false => self.summary_part(context.width.saturating_sub(width_of(&head) + width_of(&tail))),
        };
        let beside = context.width.saturating_sub(width_of(&head) + width_of(&tail));
        let hint = hint.map(|hint| {
            // The beginning of a long summary is enough.
            let least = width_of(&summary).min(LEAST_SUMMARY);
            format!(" {}", hint.fitting(beside.saturating_sub(least + 1)))
        });
        let summary = match &hint {
            Some(hint) if width_of(&summary) + width_of(hint) > beside => {
                self.summary_part(beside.saturating_sub(width_of(hint)))
            }
            Some(_) | None => summary,
        };
        let mut text = head;
        text.push_str(&summary);
        if context.width >= width_of(&text) + width_of(&tail) {
            text.push_str(&tail);
        }
        let text = if width_of(&text) > context.width { ellipsize(&text, context.width) } else { text };
        let mut spans = vec![Span::new(TextRole::Thinking, text)];
        let used: usize = spans.iter().map(|span| width_of(&span.text)).sum();
        if let Some(hint) = hint.filter(|hint| used + width_of(hint) <= context.width) {
            spans.push(Span::new(TextRole::Muted, hint));
        }
        Row::new(spans).with_background(RowBackground::Thinking)
    }

    /// Whether the complete text begins with the title that the header would show.
    fn begins_with_title(&self) -> bool {
        !self.is_running() && self.first_title().is_some_and(|title| self.begins_with(title))
    }

    fn begins_with(&self, title: &str) -> bool {
        self.doc.start().trim_start().trim_start_matches(['*', '#', '_', ' ']).starts_with(title)
    }

    fn first_title(&self) -> Option<&str> {
        // Only a line that is too long for a title goes on in another part.
        let find = || self.doc.parts().find_map(thinking_title::first_title).map(str::to_owned);
        self.titles.first().or_else(|| self.first_title.get_or_init(find).as_deref())
    }

    /// The title or the first words, if there is room.
    fn summary_part(&self, room: usize) -> String {
        const BEFORE: &str = " · ";
        let room = room.saturating_sub(width_of(BEFORE)).min(SUMMARY_WIDTH);
        self.summary(room).map(|summary| format!("{BEFORE}{summary}")).unwrap_or_default()
    }

    fn summary(&self, room: usize) -> Option<String> {
        // A single letter with an ellipsis is useless.
        if room < 6 {
            return None;
        }
        if let Readability::HiddenByProvider(_) = self.readable {
            return Some(ellipsize("hidden by provider", room));
        }
        let title = if self.is_running() { self.titles.current() } else { self.first_title() };
        if let Some(title) = title {
            return Some(ellipsize(title, room));
        }
        if self.is_running() {
            return None;
        }
        let words = first_words(self.doc.start());
        if words.is_empty() {
            return None;
        }
        // More lines follow, so the quote gets an ellipsis.
        let goes_on = self.doc.start().trim().contains('\n');
        let words = if goes_on { format!("{words}…") } else { words };
        let words = ellipsize(&words, room - 2);
        // Avoids a full stop before the ellipsis.
        let words = match words.strip_suffix('…') {
            Some(words) => format!("{}…", words.trim_end_matches(['.', ',', ':', ';', ' '])),
            None => words,
        };
        Some(format!("\"{words}\""))
    }

    /// The duration as plain text, if known.
    pub fn plain_duration(&self) -> Option<String> {
        self.duration_ms().map(|ms| format!("Thought for {}", duration(ms)))
    }

    /// The folded header as plain text; `None` for an empty block.
    pub fn plain_summary(&self) -> Option<String> {
        let summary = self.summary(SUMMARY_WIDTH)?;
        Some(format!("{}: {summary}", self.plain_duration().as_deref().unwrap_or("Thought")))
    }

    /// The duration in milliseconds, if it was measured.
    fn duration_ms(&self) -> Option<u64> {
        let ms = self.times.map(|times| times.ended.0.saturating_sub(times.started.0));
        // It arrived at once, so its duration is unknown.
        ms.filter(|ms| *ms >= MIN_DURATION_MS)
    }

    /// The reader's label. A title or words that stand right below it are not repeated.
    pub fn label(&self) -> String {
        let title = if self.is_running() { self.titles.current() } else { self.first_title() };
        let title = title.filter(|title| !self.begins_with(title));
        let parts = [self.duration_ms().map(duration), title.map(str::to_owned)];
        parts.into_iter().flatten().map(|part| format!(" · {part}")).collect()
    }

    /// The number of sections below the header.
    pub fn sections(&mut self, view: ThinkingDisplay) -> usize {
        let shape = self.shape(view);
        let doc = self.current.as_mut().unwrap_or(&mut self.doc);
        match (shape, self.readable) {
            (ThinkingShape::Open, Readability::Text) => doc.sections(),
            (ThinkingShape::Open, Readability::HiddenByProvider(_))
            | (ThinkingShape::Hidden | ThinkingShape::Header | ThinkingShape::Tail, _) => 1,
        }
    }

    /// The rows of one section below the header.
    pub fn body(&mut self, section: usize, width: usize, context: &RenderContext) -> SectionRows<'_> {
        let shape = self.shape(context.view);
        let style = BaseStyle::THINKING.with_prose_width(context.prose_width);
        // A longer title is cut in the header.
        let title = self.titles.current().filter(|title| width_of(title) <= SUMMARY_WIDTH);
        let title = title.filter(|_| self.state == ThinkingState::Running).map(str::to_owned);
        let is_item = self.current.is_some();
        let doc = match (&mut self.current, self.readable) {
            (Some(current), _) => current,
            (None, Readability::Text) => &mut self.doc,
            (None, Readability::HiddenByProvider(bytes)) => {
                self.note.get_or_insert_with(|| LazyText::new(&sealed_note(bytes)))
            }
        };
        match shape {
            ThinkingShape::Hidden | ThinkingShape::Header => SectionRows::of(HighlightedRows::plain(&[])),
            ThinkingShape::Open => match title.filter(|_| is_item && section == 0) {
                Some(title) => {
                    self.tail = doc.section(section, width, style).iter().map(Cow::into_owned).collect();
                    drop_title(&mut self.tail, &title);
                    SectionRows::of(HighlightedRows::plain(&self.tail))
                }
                None => doc.section(section, width, style),
            },
            ThinkingShape::Tail => {
                self.tail = doc.tail(TAIL_ROWS, width, style);
                if let Some(title) = title {
                    drop_title(&mut self.tail, &title);
                }
                SectionRows::of(HighlightedRows::plain(&self.tail))
            }
        }
    }

    pub fn forget_section(&mut self, section: usize) {
        self.doc.forget_section(section);
        self.note = None;
    }

    /// All rows, for the reader.
    pub fn all_rows(&mut self, width: usize, prose_width: usize) -> HighlightedRows<'_> {
        let doc = match self.readable {
            Readability::Text => &mut self.doc,
            Readability::HiddenByProvider(bytes) => self.note.get_or_insert_with(|| LazyText::new(&sealed_note(bytes))),
        };
        doc.body(width, BaseStyle { background: RowBackground::None, prose_width, ..BaseStyle::THINKING })
    }

    pub fn next_job(&mut self, next: &mut HighlightId) -> Option<HighlightJob> {
        self.current.as_mut().and_then(|current| current.next_job(next)).or_else(|| self.doc.next_job(next))
    }

    pub fn apply_highlight(&mut self, result: &mut HighlightResult) -> bool {
        self.doc.apply_highlight(result) || self.current.as_mut().is_some_and(|current| current.apply_highlight(result))
    }

    pub fn forget_rows(&mut self) {
        self.doc.forget_rows();
        self.tail = Vec::new();
        self.note = None;
    }
}

/// Removes this title from the top, because the header shows it.
fn drop_title(rows: &mut Vec<Row>, title: &str) {
    let is_title = |row: &Row| row.mark == Some(RowMark::Title) && row.text().trim() == title;
    if !rows.first().is_some_and(is_title) {
        return;
    }
    let blank = rows.iter().skip(1).take_while(|row| row.text().trim().is_empty()).count();
    rows.drain(..1 + blank);
}

fn sealed_bytes(thinking: &Thinking) -> usize {
    let seals = thinking.seals().into_iter().flat_map(|seals| [&seals.signature, &seals.encrypted]);
    seals.flatten().map(|seal| seal.payload.len()).sum()
}

fn sealed_note(bytes: usize) -> String {
    format!("cannot be read; {bytes} sealed bytes are kept")
}

fn elapsed(began: Time, now: Option<Time>) -> Option<u64> {
    now.map(|now| now.0.saturating_sub(began.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t2_the_first_title_is_found_in_whichever_part_of_a_long_text_it_is() {
        let before = "words that fill a line\n".repeat(2_000);
        let overlong = format!("{}**not a title**\n", "word ".repeat(20_000));
        for text in [format!("{before}{overlong}**Title**\n{before}**Later**\n"), format!("**Title**\n{before}")] {
            let mut split = LazyText::default();
            split.push(&text);
            split.finish();
            assert!(split.parts().count() > 2);
            for doc in [split, LazyText::new(&text)] {
                assert_eq!(ThinkingBlock::finished(doc, None, 0).first_title(), Some("Title"));
            }
        }
        let mut none = LazyText::default();
        none.push(&before);
        assert_eq!(ThinkingBlock::finished(none, None, 0).first_title(), None);
    }
}
