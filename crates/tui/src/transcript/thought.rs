//! One thought on the screen. Whether it is still coming and whether it is
//! folded are two things: either can change without the other.

use std::borrow::Cow;
use std::cell::OnceCell;

use aside_core::block::{Content, Span as Times, SummaryItem, Thinking, Time};
use aside_core::screen::{Neutral, neutral};
use aside_core::settings::Display;

use super::Look;
use super::stuck::{self, Stuck};
use crate::count::{Count, short};
use crate::text::light::{Job, Lit, Ticket};
use crate::text::wrap::cut;
use crate::text::{Base, Body, Ink, Long, Row, Shade, Shown, Span, width_of};

/// Rows of a thought that streams in the `live` view.
pub const WINDOW: usize = 8;
/// About how much of its first words a folded thought shows.
const GIST: usize = 40;

/// What came in less was not thought while we watched.
const LEAST_MS: u64 = 50;

/// What the user chose for this one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    Folded,
    Open,
}

/// How a thought looks right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Hidden,
    /// The header alone.
    Line,
    /// The header and the last rows.
    Window,
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Done,
    Interrupted,
}

/// Whether there is anything to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readable {
    Text,
    /// Encrypted or redacted: this many bytes, which are kept.
    HiddenByProvider(usize),
}

#[derive(Debug)]
pub struct Thought {
    /// All of it.
    doc: Long,
    /// The summary item that is coming now.
    current: Option<Long>,
    /// What an unreadable one says when it is opened.
    note: Option<Long>,
    title: Option<String>,
    /// Of a thought from a history it is looked for when it is shown.
    first_title: OnceCell<Option<String>>,
    /// The title is that of the item before; this one has not said its own.
    is_title_old: bool,
    neutral: Neutral,
    line: String,
    /// Its last rows, as they were shown.
    window: Vec<Row>,
    state: State,
    readable: Readable,
    began: Option<Time>,
    times: Option<Times>,
    tokens: Count,
    stuck: Stuck,
    choice: Option<Choice>,
    /// It is all there is to the reply, so it stays open.
    only: bool,
}

impl Thought {
    pub fn begin(now: Option<Time>) -> Thought {
        Thought {
            doc: Long::default(),
            current: None,
            note: None,
            title: None,
            first_title: OnceCell::new(),
            is_title_old: false,
            neutral: Neutral::default(),
            line: String::new(),
            window: Vec::new(),
            state: State::Running,
            readable: Readable::Text,
            began: now,
            times: None,
            tokens: Count::default(),
            stuck: Stuck::watching(),
            choice: None,
            only: false,
        }
    }

    /// A finished one, from a history. It takes the way of a live one.
    pub fn whole(thinking: &Thinking) -> Thought {
        let mut thought = Thought { stuck: Stuck::default(), ..Thought::begin(None) };
        thought.close(thinking);
        thought
    }

    pub fn push(&mut self, text: &str) {
        let shown = self.neutral.take(text);
        self.doc.push(&shown);
        if let Some(current) = &mut self.current {
            current.push(&shown);
        }
        self.tokens.push(&shown);
        self.stuck.push(&shown);
        self.read_titles(&shown);
    }

    /// A line that is bold as a whole is a title, in summaries and elsewhere.
    fn read_titles(&mut self, shown: &str) {
        for piece in shown.split_inclusive('\n') {
            self.line.push_str(piece.trim_end_matches('\n'));
            if let Some(title) = whole_title(&self.line) {
                self.title = Some(title.to_owned());
                self.first_title.get_or_init(|| Some(title.to_owned()));
                self.is_title_old = false;
            }
            // A line of words came first, so this item has no title.
            let is_words = !self.line.trim_start().is_empty() && !self.line.trim_start().starts_with('*');
            if self.is_title_old && (is_words || piece.ends_with('\n') && !self.line.trim().is_empty()) {
                self.title = None;
                self.is_title_old = false;
            }
            if piece.ends_with('\n') {
                self.line.clear();
            } else if self.line.len() > 200 {
                // No title is as long; the start of the line is not kept for ever.
                self.line = "-".repeat(100);
            }
        }
    }

    /// A summary item begins.
    pub fn item(&mut self) {
        if !self.doc.is_blank() {
            self.push("\n\n");
        }
        self.current = Some(Long::default());
        self.is_title_old = true;
    }

    /// The thought as it is kept.
    pub fn close(&mut self, thinking: &Thinking) {
        self.stuck.rest();
        if !self.doc.says(&neutral(thinking.text())) {
            self.doc = Long::new(thinking.text());
            (self.title, self.first_title) = (None, OnceCell::new());
        }
        self.doc.finish();
        self.settle(thinking);
    }

    /// A finished one whose text nobody else needs.
    pub fn restored(mut thinking: Thinking) -> Thought {
        let mut thought = Thought { stuck: Stuck::default(), ..Thought::begin(None) };
        if let Content::Open { text } | Content::Sealed { text, .. } = &mut thinking.content {
            thought.doc = Long::owned(std::mem::take(text));
        }
        thought.settle(&thinking);
        thought
    }

    /// All but the text, which is there already.
    fn settle(&mut self, thinking: &Thinking) {
        self.current = None;
        self.line = String::new();
        self.times = thinking.span;
        if self.doc.is_blank()
            && let Some(seals) = thinking.seals()
        {
            let bytes = [&seals.signature, &seals.encrypted].into_iter().flatten().map(|seal| seal.payload.len()).sum();
            self.readable = Readable::HiddenByProvider(bytes);
        }
        self.end();
    }

    /// It is complete, as far as anybody said.
    pub fn end(&mut self) {
        if self.state == State::Running {
            self.state = State::Done;
            self.current = None;
            self.stuck.rest();
        }
    }

    /// It stopped before it was complete.
    pub fn interrupt(&mut self, now: Option<Time>) {
        if self.state == State::Running
            && let (None, Some(started), Some(ended)) = (self.times, self.began, now)
        {
            self.times = Some(Times { started, ended });
        }
        self.state = State::Interrupted;
        self.current = None;
        self.stuck.rest();
        self.stuck.judge(&self.doc.source());
    }

    /// It is running, and going in circles.
    pub fn is_stuck(&self) -> bool {
        self.is_running() && self.stuck.found().is_some()
    }

    /// The row below a running thought that gets nowhere.
    pub fn footer(&self, width: usize, view: Display) -> Option<Row> {
        let is_open = match self.shape(view) {
            Shape::Window | Shape::Open => true,
            Shape::Hidden | Shape::Line => false,
        };
        let found = self.stuck.found().filter(|_| is_open && self.is_running())?;
        Some(stuck::line(found, width))
    }

    pub fn is_running(&self) -> bool {
        self.state == State::Running
    }

    pub fn source(&self) -> Cow<'_, str> {
        self.doc.source()
    }

    pub fn leave_open(&mut self) {
        self.only = true;
    }

    pub fn forget_choice(&mut self) {
        self.choice = None;
    }

    pub fn shape(&self, view: Display) -> Shape {
        // Nothing came, nothing is coming, nothing is hidden: there is no thought.
        let is_nothing = !self.is_running() && self.doc.is_blank() && self.readable == Readable::Text;
        if is_nothing || view == Display::Off {
            return Shape::Hidden;
        }
        match (self.choice, view) {
            (Some(Choice::Open), _) => Shape::Open,
            (Some(Choice::Folded), _) => Shape::Line,
            (None, Display::Off) => Shape::Hidden,
            (None, Display::Full) => Shape::Open,
            (None, Display::Live) if self.is_running() => Shape::Window,
            (None, Display::Live | Display::Collapsed) if self.only => Shape::Open,
            (None, Display::Live | Display::Collapsed) => Shape::Line,
        }
    }

    /// From the window it opens; whoever reads along wants more of it.
    pub fn toggle(&mut self, view: Display) {
        self.choice = Some(match self.shape(view) {
            Shape::Open => Choice::Folded,
            Shape::Line | Shape::Window | Shape::Hidden => Choice::Open,
        });
    }

    pub fn header(&self, look: &Look, hint: bool) -> Row {
        let shape = self.shape(look.view);
        let arrow = if shape == Shape::Open { "▼" } else { "▶" };
        let (mark, word) = if self.is_running() { (look.spinner(), "Thinking") } else { (arrow, "Thought") };
        let mut head = format!("{mark} {word}");
        let (mut tail, mut tokens) = (String::new(), String::new());
        if self.is_running() {
            let seconds = self.began.and_then(|began| elapsed(began, look.now)).filter(|ms| *ms >= 1000);
            tail.extend(seconds.map(|ms| format!(" · {}", duration(ms))));
            tokens = match self.tokens.tokens() {
                0 => String::new(),
                1 => " · ~1 token".to_owned(),
                tokens => format!(" · ~{} tokens", short(tokens)),
            };
        } else if let Some(ms) = self.took() {
            head.push_str(&format!(" for {}", duration(ms)));
        }
        head.push_str(match (self.state, self.stuck.found()) {
            (State::Interrupted, Some(_)) => " · stopped in a loop",
            (State::Interrupted, None) => " · interrupted",
            (State::Running, Some(_)) => " · repeats itself",
            (State::Running, None) | (State::Done, _) => "",
        });
        let room = look.width.saturating_sub(width_of(&head) + width_of(&tail));
        // A count says less than a title.
        let is_title_cut = |title: &String| room < width_of(title).min(GIST) + width_of(" · ") + width_of(&tokens);
        if self.title.as_ref().is_none_or(|title| !is_title_cut(title)) {
            tail.push_str(&tokens);
        }
        let about = self.about(look.width.saturating_sub(width_of(&head) + width_of(&tail)));
        let mut text = head;
        text.push_str(&about);
        if look.width >= width_of(&text) + width_of(&tail) {
            text.push_str(&tail);
        }
        let text = if width_of(&text) > look.width { cut(&text, look.width) } else { text };
        let mut spans = vec![Span::new(Ink::Thought, text)];
        const HINT: &str = " (click to expand)";
        let used: usize = spans.iter().map(|span| width_of(&span.text)).sum();
        if hint && shape == Shape::Line && !self.is_running() && used + HINT.len() <= look.width {
            spans.push(Span::new(Ink::Muted, HINT));
        }
        Row::new(spans).shaded(Shade::Thought)
    }

    fn first_title(&self) -> Option<&str> {
        let find = || self.doc.source().lines().find_map(whole_title).map(str::to_owned);
        self.first_title.get_or_init(find).as_deref()
    }

    /// Its title or its first words, as far as there is room.
    fn about(&self, room: usize) -> String {
        const BEFORE: &str = " · ";
        let room = room.saturating_sub(width_of(BEFORE)).min(GIST);
        self.gist(room).map(|gist| format!("{BEFORE}{gist}")).unwrap_or_default()
    }

    fn gist(&self, room: usize) -> Option<String> {
        // A letter and an ellipsis say nothing.
        if room < 6 {
            return None;
        }
        if let Readable::HiddenByProvider(_) = self.readable {
            return Some(cut("hidden by provider", room));
        }
        let title = if self.is_running() { self.title.as_deref() } else { self.first_title() };
        if let Some(title) = title {
            return Some(cut(title, room));
        }
        if self.is_running() {
            return None;
        }
        let words = first_words(self.doc.start());
        if words.is_empty() {
            return None;
        }
        // Another line follows, so the words are not all there is.
        let goes_on = self.doc.start().trim().contains('\n');
        let words = if goes_on { format!("{words}…") } else { words };
        let words = cut(&words, room - 2);
        // A full stop before an ellipsis is one mark too many.
        let words = match words.strip_suffix('…') {
            Some(words) => format!("{}…", words.trim_end_matches(['.', ',', ':', ';', ' '])),
            None => words,
        };
        Some(format!("\"{words}\""))
    }

    /// How long it took, in words alone, where that is known.
    pub fn spoken_end(&self) -> Option<String> {
        self.took().map(|ms| format!("Thought for {}", duration(ms)))
    }

    /// The folded header in words alone; none if there is no thought.
    pub fn spoken_line(&self) -> Option<String> {
        let gist = self.gist(GIST)?;
        Some(format!("{}: {gist}", self.spoken_end().as_deref().unwrap_or("Thought")))
    }

    /// How long it took, where somebody watched.
    fn took(&self) -> Option<u64> {
        let ms = self.times.map(|times| times.ended.0.saturating_sub(times.started.0));
        // All of it came at once; how long it took nobody knows.
        ms.filter(|ms| *ms >= LEAST_MS)
    }

    /// What the reader says about it behind its number. Its first words stand
    /// below anyway.
    pub fn label(&self) -> String {
        let title = if self.is_running() { self.title.as_deref() } else { self.first_title() };
        let parts = [self.took().map(duration), title.map(str::to_owned)];
        parts.into_iter().flatten().map(|part| format!(" · {part}")).collect()
    }

    /// What is below the header comes in so many parts.
    pub fn sections(&mut self, view: Display) -> usize {
        let shape = self.shape(view);
        let doc = self.current.as_mut().unwrap_or(&mut self.doc);
        match (shape, self.readable) {
            (Shape::Open, Readable::Text) => doc.sections(),
            (Shape::Open, Readable::HiddenByProvider(_)) | (Shape::Hidden | Shape::Line | Shape::Window, _) => 1,
        }
    }

    /// The rows of a part of what is below the header.
    pub fn body(&mut self, section: usize, width: usize, view: Display) -> Shown<'_> {
        let shape = self.shape(view);
        let doc = match (&mut self.current, self.readable) {
            (Some(current), _) => current,
            (None, Readable::Text) => &mut self.doc,
            (None, Readable::HiddenByProvider(bytes)) => {
                self.note.get_or_insert_with(|| Long::new(&sealed_note(bytes)))
            }
        };
        match shape {
            Shape::Hidden | Shape::Line => Shown::of(Body::plain(&[])),
            Shape::Open => doc.section(section, width, Base::THOUGHT),
            Shape::Window => {
                self.window = doc.tail(WINDOW, width, Base::THOUGHT);
                Shown::of(Body::plain(&self.window))
            }
        }
    }

    pub fn forget_section(&mut self, section: usize) {
        self.doc.forget_section(section);
        self.note = None;
    }

    /// Everything at once, for the reader.
    pub fn whole_body(&mut self, width: usize) -> Body<'_> {
        let doc = match self.readable {
            Readable::Text => &mut self.doc,
            Readable::HiddenByProvider(bytes) => self.note.get_or_insert_with(|| Long::new(&sealed_note(bytes))),
        };
        doc.body(width, Base { shade: Shade::None, ..Base::THOUGHT })
    }

    pub fn wants(&mut self, next: &mut Ticket) -> Option<Job> {
        self.current.as_mut().and_then(|current| current.wants(next)).or_else(|| self.doc.wants(next))
    }

    pub fn lit(&mut self, lit: &mut Lit) -> bool {
        self.doc.lit(lit) || self.current.as_mut().is_some_and(|current| current.lit(lit))
    }

    pub fn forget_rows(&mut self) {
        self.doc.forget_rows();
        self.window = Vec::new();
        self.note = None;
    }
}

fn sealed_note(bytes: usize) -> String {
    format!("nothing of it can be read; {bytes} sealed bytes are kept")
}

fn elapsed(began: Time, now: Option<Time>) -> Option<u64> {
    now.map(|now| now.0.saturating_sub(began.0))
}

/// The title that a line is, if it is nothing else.
fn whole_title(line: &str) -> Option<&str> {
    let item = SummaryItem::parse(line);
    item.title.filter(|_| item.content.is_empty() && line.trim_end().ends_with("**"))
}

/// The first line with words, without the marks of Markdown.
fn first_words(text: &str) -> String {
    let bare = |line: &str| {
        let line = line.trim_start_matches(['#', '>', '-', '+', ' ', '\t']);
        line.chars().filter(|c| !matches!(c, '*' | '`')).collect::<String>().trim().to_owned()
    };
    text.lines().map(bare).find(|line| !line.is_empty()).unwrap_or_default()
}

/// `0.4s`, `12s`, `2m 5s`, `1h 2m`.
pub fn duration(ms: u64) -> String {
    match ms {
        0..=949 => format!("0.{}s", (ms + 50) / 100),
        950..=59_499 => format!("{}s", (ms + 500) / 1000),
        59_500..=3_599_499 => format!("{}m {}s", (ms + 500) / 60_000, (ms + 500) / 1000 % 60),
        _ => format!("{}h {}m", (ms + 500) / 3_600_000, (ms + 500) / 60_000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t2_a_time_is_short_and_never_of_no_hours() {
        #[rustfmt::skip]
        let cases = [
            (50,         "0.1s"),
            (949,        "0.9s"),
            (950,        "1s"),
            (12_400,     "12s"),
            (59_499,     "59s"),
            (59_500,     "1m 0s"),
            (125_000,    "2m 5s"),
            (3_599_499,  "59m 59s"),
            (3_599_500,  "1h 0m"),
            (7_380_000,  "2h 3m"),
        ];
        for (ms, expected) in cases {
            assert_eq!(duration(ms), expected, "{ms}");
        }
    }
}
