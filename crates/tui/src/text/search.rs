//! Searches text in rows. A wrapped line is searched as a whole, so that a match may span rows.

use std::ops::Range;

use crate::text::{FontStyle, Row, RowStart, Span, TextRole};

/// What the results depend on. A text only grows, so its length identifies its state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct SearchKey {
    words: String,
    width: usize,
    rows: usize,
    last_row: usize,
}

/// The matches, and the titles of the text.
#[derive(Debug, Default)]
pub(crate) struct SearchResults {
    key: SearchKey,
    /// The row where each match begins.
    pub(crate) hits: Vec<usize>,
    /// The highlighted parts, row by row.
    marks: Vec<(usize, Range<usize>)>,
    /// The row where each title begins, and its text.
    pub(crate) titles: Vec<(usize, String)>,
}

/// Where a byte of a line comes from: the row, and the byte range after the margin.
type LetterOrigin = Option<(usize, Range<usize>)>;

impl SearchResults {
    /// Searches, unless nothing changed since the last search.
    pub(crate) fn search(&mut self, words: &str, rows: &[Row], width: usize) {
        let last_row = rows.last().map_or(0, |row| row.spans.iter().map(|span| span.text.len()).sum());
        let key = SearchKey { words: words.to_lowercase(), width, rows: rows.len(), last_row };
        if key == self.key {
            return;
        }
        *self = SearchResults { key, titles: titles(rows), ..SearchResults::default() };
        if self.key.words.is_empty() {
            return;
        }
        let mut from = 0;
        while from < rows.len() {
            let more = rows.iter().skip(from + 1).take_while(|row| row.start != RowStart::NewLine).count();
            let to = from + 1 + more;
            self.search_line(from, rows.get(from..to).unwrap_or(&[]));
            from = to;
        }
    }

    fn search_line(&mut self, first: usize, rows: &[Row]) {
        let (text, origins) = joined_line(first, rows);
        let words = self.key.words.clone();
        let mut from = 0;
        while let Some(at) = text.get(from..).and_then(|rest| rest.find(&words)) {
            let (start, end) = (from + at, from + at + words.len());
            let mut hit = None;
            for (row, bytes) in origins.get(start..end).unwrap_or(&[]).iter().flatten() {
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

    /// The row with its matches highlighted.
    pub(crate) fn mark(&self, index: usize, row: &Row) -> Row {
        let from = self.marks.partition_point(|(row, _)| *row < index);
        let marks = self.marks.iter().skip(from).take_while(|(row, _)| *row == index).map(|(_, range)| range);
        let mut out = Row { spans: row.margin().to_vec(), ..row.clone() };
        let mut marks = marks.peekable();
        let mut at = 0;
        for span in row.content() {
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
                out.spans.push(if is_found { highlighted(plain) } else { plain });
                at += piece.len();
                rest = after;
            }
        }
        out
    }
}

fn highlighted(span: Span) -> Span {
    Span { role: TextRole::SearchMatch, ..span.with_font(FontStyle::BOLD.with(FontStyle::UNDERLINED)) }
}

/// A wrapped line in lower case, with the origin of each byte.
fn joined_line(first: usize, rows: &[Row]) -> (String, Vec<LetterOrigin>) {
    let (mut text, mut origins) = (String::new(), Vec::new());
    for (index, row) in rows.iter().enumerate() {
        if row.start == RowStart::AfterSpaces {
            text.push(' ');
            origins.push(None);
        }
        let mut at = 0;
        for letter in row.content().iter().flat_map(|span| span.text.chars()) {
            let bytes = at..at + letter.len_utf8();
            at = bytes.end;
            for small in letter.to_lowercase() {
                text.push(small);
                origins.extend(std::iter::repeat_n(Some((first + index, bytes.clone())), small.len_utf8()));
            }
        }
    }
    (text, origins)
}

/// The titles of a text and their rows.
fn titles(rows: &[Row]) -> Vec<(usize, String)> {
    let own = |row: &Row| row.content().iter().map(|span| span.text.as_str()).collect::<String>();
    let is_title = |row: &Row| row.mark == Some(super::RowMark::Title);
    let mut out = Vec::new();
    for (index, row) in rows.iter().enumerate().filter(|(_, row)| is_title(row)) {
        let mut text = own(row);
        for row in rows.iter().skip(index + 1).take_while(|row| row.start != RowStart::NewLine) {
            text.push_str(if row.start == RowStart::AfterSpaces { " " } else { "" });
            text.push_str(&own(row));
        }
        out.push((index, text.trim().to_owned()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{BaseStyle, MarkdownView};

    /// The rows, with matches in brackets.
    fn marked(text: &str, width: usize, words: &str) -> (usize, Vec<String>) {
        let mut doc = MarkdownView::new(text);
        let rows = doc.rows(width, BaseStyle::TEXT);
        let mut results = SearchResults::default();
        results.search(words, rows, width);
        let show = |row: Row| {
            let text = |span: &Span| {
                if span.role == TextRole::SearchMatch { format!("[{}]", span.text) } else { span.text.clone() }
            };
            row.spans.iter().map(text).collect::<String>()
        };
        (results.hits.len(), rows.iter().enumerate().map(|(index, row)| show(results.mark(index, row))).collect())
    }

    #[test]
    fn t12_a_match_may_span_rows() {
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
    fn t12_titles_are_headings_and_bold_lines() {
        let mut doc = MarkdownView::new("**Reading the file**\n\nbody **x**\n\n## Next\n\n- **item**\n\n`code`");
        let rows = doc.rows(12, BaseStyle::THINKING);
        let found: Vec<String> = titles(rows).into_iter().map(|(_, text)| text).collect();
        assert_eq!(found, ["Reading the file", "Next", "item"]);
    }
}
