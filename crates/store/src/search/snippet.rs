//! Finds the matches of a query in a text and cuts out a snippet.

use std::ops::Range;

use super::query::QueryTerm;
use super::words::{WordKind, WordSpan, WordSpans, normalize, pieces};

/// How much text precedes the first match, and how long a snippet is, in bytes.
const BEFORE: usize = 48;
const LENGTH: usize = 160;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snippet {
    pub(crate) text: String,
    pub(crate) marks: Vec<Range<usize>>,
    /// Where the first match is in the whole text.
    pub(crate) first: Option<Range<usize>>,
}

/// Shows the first match of the longest term, since the others are usually nearby,
/// with all matches in it marked.
pub(crate) fn snippet(text: &str, terms: &[QueryTerm]) -> Snippet {
    let first = first_match(text, terms);
    let from = first.as_ref().map_or(0, |range| boundary_before(text, range.start, BEFORE));
    let to = boundary_after(text, (from + LENGTH).max(first.as_ref().map_or(0, |range| range.end)));
    let shown = text.get(from..to).unwrap_or("");
    let mut marks: Vec<Range<usize>> = matches(shown, terms);
    marks.sort_by_key(|mark| (mark.start, mark.end));
    let marks = joined(marks);
    let (before, after) = (if from > 0 { "…" } else { "" }, if to < text.len() { "…" } else { "" });
    // On one line: each control character becomes one space, so that the marks still fit.
    let line: String = shown.chars().map(|letter| if letter.is_ascii_control() { ' ' } else { letter }).collect();
    let marks = marks.into_iter().map(|mark| mark.start + before.len()..mark.end + before.len()).collect();
    Snippet { text: format!("{before}{line}{after}"), marks, first }
}

fn joined(marks: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for mark in marks {
        match out.last_mut() {
            Some(last) if mark.start <= last.end => last.end = last.end.max(mark.end),
            _ => out.push(mark),
        }
    }
    out
}

/// The earliest match of the longest term that matches: a long word or phrase is
/// more specific than a short one.
fn first_match(text: &str, terms: &[QueryTerm]) -> Option<Range<usize>> {
    let mut by_length: Vec<&QueryTerm> = terms.iter().collect();
    by_length.sort_by_key(|term| std::cmp::Reverse(term.words.iter().map(String::len).sum::<usize>()));
    by_length.into_iter().find_map(|term| TermMatches::of(text, term).next())
}

fn matches(text: &str, terms: &[QueryTerm]) -> Vec<Range<usize>> {
    terms.iter().flat_map(|term| TermMatches::of(text, term)).collect()
}

/// The matches of one term in a text.
struct TermMatches<'t, 'u> {
    text: &'t str,
    term: &'u QueryTerm,
    words: WordSpans<'t>,
}

impl<'t, 'u> TermMatches<'t, 'u> {
    fn of(text: &'t str, term: &'u QueryTerm) -> TermMatches<'t, 'u> {
        TermMatches { text, term, words: WordSpans::of(text) }
    }
}

impl Iterator for TermMatches<'_, '_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        loop {
            let word = self.words.next()?;
            let matcher = TermMatcher { text: self.text, term: self.term, after: &self.words };
            if let Some(range) = matcher.match_at(&word) {
                return Some(range);
            }
        }
    }
}

/// Compares one word of a text, and the words after it, with a term.
struct TermMatcher<'a> {
    text: &'a str,
    term: &'a QueryTerm,
    after: &'a WordSpans<'a>,
}

impl TermMatcher<'_> {
    fn match_at(&self, word: &WordSpan) -> Option<Range<usize>> {
        self.match_words(word).or_else(|| self.match_identifier_parts(word))
    }

    /// Whether the term's words follow each other from `word` on.
    fn match_words(&self, word: &WordSpan) -> Option<Range<usize>> {
        let mut wanted = self.term.words.iter().peekable();
        let first = wanted.next()?;
        if !self.word_equals(word, first, wanted.peek().is_none()) {
            return None;
        }
        let mut last = word.clone();
        let mut following = self.after.clone();
        while let Some(next) = wanted.next() {
            last = following.next()?;
            if !self.word_equals(&last, next, wanted.peek().is_none()) {
                return None;
            }
        }
        if self.term.open_end && last.kind == WordKind::Pair {
            // The query has only the first letter of the pair.
            let second = self.text.get(last.range.clone())?.char_indices().nth(1)?.0;
            last.range.end = last.range.start + second;
        }
        Some(word.range.start..last.range.end)
    }

    fn word_equals(&self, word: &WordSpan, wanted: &str, is_last: bool) -> bool {
        let text = self.text.get(word.range.clone()).unwrap_or("");
        if is_last && self.term.open_end { begins_with(text, wanted) } else { same_word(text, wanted) }
    }

    fn parts_equal(&self, parts: &[&str]) -> bool {
        let last = self.term.pieces.len().saturating_sub(1);
        parts.iter().zip(&self.term.pieces).enumerate().all(|(at, (part, wanted))| {
            if at == last && self.term.open_end { begins_with(part, wanted) } else { same_word(part, wanted) }
        })
    }

    /// Whether the word is an identifier that contains the term's parts.
    fn match_identifier_parts(&self, word: &WordSpan) -> Option<Range<usize>> {
        if self.term.pieces.is_empty() || word.kind != WordKind::Spaced {
            return None;
        }
        let text = self.text.get(word.range.clone())?;
        let pieces = pieces(text);
        let at = pieces.windows(self.term.pieces.len()).position(|window| self.parts_equal(window))?;
        let (first, last) = (pieces.get(at)?, pieces.get(at + self.term.pieces.len() - 1)?);
        // Parts are slices of one word, so pointer differences are their offsets.
        let start = word.range.start + (first.as_ptr() as usize - text.as_ptr() as usize);
        let end = word.range.start + (last.as_ptr() as usize - text.as_ptr() as usize) + last.len();
        Some(start..end)
    }
}

/// Whether a word begins with the wanted letters.
fn begins_with(word: &str, wanted: &str) -> bool {
    match word.as_bytes().get(..wanted.len()) {
        Some(begin) if word.is_ascii() => begin.eq_ignore_ascii_case(wanted.as_bytes()),
        Some(_) | None => normalize(word).starts_with(wanted),
    }
}

/// Whether a word equals the wanted one; without an allocation for ASCII.
fn same_word(word: &str, wanted: &str) -> bool {
    if word.len() == wanted.len() && word.is_ascii() {
        word.eq_ignore_ascii_case(wanted)
    } else {
        same_normalized(word, wanted)
    }
}

fn same_normalized(word: &str, wanted: &str) -> bool {
    // Words of different length are equal only if one was truncated, or if its
    // lower case has another number of bytes.
    let may_be = !word.is_ascii() || word.len() > wanted.len() && wanted.len() >= 60;
    may_be && normalize(word) == wanted
}

fn boundary_before(text: &str, at: usize, distance: usize) -> usize {
    let mut start = at.saturating_sub(distance);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    // At a space, if there is one nearby.
    let lead = text.get(start..at).unwrap_or("");
    match lead.find(char::is_whitespace) {
        Some(space) if start > 0 && space < lead.len() / 2 => {
            start + space + lead.get(space..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
        }
        _ => start,
    }
}

fn boundary_after(text: &str, at: usize) -> usize {
    let mut end = at.min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::super::query::parse_query;
    use super::*;

    #[test]
    fn p4_matches_are_marked_where_they_stand() {
        #[rustfmt::skip]
        let cases = [
            ("word",             "build",          "Fix the BUILD now",         "Fix the [BUILD] now"),
            ("two words",        "now fix",        "Fix the build now",         "[Fix] the build [now]"),
            ("quoted",           "\"the build\"",  "the fix of the  build",     "the fix of [the  build]"),
            ("prefix",           "buil*",          "Fix the BUILDING now",      "Fix the [BUILDING] now"),
            ("accents, prefix",  "ét*",            "un ÉTÉ chaud",              "un [ÉTÉ] chaud"),
            ("phrase, prefix",   "\"the bu*\"",    "fix the build",             "fix [the build]"),
            ("piece, prefix",    "htt*",           "call parseHttpRequest()",   "call parse[Http]Request()"),
            ("piece",            "http",           "call parseHttpRequest()",   "call parse[Http]Request()"),
            ("pieces",           "http_request",   "call parseHttpRequest()",   "call parse[HttpRequest]()"),
            ("whole identifier", "parse_http",     "x.parse_http()",            "x.[parse_http]()"),
            ("han",              "京都府",           "私は京都府に住む",             "私は[京都府]に住む"),
            ("one han",          "府",              "私は京都府に住む",             "私は京都[府]に住む"),
            ("lines",            "b",              "a\nb\tc",                   "a [b] c"),
            ("accents",          "été",            "un ÉTÉ chaud",              "un [ÉTÉ] chaud"),
            ("path",             "src/main.rs",    "see src/main.rs:3",         "see [src/main.rs]:3"),
        ];
        for (name, query, text, expected) in cases {
            let shown = snippet(text, &parse_query(query));
            let mut drawn = shown.text.clone();
            for mark in shown.marks.iter().rev() {
                drawn.insert(mark.end, ']');
                drawn.insert(mark.start, '[');
            }
            assert_eq!(drawn, expected, "{name}");
            assert!(shown.first.is_some(), "{name}");
        }
    }

    #[test]
    fn a_snippet_of_a_long_text_shows_the_match_and_little_else() {
        let text = format!("{}needle {}", "hay 草 ".repeat(1000), "hay ".repeat(1000));
        let shown = snippet(&text, &parse_query("needle"));
        let place = shown.first.clone().unwrap();
        assert_eq!(text.get(place), Some("needle"));
        assert!(shown.text.starts_with('…') && shown.text.ends_with('…'), "{}", shown.text);
        assert!(shown.text.len() < 200, "{}", shown.text.len());
        let marked: Vec<_> = shown.marks.into_iter().map(|mark| shown.text.get(mark)).collect();
        assert_eq!(marked, [Some("needle")]);
    }
}
