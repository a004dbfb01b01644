//! Words in rows. A line that was broken to the width is searched as one, so
//! a match may begin on one row and end on the next.

use std::ops::Range;

use crate::text::{Face, Ink, Join, Row, Span};

/// What a search depends on. A text only grows, so its end tells it all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Key {
    words: String,
    width: usize,
    rows: usize,
    last_row: usize,
}

/// What was found, and the titles there are.
#[derive(Debug, Default)]
pub(super) struct Finds {
    key: Key,
    /// The row each match begins on.
    pub(super) hits: Vec<usize>,
    /// The parts of rows that stand out, row by row.
    marks: Vec<(usize, Range<usize>)>,
    /// The row each title begins on, and what it says.
    pub(super) titles: Vec<(usize, String)>,
}

/// A letter of a line: its row, and its bytes behind the margin.
type Place = Option<(usize, Range<usize>)>;

impl Finds {
    /// Searches, unless nothing changed since the last time.
    pub(super) fn search(&mut self, words: &str, rows: &[Row], width: usize) {
        let last_row = rows.last().map_or(0, |row| row.spans.iter().map(|span| span.text.len()).sum());
        let key = Key { words: words.to_lowercase(), width, rows: rows.len(), last_row };
        if key == self.key {
            return;
        }
        *self = Finds { key, titles: titles(rows), ..Finds::default() };
        if self.key.words.is_empty() {
            return;
        }
        let mut from = 0;
        while from < rows.len() {
            let more = rows.iter().skip(from + 1).take_while(|row| row.join != Join::Line).count();
            let to = from + 1 + more;
            self.search_line(from, rows.get(from..to).unwrap_or(&[]));
            from = to;
        }
    }

    fn search_line(&mut self, first: usize, rows: &[Row]) {
        let (text, places) = line(first, rows);
        let words = self.key.words.clone();
        let mut from = 0;
        while let Some(at) = text.get(from..).and_then(|rest| rest.find(&words)) {
            let (start, end) = (from + at, from + at + words.len());
            let mut hit = None;
            for (row, bytes) in places.get(start..end).unwrap_or(&[]).iter().flatten() {
                hit.get_or_insert(*row);
                match self.marks.last_mut() {
                    Some((last, range)) if last == row && range.end >= bytes.start => {
                        range.end = range.end.max(bytes.end)
                    }
                    Some(_) | None => self.marks.push((*row, bytes.clone())),
                }
            }
            self.hits.extend(hit);
            from = end;
        }
    }

    /// The row with what was found standing out.
    pub(super) fn mark(&self, index: usize, row: &Row) -> Row {
        let from = self.marks.partition_point(|(row, _)| *row < index);
        let marks = self.marks.iter().skip(from).take_while(|(row, _)| *row == index).map(|(_, range)| range);
        let mut out = Row { spans: row.lead().to_vec(), ..row.clone() };
        let mut marks = marks.peekable();
        let mut at = 0;
        for span in row.own() {
            let mut rest = span.text.as_str();
            while !rest.is_empty() {
                while marks.next_if(|range| range.end <= at).is_some() {}
                let (length, is_found) = match marks.peek() {
                    Some(range) if range.start <= at => (range.end - at, true),
                    Some(range) => (range.start - at, false),
                    None => (rest.len(), false),
                };
                let Some((piece, after)) = rest.split_at_checked(length.min(rest.len())) else { break };
                let plain = Span { text: piece.to_owned(), ..span.clone() };
                out.spans.push(if is_found { found(plain) } else { plain });
                at += piece.len();
                rest = after;
            }
        }
        out
    }
}

fn found(span: Span) -> Span {
    Span { ink: Ink::Found, ..span.faced(Face::BOLD.with(Face::UNDERLINED)) }
}

/// The text of a line in small letters, and where each byte of it is from.
fn line(first: usize, rows: &[Row]) -> (String, Vec<Place>) {
    let (mut text, mut places) = (String::new(), Vec::new());
    for (index, row) in rows.iter().enumerate() {
        if row.join == Join::Space {
            text.push(' ');
            places.push(None);
        }
        let mut at = 0;
        for letter in row.own().iter().flat_map(|span| span.text.chars()) {
            let bytes = at..at + letter.len_utf8();
            at = bytes.end;
            for small in letter.to_lowercase() {
                text.push(small);
                places.extend(std::iter::repeat_n(Some((first + index, bytes.clone())), small.len_utf8()));
            }
        }
    }
    (text, places)
}

/// Where the titles of a text are, and what they say.
fn titles(rows: &[Row]) -> Vec<(usize, String)> {
    let own = |row: &Row| row.own().iter().map(|span| span.text.as_str()).collect::<String>();
    let is_title = |row: &Row| row.mark == Some(crate::text::Mark::Title);
    let mut out = Vec::new();
    for (index, row) in rows.iter().enumerate().filter(|(_, row)| is_title(row)) {
        let mut text = own(row);
        for row in rows.iter().skip(index + 1).take_while(|row| row.join != Join::Line) {
            text.push_str(if row.join == Join::Space { " " } else { "" });
            text.push_str(&own(row));
        }
        out.push((index, text.trim().to_owned()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Base, Doc};

    /// The rows with what was found in brackets.
    fn marked(text: &str, width: usize, words: &str) -> (usize, Vec<String>) {
        let mut doc = Doc::new(text);
        let rows = doc.rows(width, Base::TEXT);
        let mut finds = Finds::default();
        finds.search(words, rows, width);
        let show = |row: Row| {
            let text =
                |span: &Span| if span.ink == Ink::Found { format!("[{}]", span.text) } else { span.text.clone() };
            row.spans.iter().map(text).collect::<String>()
        };
        (finds.hits.len(), rows.iter().enumerate().map(|(index, row)| show(finds.mark(index, row))).collect())
    }

    #[test]
    fn t12_a_match_may_go_over_the_end_of_a_row() {
        #[rustfmt::skip]
        let cases = [
            ("in a row",        "one two",             20, "two",      1, vec!["one [two]"]),
            ("any case",        "Straße İx",           20, "STRASSE",  0, vec!["Straße İx"]),
            ("longer in small", "aİb aİb",             20, "b",        2, vec!["aİ[b] aİ[b]"]),
            ("over a space",    "one two three",        8, "two three", 1, vec!["one [two]", "[three]"]),
            ("inside a word",   "abcdefgh",             4, "cdef",     1, vec!["ab[cd]", "[ef]gh"]),
            ("over a margin",   "- one two three",     10, "two three", 1, vec!["• one [two]", "  [three]"]),
            ("over a face",     "on**e tw**o",         20, "one two",  1, vec!["[on][e tw][o]"]),
            ("in code",         "```\nabcdefghijklmnopqrstuvwxyz\n```", 21, "stu", 1, vec!["  abcdefghijklmnopqr[s]", "  [tu]vwxyz"]),
            ("not over lines",  "one\ntwo",            20, "one two",  0, vec!["one", "two"]),
            ("twice",           "aaaa",                20, "aa",       2, vec!["[aaaa]"]),
            ("wide letters",    "漢字漢字",              4, "字漢",      1, vec!["漢[字]", "[漢]字"]),
        ];
        for (name, text, width, words, hits, rows) in cases {
            let (found, shown) = marked(text, width, words);
            assert_eq!((found, shown.iter().map(String::as_str).collect::<Vec<_>>()), (hits, rows), "{name}");
        }
    }

    #[test]
    fn t12_titles_are_headings_and_lines_that_are_bold() {
        let mut doc = Doc::new("**Reading the file**\n\nbody **x**\n\n## Next\n\n- **item**\n\n`code`");
        let rows = doc.rows(12, Base::THOUGHT);
        let found: Vec<String> = titles(rows).into_iter().map(|(_, text)| text).collect();
        assert_eq!(found, ["Reading the file", "Next", "item"]);
    }
}
