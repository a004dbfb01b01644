//! Searches for tags in text that arrives in pieces.

use memchr::{memchr, memchr2, memchr3};

/// The maximum length of the word in a suffixed tag.
const SUFFIX_LIMIT: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Needle {
    text: String,
    suffixed: bool,
}

impl Needle {
    pub(super) fn literal(text: &str) -> Needle {
        Needle { text: text.to_owned(), suffixed: false }
    }

    /// Matches `<think>` and also `<think:a1>`.
    pub(super) fn suffixed(text: &str) -> Needle {
        Needle { text: text.strip_suffix('>').unwrap_or(text).to_owned(), suffixed: true }
    }

    fn at_start(&self, text: &str) -> NeedleMatch {
        let Some(rest) = text.strip_prefix(self.text.as_str()) else {
            return if self.text.starts_with(text) { NeedleMatch::Partial } else { NeedleMatch::No };
        };
        if !self.suffixed {
            return NeedleMatch::Full { length: self.text.len(), suffix: String::new() };
        }
        let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '-' | '.');
        match rest.find(|c| !word(c)) {
            Some(at) if at <= SUFFIX_LIMIT && rest.get(at..).is_some_and(|rest| rest.starts_with('>')) => {
                let suffix = rest.get(..at).unwrap_or("").to_owned();
                NeedleMatch::Full { length: self.text.len() + at + 1, suffix }
            }
            None if rest.len() <= SUFFIX_LIMIT => NeedleMatch::Partial,
            _ => NeedleMatch::No,
        }
    }
}

enum NeedleMatch {
    Full { length: usize, suffix: String },
    Partial,
    No,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TagMatch {
    Full {
        length: usize,
        needle: usize,
        suffix: String,
    },
    /// The text ends within a possible tag.
    Partial,
}

/// Several needles, searched at once.
#[derive(Debug, Clone, Default)]
pub(super) struct Needles {
    needles: Vec<(Needle, usize)>,
    /// The distinct first bytes of all needles.
    firsts: Vec<u8>,
}

impl Needles {
    pub(super) fn push(&mut self, needle: Needle, id: usize) {
        if let Some(&first) = needle.text.as_bytes().first() {
            if !self.firsts.contains(&first) {
                self.firsts.push(first);
            }
            self.needles.push((needle, id));
        }
    }

    pub(super) fn extend(&mut self, other: Needles, offset: usize) {
        for (needle, id) in other.needles {
            self.push(needle, id + offset);
        }
    }

    /// The longest needle at the start of the text. If a longer one may still
    /// follow, waits for more text, unless this is the end.
    pub(super) fn at_start(&self, text: &str, last: bool) -> Option<TagMatch> {
        let mut best: Option<(usize, usize, String)> = None;
        let mut may_continue = false;
        for (needle, id) in &self.needles {
            match needle.at_start(text) {
                NeedleMatch::Full { length, suffix } if best.as_ref().is_none_or(|(longest, ..)| length > *longest) => {
                    best = Some((length, *id, suffix));
                }
                NeedleMatch::Partial => may_continue = true,
                NeedleMatch::Full { .. } | NeedleMatch::No => (),
            }
        }
        match best {
            _ if may_continue && !last && !text.is_empty() => Some(TagMatch::Partial),
            Some((length, needle, suffix)) => Some(TagMatch::Full { length, needle, suffix }),
            None => None,
        }
    }

    /// The first position where a needle starts or may start.
    pub(super) fn search(&self, text: &str, last: bool) -> (usize, Option<TagMatch>) {
        let mut at = 0;
        while let Some(ahead) = self.next_first(text.as_bytes().get(at..).unwrap_or(&[])) {
            at += ahead;
            if let Some(found) = text.get(at..).and_then(|rest| self.at_start(rest, last)) {
                return (at, Some(found));
            }
            at += 1;
        }
        (text.len(), None)
    }

    fn next_first(&self, bytes: &[u8]) -> Option<usize> {
        match self.firsts.as_slice() {
            [] => None,
            [a] => memchr(*a, bytes),
            [a, b] => memchr2(*a, *b, bytes),
            [a, b, c] => memchr3(*a, *b, *c, bytes),
            many => bytes.iter().position(|byte| many.contains(byte)),
        }
    }
}

/// Watches streamed text for markers without delaying it.
#[derive(Debug, Clone)]
pub(crate) struct MarkerWatch {
    needles: Needles,
    markers: Vec<String>,
    /// The end of the text, if a marker may have started in it.
    tail: String,
}

impl MarkerWatch {
    pub(crate) fn new(markers: &[String]) -> MarkerWatch {
        let mut needles = Needles::default();
        for (index, marker) in markers.iter().enumerate() {
            needles.push(Needle::literal(marker), index);
        }
        MarkerWatch { needles, markers: markers.to_vec(), tail: String::new() }
    }

    /// Resets the state, because the next text is not contiguous.
    pub(crate) fn forget(&mut self) {
        self.tail.clear();
    }

    /// The marker that this text completes, if any.
    pub(crate) fn push(&mut self, text: &str) -> Option<&str> {
        let found = if self.tail.is_empty() {
            let (at, found) = self.needles.search(text, false);
            if found == Some(TagMatch::Partial) {
                self.tail.push_str(text.get(at..).unwrap_or(""));
            }
            found
        } else {
            self.tail.push_str(text);
            let (at, found) = self.needles.search(&self.tail, false);
            self.tail.drain(..at);
            found
        };
        match found {
            Some(TagMatch::Full { needle, .. }) => {
                self.tail.clear();
                self.markers.get(needle).map(String::as_str)
            }
            Some(TagMatch::Partial) | None => None,
        }
    }
}
