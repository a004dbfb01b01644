//! Thinking inside answer text: `<think>` and its relatives, over any chunking.
//!
//! Usable alone: give [`TagParser::push`] the text as it comes and listen to the
//! [`Piece`]s. Nothing is trimmed: open tag + thought + close tag + text is the
//! exact content again.
//!
//! ```text
//!            ┌── open tag ──> Inside ── close tag, tool marker ──> After
//!   Leading ─┤                  ^                                    │
//!            └── other text ─> Outside <── Reach::Anywhere ──────────┤
//!                                          Reach::Leading: Through <─┘
//! ```

mod code;
mod find;

use std::borrow::Cow;

use crate::event::Side;
use code::CodeWatch;
pub use find::Watch;
use find::{Found, Needle, Needles};

/// One family of tags. All of them are data; see `dialects/tags.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    pub id: String,
    pub open: Vec<String>,
    pub close: Vec<String>,
    /// The tag carries a word before its `>` that the close tag repeats.
    pub suffixed: bool,
    /// A marker behind the answer that is not part of it.
    pub tail: Option<String>,
}

/// How a dialect uses tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagRules {
    pub pairs: Vec<Pair>,
    pub start: Start,
    pub reach: Reach,
    /// Markers that end a thought although its close tag is missing.
    pub close_at: Vec<String>,
    pub stray_close: StrayClose,
}

/// What the text begins as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// A thought begins with its tag.
    #[default]
    Explicit,
    /// The chat template opened the tag already.
    Prefilled,
    /// Perhaps it did: a close tag without an opener says so afterwards.
    Auto,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    /// Only a tag that the text begins with counts.
    #[default]
    Leading,
    /// Tags count anywhere outside code, and again.
    Anywhere,
}

/// A close tag right behind a thought that is closed already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StrayClose {
    #[default]
    Keep,
    Swallow,
}

/// What the parser says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A thought begins; the tag as it was written, empty if the template wrote it.
    Open {
        tag: &'a str,
    },
    Thinking(&'a str),
    /// The thought ends here.
    Close,
    Text(&'a str),
    /// What was said so far as the other side belongs here after all.
    Refile(Side),
}

#[derive(Debug)]
pub struct TagParser {
    rules: TagRules,
    state: State,
    /// Text that may still turn out to be a tag.
    held: String,
    code: CodeWatch,
    opens: Needles,
}

#[derive(Debug)]
enum State {
    /// Only white space so far.
    Leading,
    Inside {
        close: Needles,
        tail: Option<String>,
        written: bool,
        fresh: bool,
    },
    /// Behind a thought, before any text.
    After {
        tail: Option<String>,
    },
    Outside {
        needles: Needles,
    },
    /// No tag can come any more.
    Through,
}

impl TagParser {
    pub fn new(rules: TagRules) -> TagParser {
        let state = match (rules.pairs.first(), rules.start) {
            (None, _) => State::Through,
            (Some(_), Start::Explicit | Start::Auto) => State::Leading,
            (Some(pair), Start::Prefilled) => State::Inside {
                close: closers(pair, "", &rules.close_at),
                tail: pair.tail.clone(),
                written: false,
                fresh: true,
            },
        };
        let opens = openers(&rules.pairs);
        TagParser { rules, state, held: String::new(), code: CodeWatch::default(), opens }
    }

    /// Nothing is held and nothing can come: text may bypass the parser.
    pub fn is_through(&self) -> bool {
        matches!(self.state, State::Through) && self.held.is_empty()
    }

    pub fn push(&mut self, text: &str, take: &mut dyn FnMut(Piece<'_>)) {
        if self.held.is_empty() {
            self.run(text, false, take);
        } else {
            let mut joined = std::mem::take(&mut self.held);
            joined.push_str(text);
            self.run(&joined, false, take);
        }
    }

    /// Lets go of what is held: something that is not text comes next.
    pub fn flush(&mut self, take: &mut dyn FnMut(Piece<'_>)) {
        let held = std::mem::take(&mut self.held);
        self.run(&held, true, take);
    }

    /// The text is over. An unclosed thought is a thought; one that the
    /// template may have opened and nothing closed was the answer.
    pub fn finish(&mut self, take: &mut dyn FnMut(Piece<'_>)) {
        self.flush(take);
        match std::mem::replace(&mut self.state, State::Through) {
            State::Inside { written: true, .. } => take(Piece::Close),
            State::Inside { written: false, .. } => take(Piece::Refile(Side::Text)),
            State::Leading | State::After { .. } | State::Outside { .. } | State::Through => (),
        }
    }

    /// Another source has the thoughts: from here on tags are literal text.
    pub fn stand_down(&mut self, take: &mut dyn FnMut(Piece<'_>)) {
        let held = std::mem::take(&mut self.held);
        match std::mem::replace(&mut self.state, State::Through) {
            State::Inside { .. } if held.is_empty() => take(Piece::Close),
            State::Inside { .. } => {
                take(Piece::Thinking(&held));
                take(Piece::Close);
            }
            State::Leading | State::After { .. } | State::Outside { .. } | State::Through => emit_text(&held, take),
        }
    }

    fn run(&mut self, text: &str, last: bool, take: &mut dyn FnMut(Piece<'_>)) {
        let mut rest = text;
        while !rest.is_empty() {
            let step = match &self.state {
                State::Through => {
                    take(Piece::Text(rest));
                    return;
                }
                State::Leading => self.leading(rest, last, take),
                State::Inside { .. } => self.inside(rest, last, take),
                State::After { .. } => self.after(rest, last, take),
                State::Outside { .. } => self.outside(rest, last, take),
            };
            match step {
                Step::Used(bytes) => rest = rest.get(bytes..).unwrap_or(""),
                Step::Hold(bytes) => {
                    self.held.push_str(rest.get(bytes..).unwrap_or(""));
                    return;
                }
            }
        }
    }

    fn leading(&mut self, text: &str, last: bool, take: &mut dyn FnMut(Piece<'_>)) -> Step {
        let blank = text.len() - text.trim_start().len();
        // A tag may itself begin with a space, so every place before the first
        // word is tried.
        for at in (0..=blank).filter(|at| text.is_char_boundary(*at)) {
            match self.opens.at_start(text.get(at..).unwrap_or(""), last) {
                Some(Found::Whole { length, needle, suffix }) => {
                    emit_text(text.get(..at).unwrap_or(""), take);
                    let tag = text.get(at..at + length).unwrap_or("");
                    self.open(needle, &suffix, tag, take);
                    return Step::Used(at + length);
                }
                Some(Found::Perhaps) => {
                    emit_text(text.get(..at).unwrap_or(""), take);
                    return Step::Hold(at);
                }
                None => (),
            }
        }
        emit_text(text.get(..blank).unwrap_or(""), take);
        if blank < text.len() {
            let looks_on = self.rules.reach == Reach::Anywhere || self.rules.start == Start::Auto;
            self.state = if looks_on { self.outside_state(None) } else { State::Through };
        }
        Step::Used(blank)
    }

    fn inside(&mut self, text: &str, last: bool, take: &mut dyn FnMut(Piece<'_>)) -> Step {
        let State::Inside { close, tail, written, fresh } = &mut self.state else { return Step::Used(0) };
        // The template opened the tag, and the model did it again.
        if *fresh && !*written {
            let blank = text.len() - text.trim_start().len();
            let (before, word) = text.split_at(blank);
            let found = self.opens.at_start(word, last);
            if found.is_some() && blank > 0 {
                take(Piece::Thinking(before));
            }
            match found {
                Some(Found::Whole { length, .. }) => {
                    (*written, *fresh) = (true, false);
                    take(Piece::Open { tag: word.get(..length).unwrap_or("") });
                    return Step::Used(blank + length);
                }
                Some(Found::Perhaps) => return Step::Hold(blank),
                None if word.is_empty() => (),
                None => *fresh = false,
            }
        }
        let (at, found) = close.search(text, last);
        if at > 0 {
            take(Piece::Thinking(text.get(..at).unwrap_or("")));
        }
        match found {
            None => Step::Used(text.len()),
            Some(Found::Perhaps) => Step::Hold(at),
            Some(Found::Whole { length, needle, .. }) => {
                take(Piece::Close);
                // A tool marker ends the thought and is what comes after it.
                let marker = needle >= IMPLICIT;
                self.state = State::After { tail: tail.take() };
                Step::Used(if marker { at } else { at + length })
            }
        }
    }

    fn after(&mut self, text: &str, last: bool, take: &mut dyn FnMut(Piece<'_>)) -> Step {
        let State::After { tail } = &mut self.state else { return Step::Used(0) };
        if self.rules.stray_close == StrayClose::Swallow {
            let blank = text.len() - text.trim_start().len();
            match all_closers(&self.rules.pairs).at_start(text.get(blank..).unwrap_or(""), last) {
                Some(Found::Whole { length, .. }) => {
                    emit_text(text.get(..blank).unwrap_or(""), take);
                    return Step::Used(blank + length);
                }
                Some(Found::Perhaps) => {
                    emit_text(text.get(..blank).unwrap_or(""), take);
                    return Step::Hold(blank);
                }
                None if blank == text.len() && !last => return Step::Hold(0),
                None => (),
            }
        }
        let tail = tail.take();
        let through = tail.is_none() && self.rules.reach == Reach::Leading;
        self.code = CodeWatch::default();
        self.state = if through { State::Through } else { self.outside_state(tail) };
        Step::Used(0)
    }

    fn outside(&mut self, text: &str, last: bool, take: &mut dyn FnMut(Piece<'_>)) -> Step {
        let State::Outside { needles } = &self.state else { return Step::Used(0) };
        let (mut from, mut found);
        let mut at = 0;
        loop {
            (from, found) = needles.search(text.get(at..).unwrap_or(""), last);
            from += at;
            self.code.read(text.get(at..from).unwrap_or(""));
            // A tag inside code is talk about tags.
            match found {
                Some(Found::Whole { length, needle, .. }) if needle != TAIL && self.code.inside() => {
                    self.code.read(text.get(from..from + length).unwrap_or(""));
                    at = from + length;
                }
                _ => break,
            }
        }
        emit_text(text.get(..from).unwrap_or(""), take);
        match found {
            None => Step::Used(text.len()),
            Some(Found::Perhaps) => Step::Hold(from),
            Some(Found::Whole { length, needle, .. }) if needle == TAIL => {
                self.state = self.outside_state(None);
                Step::Used(from + length)
            }
            Some(Found::Whole { length, needle, .. }) if needle >= LONE_CLOSE => {
                take(Piece::Refile(Side::Thinking));
                take(Piece::Close);
                self.rules.start = Start::Explicit;
                self.state = State::After { tail: None };
                Step::Used(from + length)
            }
            Some(Found::Whole { length, needle, suffix }) => {
                self.open(needle, &suffix, text.get(from..from + length).unwrap_or(""), take);
                Step::Used(from + length)
            }
        }
    }

    /// What can still be met in answer text, looked up once.
    fn outside_state(&self, tail: Option<String>) -> State {
        let mut needles = Needles::default();
        if self.rules.reach == Reach::Anywhere {
            needles.extend(self.opens.clone(), 0);
        }
        if self.rules.start == Start::Auto {
            needles.extend(all_closers(&self.rules.pairs), LONE_CLOSE);
        }
        if let Some(tail) = tail {
            needles.push(Needle::literal(&tail), TAIL);
        }
        State::Outside { needles }
    }

    fn open(&mut self, pair: usize, suffix: &str, tag: &str, take: &mut dyn FnMut(Piece<'_>)) {
        let Some(pair) = self.rules.pairs.get(pair) else { return };
        take(Piece::Open { tag });
        let close = closers(pair, suffix, &self.rules.close_at);
        self.state = State::Inside { close, tail: pair.tail.clone(), written: true, fresh: false };
        // Once a thought has its own tag, a close tag is nothing to wonder about.
        self.rules.start = Start::Explicit;
    }
}

enum Step {
    /// This much is done with.
    Used(usize),
    /// From here on it may be a tag.
    Hold(usize),
}

/// Needles from here on are tool markers.
const IMPLICIT: usize = 1000;
const LONE_CLOSE: usize = 2000;
const TAIL: usize = 5000;

fn emit_text(text: &str, take: &mut dyn FnMut(Piece<'_>)) {
    if !text.is_empty() {
        take(Piece::Text(text));
    }
}

fn openers(pairs: &[Pair]) -> Needles {
    let mut needles = Needles::default();
    for (index, pair) in pairs.iter().enumerate() {
        for open in &pair.open {
            let needle = if pair.suffixed { Needle::suffixed(open) } else { Needle::literal(open) };
            needles.push(needle, index);
        }
    }
    needles
}

fn closers(pair: &Pair, suffix: &str, markers: &[String]) -> Needles {
    let mut needles = Needles::default();
    for close in &pair.close {
        let close: Cow<'_, str> = match close.strip_suffix('>') {
            Some(start) if pair.suffixed => format!("{start}{suffix}>").into(),
            _ => close.as_str().into(),
        };
        needles.push(Needle::literal(&close), 0);
    }
    for marker in markers {
        needles.push(Needle::literal(marker), IMPLICIT);
    }
    needles
}

fn all_closers(pairs: &[Pair]) -> Needles {
    let mut needles = Needles::default();
    for close in pairs.iter().filter(|pair| !pair.suffixed).flat_map(|pair| &pair.close) {
        needles.push(Needle::literal(close), 0);
    }
    needles
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
