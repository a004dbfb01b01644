//! Detects thinking that repeats itself, and the notice about it.

use aside_core::repetition::{Repetition, RepetitionGuard, RepetitionKind};
use aside_core::terminal_text::terminal_safe_line;

use crate::text::wrap::ellipsize;
use crate::text::{Break, Margin, Row, RowBackground, Span, TextRole, width_of, wrap};

/// What is known about one thinking block.
#[derive(Debug, Default)]
pub(super) enum LoopWatch {
    /// It arrived complete and was not checked.
    #[default]
    Unwatched,
    Watching(Box<RepetitionGuard>),
    /// It has ended.
    Done(Option<Repetition>),
}

impl LoopWatch {
    pub(super) fn watching() -> LoopWatch {
        LoopWatch::Watching(Box::default())
    }

    pub(super) fn push(&mut self, text: &str) {
        match self {
            LoopWatch::Watching(guard) => guard.push(text),
            LoopWatch::Unwatched | LoopWatch::Done(_) => (),
        }
    }

    /// Thinking has ended; keeps the last finding.
    pub(super) fn stop(&mut self) {
        if let LoopWatch::Watching(guard) = self {
            *self = LoopWatch::Done(guard.found().cloned());
        }
    }

    /// Checks a complete text that was not watched while streaming.
    pub(super) fn check_text(&mut self, text: &str) {
        if let LoopWatch::Unwatched = self {
            *self = LoopWatch::Done(RepetitionGuard::of(text));
        }
    }

    pub(super) fn finding(&self) -> Option<&Repetition> {
        match self {
            LoopWatch::Unwatched => None,
            LoopWatch::Watching(guard) => guard.found(),
            LoopWatch::Done(found) => found.as_ref(),
        }
    }
}

const KEYS: &str = "Alt+Enter answers now · Esc stops";
/// Columns of the punctuation: `! what "quote" · keys`.
const PUNCTUATION: usize = 8;
/// A shorter quote is useless.
const MIN_QUOTE: usize = 10;

/// What repeats, and what the user can do about it. What does not fit into the first row follows below it.
pub(super) fn notice_rows(finding: &Repetition, width: usize) -> Vec<Row> {
    let quote = terminal_safe_line(&finding.quote);
    let what = match finding.kind {
        RepetitionKind::Repeats { times } => format!("{times} times"),
        RepetitionKind::LowNovelty => "repeating".to_owned(),
    };
    let since = format!("for {} words", finding.words);
    let both = format!("{what} · {since}");
    let fitting = [
        (both.as_str(), KEYS, String::new()),
        (what.as_str(), KEYS, since.clone()),
        (what.as_str(), "Alt+Enter answers", format!("{since} · Esc stops")),
    ];
    let quoted = fitting.into_iter().find_map(|(what, keys, below)| {
        let room = width.checked_sub(width_of(what) + width_of(keys) + PUNCTUATION)?;
        let fits = !quote.is_empty() && room >= MIN_QUOTE.min(width_of(&quote));
        fits.then(|| (format!("{what} \"{}\" · {keys}", ellipsize(&quote, room)), below))
    });
    let (first, below) = quoted.unwrap_or_else(|| {
        let quote = if quote.is_empty() { quote } else { format!(" \"{quote}\"") };
        (KEYS.to_owned(), format!("{both}{quote}"))
    });
    let mut rows = Vec::new();
    for (mark, text) in [("! ", first), ("  ", below)].into_iter().filter(|(_, text)| !text.is_empty()) {
        let margin = |text: &str| vec![Span::new(TextRole::Warning, text)];
        let margin = Margin { first: margin(mark), rest: margin("  ") };
        let text = [Span::new(TextRole::Warning, text)];
        wrap(&text, width, Break::Words, &margin, RowBackground::Thinking, &mut rows);
    }
    rows
}
