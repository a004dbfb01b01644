//! Parses thinking in the answer text: `<think>` and similar tags, with any
//! chunking.
//!
//! Can be used on its own: pass text to [`TagParser::push`] as it arrives and
//! handle the [`TagPiece`]s. Nothing is trimmed: open tag, thinking, close tag
//! and text together are exactly the original content.
//!
//! ```text
//!            ┌── open tag ──> Inside ── close tag, tool marker ──> After
//!   Leading ─┤                  ^                                    │
//!            └── other text ─> Outside <── TagReach::Anywhere ───────┤
//!                                          TagReach::Leading: Done <─┘
//! ```

mod markdown_code;
mod tag_search;

use std::borrow::Cow;

use crate::event::ProseKind;
use markdown_code::CodeTracker;
pub(crate) use tag_search::MarkerWatch;
use tag_search::{Needle, Needles, TagMatch};

/// A family of tags. All of them are data; see `dialects/tags.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TagPair {
    /// The name that dialect files refer to.
    pub id: String,
    /// The tags that start thinking, each an alternative.
    pub open: Vec<String>,
    /// The tags that end it.
    pub close: Vec<String>,
    /// The tag contains a word before its `>` that the close tag repeats.
    pub suffixed: bool,
    /// A marker after the answer that is not part of it.
    pub tail: Option<String>,
}

/// How a dialect uses tags.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TagRules {
    /// The families to look for. Empty means that text contains no thinking.
    pub pairs: Vec<TagPair>,
    /// Whether the open tag is written.
    pub start: TagStart,
    /// Where tags count.
    pub reach: TagReach,
    /// Markers that end thinking if its close tag is missing.
    pub close_at: Vec<String>,
    /// What happens to a second close tag.
    pub stray_close: StrayClose,
}

/// How the text starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TagStart {
    /// Thinking starts with its tag.
    #[default]
    Explicit,
    /// The chat template has already opened the tag.
    Prefilled,
    /// Unknown. A close tag without an open tag shows that the template opened
    /// it.
    Auto,
}

/// Where in the text tags count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TagReach {
    /// Only a tag at the start of the text counts.
    #[default]
    Leading,
    /// Tags count anywhere outside code, also repeatedly.
    Anywhere,
}

/// What to do with a close tag directly after closed thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StrayClose {
    /// It is text.
    #[default]
    Keep,
    /// It is left out.
    Swallow,
}

/// The output of the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagPiece<'a> {
    /// Thinking starts. The tag as written; empty if the template wrote it.
    Open {
        /// Such as `<think>`.
        tag: &'a str,
    },
    /// The next piece of thinking.
    Thinking(&'a str),
    /// Thinking ends.
    Close,
    /// The next piece of the answer.
    Text(&'a str),
    /// Everything passed on so far belongs to the other kind.
    Refile(ProseKind),
}

/// Splits text into thinking and answer.
#[derive(Debug)]
pub struct TagParser {
    rules: TagRules,
    state: TagState,
    /// Text that may still turn out to be a tag.
    held: String,
    code: CodeTracker,
    opens: Needles,
}

#[derive(Debug)]
enum TagState {
    /// Only white space so far.
    Leading,
    Inside {
        close: Needles,
        tail: Option<String>,
        written: bool,
        fresh: bool,
    },
    /// After thinking, before any text.
    After {
        tail: Option<String>,
    },
    Outside {
        needles: Needles,
    },
    /// No more tags are possible.
    Done,
}

impl TagParser {
    /// A parser for one text.
    pub fn new(rules: TagRules) -> TagParser {
        let state = match (rules.pairs.first(), rules.start) {
            (None, _) => TagState::Done,
            (Some(_), TagStart::Explicit | TagStart::Auto) => TagState::Leading,
            (Some(pair), TagStart::Prefilled) => TagState::Inside {
                close: closers(pair, "", &rules.close_at),
                tail: pair.tail.clone(),
                written: false,
                fresh: true,
            },
        };
        let opens = openers(&rules.pairs);
        TagParser { rules, state, held: String::new(), code: CodeTracker::default(), opens }
    }

    /// Whether no text is buffered and no tag is possible, so that text can
    /// bypass the parser.
    pub fn is_done(&self) -> bool {
        matches!(self.state, TagState::Done) && self.held.is_empty()
    }

    /// Takes the next piece of text. What may be the start of a tag is held
    /// back.
    pub fn push(&mut self, text: &str, take: &mut dyn FnMut(TagPiece<'_>)) {
        if self.held.is_empty() {
            self.run(text, false, take);
        } else {
            let mut joined = std::mem::take(&mut self.held);
            joined.push_str(text);
            self.run(&joined, false, take);
        }
    }

    /// Releases the buffered text, because something other than text comes
    /// next.
    pub fn flush(&mut self, take: &mut dyn FnMut(TagPiece<'_>)) {
        let held = std::mem::take(&mut self.held);
        self.run(&held, true, take);
    }

    /// Ends the text. Unclosed thinking stays thinking, unless only the
    /// template may have opened it: then it was the answer.
    pub fn finish(&mut self, take: &mut dyn FnMut(TagPiece<'_>)) {
        self.flush(take);
        match std::mem::replace(&mut self.state, TagState::Done) {
            TagState::Inside { written: true, .. } => take(TagPiece::Close),
            TagState::Inside { written: false, .. } => take(TagPiece::Refile(ProseKind::Text)),
            TagState::Leading | TagState::After { .. } | TagState::Outside { .. } | TagState::Done => (),
        }
    }

    /// Treats further tags as text, because thinking arrives through another
    /// field.
    pub fn disable(&mut self, take: &mut dyn FnMut(TagPiece<'_>)) {
        let held = std::mem::take(&mut self.held);
        match std::mem::replace(&mut self.state, TagState::Done) {
            TagState::Inside { .. } if held.is_empty() => take(TagPiece::Close),
            TagState::Inside { .. } => {
                take(TagPiece::Thinking(&held));
                take(TagPiece::Close);
            }
            TagState::Leading | TagState::After { .. } | TagState::Outside { .. } | TagState::Done => {
                emit_text(&held, take)
            }
        }
    }

    fn run(&mut self, text: &str, last: bool, take: &mut dyn FnMut(TagPiece<'_>)) {
        let mut rest = text;
        while !rest.is_empty() {
            let step = match &self.state {
                TagState::Done => {
                    take(TagPiece::Text(rest));
                    return;
                }
                TagState::Leading => self.leading(rest, last, take),
                TagState::Inside { .. } => self.inside(rest, last, take),
                TagState::After { .. } => self.after(rest, last, take),
                TagState::Outside { .. } => self.outside(rest, last, take),
            };
            match step {
                TagStep::Used(bytes) => rest = rest.get(bytes..).unwrap_or(""),
                TagStep::Hold(bytes) => {
                    self.held.push_str(rest.get(bytes..).unwrap_or(""));
                    return;
                }
            }
        }
    }

    fn leading(&mut self, text: &str, last: bool, take: &mut dyn FnMut(TagPiece<'_>)) -> TagStep {
        let blank = text.len() - text.trim_start().len();
        // A tag may start with a space, so every position before the first word
        // is tried.
        for at in (0..=blank).filter(|at| text.is_char_boundary(*at)) {
            match self.opens.at_start(text.get(at..).unwrap_or(""), last) {
                Some(TagMatch::Full { length, needle, suffix }) => {
                    emit_text(text.get(..at).unwrap_or(""), take);
                    let tag = text.get(at..at + length).unwrap_or("");
                    self.open(needle, &suffix, tag, take);
                    return TagStep::Used(at + length);
                }
                Some(TagMatch::Partial) => {
                    emit_text(text.get(..at).unwrap_or(""), take);
                    return TagStep::Hold(at);
                }
                None => (),
            }
        }
        emit_text(text.get(..blank).unwrap_or(""), take);
        if blank < text.len() {
            let keep_searching = self.rules.reach == TagReach::Anywhere || self.rules.start == TagStart::Auto;
            self.state = if keep_searching { self.outside_state(None) } else { TagState::Done };
        }
        TagStep::Used(blank)
    }

    fn inside(&mut self, text: &str, last: bool, take: &mut dyn FnMut(TagPiece<'_>)) -> TagStep {
        let TagState::Inside { close, tail, written, fresh } = &mut self.state else { return TagStep::Used(0) };
        // The template opened the tag, and the model wrote it again.
        if *fresh && !*written {
            let blank = text.len() - text.trim_start().len();
            let (before, word) = text.split_at(blank);
            let found = self.opens.at_start(word, last);
            if found.is_some() && blank > 0 {
                take(TagPiece::Thinking(before));
            }
            match found {
                Some(TagMatch::Full { length, .. }) => {
                    (*written, *fresh) = (true, false);
                    take(TagPiece::Open { tag: word.get(..length).unwrap_or("") });
                    return TagStep::Used(blank + length);
                }
                Some(TagMatch::Partial) => return TagStep::Hold(blank),
                None if word.is_empty() => (),
                None => *fresh = false,
            }
        }
        let (at, found) = close.search(text, last);
        if at > 0 {
            take(TagPiece::Thinking(text.get(..at).unwrap_or("")));
        }
        match found {
            None => TagStep::Used(text.len()),
            Some(TagMatch::Partial) => TagStep::Hold(at),
            Some(TagMatch::Full { length, needle, .. }) => {
                take(TagPiece::Close);
                // A tool marker ends thinking and is itself part of the
                // following text.
                let marker = needle >= IMPLICIT;
                self.state = TagState::After { tail: tail.take() };
                TagStep::Used(if marker { at } else { at + length })
            }
        }
    }

    fn after(&mut self, text: &str, last: bool, take: &mut dyn FnMut(TagPiece<'_>)) -> TagStep {
        let TagState::After { tail } = &mut self.state else { return TagStep::Used(0) };
        if self.rules.stray_close == StrayClose::Swallow {
            let blank = text.len() - text.trim_start().len();
            match all_closers(&self.rules.pairs).at_start(text.get(blank..).unwrap_or(""), last) {
                Some(TagMatch::Full { length, .. }) => {
                    emit_text(text.get(..blank).unwrap_or(""), take);
                    return TagStep::Used(blank + length);
                }
                Some(TagMatch::Partial) => {
                    emit_text(text.get(..blank).unwrap_or(""), take);
                    return TagStep::Hold(blank);
                }
                None if blank == text.len() && !last => return TagStep::Hold(0),
                None => (),
            }
        }
        let tail = tail.take();
        let through = tail.is_none() && self.rules.reach == TagReach::Leading;
        self.code = CodeTracker::default();
        self.state = if through { TagState::Done } else { self.outside_state(tail) };
        TagStep::Used(0)
    }

    fn outside(&mut self, text: &str, last: bool, take: &mut dyn FnMut(TagPiece<'_>)) -> TagStep {
        let TagState::Outside { needles } = &self.state else { return TagStep::Used(0) };
        let (mut from, mut found);
        let mut at = 0;
        loop {
            (from, found) = needles.search(text.get(at..).unwrap_or(""), last);
            from += at;
            self.code.read(text.get(at..from).unwrap_or(""));
            // A tag inside code is literal text.
            match found {
                Some(TagMatch::Full { length, needle, .. }) if needle != TAIL && self.code.inside() => {
                    self.code.read(text.get(from..from + length).unwrap_or(""));
                    at = from + length;
                }
                _ => break,
            }
        }
        emit_text(text.get(..from).unwrap_or(""), take);
        match found {
            None => TagStep::Used(text.len()),
            Some(TagMatch::Partial) => TagStep::Hold(from),
            Some(TagMatch::Full { length, needle, .. }) if needle == TAIL => {
                self.state = self.outside_state(None);
                TagStep::Used(from + length)
            }
            Some(TagMatch::Full { length, needle, .. }) if needle >= LONE_CLOSE => {
                take(TagPiece::Refile(ProseKind::Thinking));
                take(TagPiece::Close);
                self.rules.start = TagStart::Explicit;
                self.state = TagState::After { tail: None };
                TagStep::Used(from + length)
            }
            Some(TagMatch::Full { length, needle, suffix }) => {
                self.open(needle, &suffix, text.get(from..from + length).unwrap_or(""), take);
                TagStep::Used(from + length)
            }
        }
    }

    /// Collects the tags that can still occur in the answer text.
    fn outside_state(&self, tail: Option<String>) -> TagState {
        let mut needles = Needles::default();
        if self.rules.reach == TagReach::Anywhere {
            needles.extend(self.opens.clone(), 0);
        }
        if self.rules.start == TagStart::Auto {
            needles.extend(all_closers(&self.rules.pairs), LONE_CLOSE);
        }
        if let Some(tail) = tail {
            needles.push(Needle::literal(&tail), TAIL);
        }
        TagState::Outside { needles }
    }

    fn open(&mut self, pair: usize, suffix: &str, tag: &str, take: &mut dyn FnMut(TagPiece<'_>)) {
        let Some(pair) = self.rules.pairs.get(pair) else { return };
        take(TagPiece::Open { tag });
        let close = closers(pair, suffix, &self.rules.close_at);
        self.state = TagState::Inside { close, tail: pair.tail.clone(), written: true, fresh: false };
        // After an explicit open tag, a lone close tag has no special meaning.
        self.rules.start = TagStart::Explicit;
    }
}

enum TagStep {
    /// This many bytes were processed.
    Used(usize),
    /// From this byte on, the text may be a tag.
    Hold(usize),
}

/// Needle ids from here on are tool markers.
const IMPLICIT: usize = 1000;
const LONE_CLOSE: usize = 2000;
const TAIL: usize = 5000;

fn emit_text(text: &str, take: &mut dyn FnMut(TagPiece<'_>)) {
    if !text.is_empty() {
        take(TagPiece::Text(text));
    }
}

fn openers(pairs: &[TagPair]) -> Needles {
    let mut needles = Needles::default();
    for (index, pair) in pairs.iter().enumerate() {
        for open in &pair.open {
            let needle = if pair.suffixed { Needle::suffixed(open) } else { Needle::literal(open) };
            needles.push(needle, index);
        }
    }
    needles
}

fn closers(pair: &TagPair, suffix: &str, markers: &[String]) -> Needles {
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

fn all_closers(pairs: &[TagPair]) -> Needles {
    let mut needles = Needles::default();
    for close in pairs.iter().filter(|pair| !pair.suffixed).flat_map(|pair| &pair.close) {
        needles.push(Needle::literal(close), 0);
    }
    needles
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
