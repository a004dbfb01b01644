//! Looking for tags in text that is still coming.

use memchr::{memchr, memchr2, memchr3};

/// Longest word a suffixed tag may carry.
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

    /// `<think>` that also matches `<think:a1>`.
    pub(super) fn suffixed(text: &str) -> Needle {
        Needle { text: text.strip_suffix('>').unwrap_or(text).to_owned(), suffixed: true }
    }

    fn at_start(&self, text: &str) -> Match {
        let Some(rest) = text.strip_prefix(self.text.as_str()) else {
            return if self.text.starts_with(text) { Match::Perhaps } else { Match::No };
        };
        if !self.suffixed {
            return Match::Whole { length: self.text.len(), suffix: String::new() };
        }
        let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '-' | '.');
        match rest.find(|c| !word(c)) {
            Some(at) if at <= SUFFIX_LIMIT && rest.get(at..).is_some_and(|rest| rest.starts_with('>')) => {
                let suffix = rest.get(..at).unwrap_or("").to_owned();
                Match::Whole { length: self.text.len() + at + 1, suffix }
            }
            None if rest.len() <= SUFFIX_LIMIT => Match::Perhaps,
            _ => Match::No,
        }
    }
}

enum Match {
    Whole { length: usize, suffix: String },
    Perhaps,
    No,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Whole {
        length: usize,
        needle: usize,
        suffix: String,
    },
    /// The text ends inside something that may become a tag.
    Perhaps,
}

/// Several needles looked for at once.
#[derive(Debug, Clone, Default)]
pub(super) struct Needles {
    needles: Vec<(Needle, usize)>,
    /// The different first bytes of all needles.
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

    /// The longest needle that stands here. A longer one that may still be
    /// coming is waited for, unless this is the last of the text.
    pub(super) fn at_start(&self, text: &str, last: bool) -> Option<Found> {
        let mut best: Option<(usize, usize, String)> = None;
        let mut perhaps = false;
        for (needle, id) in &self.needles {
            match needle.at_start(text) {
                Match::Whole { length, suffix } if best.as_ref().is_none_or(|(longest, ..)| length > *longest) => {
                    best = Some((length, *id, suffix));
                }
                Match::Perhaps => perhaps = true,
                Match::Whole { .. } | Match::No => (),
            }
        }
        match best {
            _ if perhaps && !last && !text.is_empty() => Some(Found::Perhaps),
            Some((length, needle, suffix)) => Some(Found::Whole { length, needle, suffix }),
            None => None,
        }
    }

    /// The first place where a needle stands or may begin to.
    pub(super) fn search(&self, text: &str, last: bool) -> (usize, Option<Found>) {
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

/// Watches a stream of text for markers, without holding any of it back.
#[derive(Debug, Clone)]
pub struct Watch {
    needles: Needles,
    markers: Vec<String>,
    /// The end of the text so far, if a marker may have begun in it.
    tail: String,
}

impl Watch {
    pub fn new(markers: &[String]) -> Watch {
        let mut needles = Needles::default();
        for (index, marker) in markers.iter().enumerate() {
            needles.push(Needle::literal(marker), index);
        }
        Watch { needles, markers: markers.to_vec(), tail: String::new() }
    }

    /// What comes next does not follow on what came before.
    pub fn forget(&mut self) {
        self.tail.clear();
    }

    /// The marker that this text completes, if it does.
    pub fn push(&mut self, text: &str) -> Option<&str> {
        let found = if self.tail.is_empty() {
            let (at, found) = self.needles.search(text, false);
            if found == Some(Found::Perhaps) {
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
            Some(Found::Whole { needle, .. }) => {
                self.tail.clear();
                self.markers.get(needle).map(String::as_str)
            }
            Some(Found::Perhaps) | None => None,
        }
    }
}
