//! Where a query stands in a text, and what to show of it.

use std::ops::Range;

use super::query::Unit;
use super::words::{Sort, Word, Words, normal, pieces};

/// How much stands before the first match, and how long a snippet is.
const BEFORE: usize = 48;
const LENGTH: usize = 160;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snippet {
    pub(crate) text: String,
    pub(crate) marks: Vec<Range<usize>>,
    /// Where the first match stands in the whole text.
    pub(crate) first: Option<Range<usize>>,
}

/// Shows the first place of the longest thing asked for, which is usually
/// where the others are too, with everything found there marked.
pub(crate) fn snippet(text: &str, units: &[Unit]) -> Snippet {
    let first = first_match(text, units);
    let from = first.as_ref().map_or(0, |range| boundary_before(text, range.start, BEFORE));
    let to = boundary_after(text, (from + LENGTH).max(first.as_ref().map_or(0, |range| range.end)));
    let shown = text.get(from..to).unwrap_or("");
    let mut marks: Vec<Range<usize>> = matches(shown, units);
    marks.sort_by_key(|mark| (mark.start, mark.end));
    let marks = joined(marks);
    let (before, after) = (if from > 0 { "…" } else { "" }, if to < text.len() { "…" } else { "" });
    // One line: a control character becomes one space, so that marks still hold.
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

/// The earliest match of any unit, longest units first: a long word or phrase
/// says more about the place than a short one.
fn first_match(text: &str, units: &[Unit]) -> Option<Range<usize>> {
    let mut by_length: Vec<&Unit> = units.iter().collect();
    by_length.sort_by_key(|unit| std::cmp::Reverse(unit.words.iter().map(String::len).sum::<usize>()));
    by_length.into_iter().find_map(|unit| Matches::of(text, unit).next())
}

fn matches(text: &str, units: &[Unit]) -> Vec<Range<usize>> {
    units.iter().flat_map(|unit| Matches::of(text, unit)).collect()
}

/// The places of one unit in a text.
struct Matches<'t, 'u> {
    text: &'t str,
    unit: &'u Unit,
    words: Words<'t>,
}

impl<'t, 'u> Matches<'t, 'u> {
    fn of(text: &'t str, unit: &'u Unit) -> Matches<'t, 'u> {
        Matches { text, unit, words: Words::of(text) }
    }
}

impl Iterator for Matches<'_, '_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        loop {
            let word = self.words.next()?;
            let place = Place { text: self.text, unit: self.unit, after: &self.words };
            if let Some(range) = place.stands_at(&word) {
                return Some(range);
            }
        }
    }
}

/// One word of a text and those behind it, held against a unit.
struct Place<'a> {
    text: &'a str,
    unit: &'a Unit,
    after: &'a Words<'a>,
}

impl Place<'_> {
    fn stands_at(&self, word: &Word) -> Option<Range<usize>> {
        self.whole(word).or_else(|| self.piece(word))
    }

    /// Whether the unit's words stand here, the first of them being `word`.
    fn whole(&self, word: &Word) -> Option<Range<usize>> {
        let mut wanted = self.unit.words.iter().peekable();
        let first = wanted.next()?;
        if !self.is(word, first, wanted.peek().is_none()) {
            return None;
        }
        let mut last = word.clone();
        let mut following = self.after.clone();
        while let Some(next) = wanted.next() {
            last = following.next()?;
            if !self.is(&last, next, wanted.peek().is_none()) {
                return None;
            }
        }
        if self.unit.open_end && last.sort == Sort::Pair {
            // Only the first letter of the pair was asked for.
            let second = self.text.get(last.range.clone())?.char_indices().nth(1)?.0;
            last.range.end = last.range.start + second;
        }
        Some(word.range.start..last.range.end)
    }

    fn is(&self, word: &Word, wanted: &str, is_last: bool) -> bool {
        let text = self.text.get(word.range.clone()).unwrap_or("");
        if is_last && self.unit.open_end {
            return text.starts_with(wanted);
        }
        same(text, wanted)
    }

    /// Whether the word is an identifier with the wanted pieces in it.
    fn piece(&self, word: &Word) -> Option<Range<usize>> {
        if self.unit.pieces.is_empty() || word.sort != Sort::Spaced {
            return None;
        }
        let text = self.text.get(word.range.clone())?;
        let pieces = pieces(text);
        let at = pieces
            .windows(self.unit.pieces.len())
            .position(|window| window.iter().zip(&self.unit.pieces).all(|(piece, wanted)| same(piece, wanted)))?;
        let (first, last) = (pieces.get(at)?, pieces.get(at + self.unit.pieces.len() - 1)?);
        // Pieces are parts of one word, so where they stand is their difference.
        let start = word.range.start + (first.as_ptr() as usize - text.as_ptr() as usize);
        let end = word.range.start + (last.as_ptr() as usize - text.as_ptr() as usize) + last.len();
        Some(start..end)
    }
}

/// Whether a word is the wanted one, told without building it where it is ASCII.
fn same(word: &str, wanted: &str) -> bool {
    if word.len() == wanted.len() && word.is_ascii() { word.eq_ignore_ascii_case(wanted) } else { longer(word, wanted) }
}

fn longer(word: &str, wanted: &str) -> bool {
    // A word that differs in length is the same only if it was cut, or if its
    // small letters take another number of bytes.
    let may_be = !word.is_ascii() || word.len() > wanted.len() && wanted.len() >= 60;
    may_be && normal(word) == wanted
}

fn boundary_before(text: &str, at: usize, distance: usize) -> usize {
    let mut start = at.saturating_sub(distance);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    // At a space, if one is near.
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
    use super::super::query::units;
    use super::*;

    #[test]
    fn p4_matches_are_marked_where_they_stand() {
        #[rustfmt::skip]
        let cases = [
            ("word",             "build",          "Fix the BUILD now",         "Fix the [BUILD] now"),
            ("two words",        "now fix",        "Fix the build now",         "[Fix] the build [now]"),
            ("quoted",           "\"the build\"",  "the fix of the  build",     "the fix of [the  build]"),
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
            let shown = snippet(text, &units(query));
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
        let shown = snippet(&text, &units("needle"));
        let place = shown.first.clone().unwrap();
        assert_eq!(text.get(place), Some("needle"));
        assert!(shown.text.starts_with('…') && shown.text.ends_with('…'), "{}", shown.text);
        assert!(shown.text.len() < 200, "{}", shown.text.len());
        let marked: Vec<_> = shown.marks.into_iter().map(|mark| shown.text.get(mark)).collect();
        assert_eq!(marked, [Some("needle")]);
    }
}
