//! A thought that goes in circles: who notices, and what the screen says.

use aside_core::loop_guard::{Finding, Kind, LoopGuard};
use aside_core::screen::neutral_line;

use crate::text::wrap::cut;
use crate::text::{Ink, Row, Shade, Span, width_of};

/// What is known of one thought.
#[derive(Debug, Default)]
pub(super) enum Stuck {
    /// It came whole, and nobody asked yet.
    #[default]
    Unwatched,
    Watching(Box<LoopGuard>),
    /// It is over.
    Known(Option<Finding>),
}

impl Stuck {
    pub(super) fn watching() -> Stuck {
        Stuck::Watching(Box::default())
    }

    pub(super) fn push(&mut self, text: &str) {
        match self {
            Stuck::Watching(guard) => guard.push(text),
            Stuck::Unwatched | Stuck::Known(_) => (),
        }
    }

    /// The thought is over; what was found last stays.
    pub(super) fn rest(&mut self) {
        if let Stuck::Watching(guard) = self {
            *self = Stuck::Known(guard.found().cloned());
        }
    }

    /// Whether it was stuck when it ended, for one that was not watched.
    pub(super) fn judge(&mut self, text: &str) {
        if let Stuck::Unwatched = self {
            *self = Stuck::Known(LoopGuard::of(text));
        }
    }

    pub(super) fn found(&self) -> Option<&Finding> {
        match self {
            Stuck::Unwatched => None,
            Stuck::Watching(guard) => guard.found(),
            Stuck::Known(found) => found.as_ref(),
        }
    }
}

const KEYS: &str = "Alt+Enter answers now · Esc stops";
/// Columns of the marks around them: `! what "quote" · keys`.
const AROUND: usize = 8;
/// Less of a quotation says nothing.
const LEAST_QUOTE: usize = 10;

/// What is found, and what can be done about it, in one row.
pub(super) fn line(found: &Finding, width: usize) -> Row {
    let quote = neutral_line(&found.quote);
    let what = match found.kind {
        Kind::Repeats { times } => format!("{times} times"),
        Kind::Circles => "in circles".to_owned(),
    };
    let since = format!(" · for {} words", found.words);
    let fitting = [(format!("{what}{since}"), KEYS), (what.clone(), KEYS), (what, "Alt+Enter answers")];
    let quoted = fitting.iter().find_map(|(what, keys)| {
        let room = width.checked_sub(width_of(what) + width_of(keys) + AROUND)?;
        let fits = !quote.is_empty() && room >= LEAST_QUOTE.min(width_of(&quote));
        fits.then(|| format!("! {what} \"{}\" · {keys}", cut(&quote, room)))
    });
    let text = quoted.unwrap_or_else(|| cut(&format!("! {KEYS}"), width));
    Row::new(vec![Span::new(Ink::Warn, text)]).shaded(Shade::Thought)
}
