//! Breaking inked text to a width. Widths are those of grapheme clusters, so
//! an emoji of five code points is one thing of two columns.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::row::{Join, Row, Shade, Span};

/// Columns a tab takes.
pub const TAB: &str = "    ";

/// Where a row may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// Between words; the spaces at the break are left out.
    Words,
    /// Anywhere; every space stays.
    Anywhere,
}

/// What stands before the text of the first row, and of the others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Margin {
    pub first: Vec<Span>,
    pub rest: Vec<Span>,
}

impl Margin {
    pub fn same(spans: Vec<Span>) -> Margin {
        Margin { first: spans.clone(), rest: spans }
    }
}

pub fn width_of(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    super::cluster::clusters(text).map(|(_, cluster)| cluster_width(cluster)).sum()
}

/// A cluster is never wider than two columns, whatever its code points add up
/// to: that is how terminals draw it.
pub fn cluster_width(cluster: &str) -> usize {
    if let [b' '..=b'~'] = cluster.as_bytes() {
        return 1;
    }
    UnicodeWidthStr::width(cluster).min(2)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    /// Of two columns; rows may end before and behind it.
    Wide,
    Word,
}

#[derive(Debug, Clone, Copy)]
struct Cluster {
    span: usize,
    from: usize,
    to: usize,
    width: usize,
    kind: Kind,
}

/// Breaks one line of text (without line ends in it) into rows. An empty line
/// is one row.
pub fn wrap(spans: &[Span], width: usize, mode: Break, margin: &Margin, shade: Shade, out: &mut Vec<Row>) {
    let width = width.max(1);
    let margin_width = |spans: &[Span]| spans.iter().map(|span| width_of(&span.text)).sum::<usize>();
    let (first, rest) = (margin_width(&margin.first), margin_width(&margin.rest));
    if first.max(rest) > width / 2 {
        // Too narrow to indent. The first margin may hold a list's number, so
        // it goes into the text instead of going missing.
        let mut all = margin.first.clone();
        all.extend_from_slice(spans);
        return wrap(&all, width, mode, &Margin::default(), shade, out);
    }
    let spans = without_tabs(spans);
    let clusters = clusters(&spans);
    let mut at = 0;
    let mut is_first = true;
    let mut join = Join::Line;
    loop {
        let (lead, room) = if is_first { (&margin.first, width - first) } else { (&margin.rest, width - rest) };
        let (end, next) = row_end(&clusters, at, room, mode);
        let mut row = Row { join, ..Row::new(lead.clone()).shaded(shade).led_by(lead.len()) };
        copy(&spans, clusters.get(at..end).unwrap_or(&[]), &mut row.spans);
        out.push(row);
        join = if next > end { Join::Space } else { Join::Word };
        at = next;
        is_first = false;
        if at >= clusters.len() {
            return;
        }
    }
}

fn without_tabs(spans: &[Span]) -> Vec<Span> {
    let expand = |span: &Span| Span { text: span.text.replace('\t', TAB), ..span.clone() };
    spans.iter().map(expand).collect()
}

fn clusters(spans: &[Span]) -> Vec<Cluster> {
    let mut out = Vec::with_capacity(spans.iter().map(|span| span.text.len()).sum());
    for (index, span) in spans.iter().enumerate() {
        if span.text.is_ascii() {
            let kind = |byte: u8| if byte == b' ' { Kind::Space } else { Kind::Word };
            let bytes = span.text.bytes().enumerate();
            out.extend(bytes.map(|(at, byte)| Cluster {
                span: index,
                from: at,
                to: at + 1,
                width: 1,
                kind: kind(byte),
            }));
            continue;
        }
        for (from, text) in super::cluster::clusters(&span.text) {
            let width = cluster_width(text);
            let kind = match (text, width) {
                (" ", _) => Kind::Space,
                (_, 2) => Kind::Wide,
                _ => Kind::Word,
            };
            out.push(Cluster { span: index, from, to: from + text.len(), width, kind });
        }
    }
    out
}

/// Where the row that begins at `at` ends, and where the next one begins.
fn row_end(clusters: &[Cluster], at: usize, room: usize, mode: Break) -> (usize, usize) {
    let mut used = 0;
    let mut fitting: Option<(usize, usize)> = None;
    let mut before = Kind::Word;
    let mut index = at;
    while let Some(cluster) = clusters.get(index) {
        let may_break = mode == Break::Words
            && index > at
            && cluster.kind != Kind::Space
            && (before == Kind::Space || cluster.kind == Kind::Wide || before == Kind::Wide);
        if may_break {
            fitting = Some((index, index));
        }
        if used + cluster.width > room && index > at {
            if mode == Break::Words && cluster.kind == Kind::Space {
                // Spaces hang over the edge and are gone.
                let next = index + clusters.iter().skip(index).take_while(|one| one.kind == Kind::Space).count();
                return (without_spaces(clusters, at, index), next);
            }
            let (end, next) = fitting.unwrap_or((index, index));
            let end = if mode == Break::Words { without_spaces(clusters, at, end) } else { end };
            return (end, next);
        }
        used += cluster.width;
        before = cluster.kind;
        index += 1;
    }
    (index, index)
}

fn without_spaces(clusters: &[Cluster], from: usize, to: usize) -> usize {
    let row = clusters.get(from..to).unwrap_or(&[]);
    let spaces = row.iter().rev().take_while(|cluster| cluster.kind == Kind::Space).count();
    // A row of nothing but spaces keeps them: it is an indent.
    if spaces == row.len() { to } else { to - spaces }
}

/// Adjacent clusters of one span become one span again.
fn copy(spans: &[Span], clusters: &[Cluster], out: &mut Vec<Span>) {
    let mut rest = clusters;
    while let Some(first) = rest.first() {
        let run = rest.iter().take_while(|cluster| cluster.span == first.span).count();
        let (these, others) = rest.split_at(run);
        let to = these.last().map_or(first.to, |last| last.to);
        if let Some(span) = spans.get(first.span) {
            let text = span.text.get(first.from..to).unwrap_or("").to_owned();
            out.push(Span { text, ..span.clone() });
        }
        rest = others;
    }
}

/// The text cut to a width, at a word if one ends in its second half, with an
/// ellipsis where something is missing.
pub fn cut(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    if width == 0 {
        return String::new();
    }
    let (mut used, mut end, mut word_end) = (0, 0, None);
    for (at, cluster) in text.grapheme_indices(true) {
        if cluster == " " && used > 0 {
            word_end = Some((at, used));
        }
        used += cluster_width(cluster);
        if used > width - 1 {
            break;
        }
        end = at + cluster.len();
    }
    let end = word_end.filter(|(_, used)| *used * 2 >= width).map_or(end, |(at, _)| at);
    format!("{}…", text.get(..end).unwrap_or("").trim_end())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::row::Ink;
    use super::*;

    fn rows(text: &str, width: usize, mode: Break) -> Vec<String> {
        let mut out = Vec::new();
        wrap(&[Span::new(Ink::Plain, text)], width, mode, &Margin::default(), Shade::None, &mut out);
        out.iter().map(Row::text).collect()
    }

    #[test]
    fn rows_end_between_words() {
        #[rustfmt::skip]
        let cases: &[(&str, &str, usize, &[&str])] = &[
            ("fits",               "one two",        7, &["one two"]),
            ("breaks at a space",  "one two three",  7, &["one two", "three"]),
            ("long word",          "a verylongword", 5, &["a", "veryl", "ongwo", "rd"]),
            ("word fills the row", "abcde fg",       5, &["abcde", "fg"]),
            ("double space",       "ab  cd",         3, &["ab", "cd"]),
            ("indent stays",       "  ab cd",        5, &["  ab", "cd"]),
            ("empty",              "",               5, &[""]),
            ("cjk",                "漢字漢字",         5, &["漢字", "漢字"]),
            ("emoji family",       "👩‍👩‍👧 ab",          3, &["👩‍👩‍👧", "ab"]),
            ("combining marks",    "e\u{301}e\u{301}e\u{301}", 2, &["e\u{301}e\u{301}", "e\u{301}"]),
            ("one column",         "ab 漢",           1, &["a", "b", "漢"]),
            ("tab",                "a\tb",           9, &["a    b"]),
        ];
        for (name, text, width, expected) in cases {
            assert_eq!(&rows(text, *width, Break::Words), expected, "{name}");
        }
    }

    #[test]
    fn a_margin_that_takes_half_the_width_moves_into_the_text() {
        let margin = Margin { first: vec![Span::new(Ink::Muted, "12. ")], rest: vec![Span::new(Ink::Muted, "    ")] };
        let at = |width| {
            let mut out = Vec::new();
            wrap(&[Span::new(Ink::Plain, "ab cd")], width, Break::Words, &margin, Shade::None, &mut out);
            out.iter().map(Row::text).collect::<Vec<_>>()
        };
        assert_eq!(at(8), ["12. ab", "    cd"]);
        assert_eq!(at(3), ["12.", "ab", "cd"]);
    }

    #[test]
    fn a_cut_text_ends_at_a_word() {
        #[rustfmt::skip]
        let cases = [
            ("fits",             "one two",            10, "one two"),
            ("at a word",        "one two three four", 12, "one two…"),
            ("no word near",     "abcdefghijkl",        5, "abcd…"),
            ("one column",       "abc",                 1, "…"),
            ("wide",             "漢字漢字",              5, "漢字…"),
        ];
        for (name, text, width, expected) in cases {
            let got = cut(text, width);
            assert_eq!(got, expected, "{name}");
            assert!(width_of(&got) <= width, "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_letter_is_lost_and_no_row_is_too_wide(text in "[a-z 漢é👩‍💻\u{301}\u{200b}\t]{0,60}", width in 1usize..30) {
            let bare = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            for mode in [Break::Words, Break::Anywhere] {
                let rows = rows(&text, width, mode);
                prop_assert_eq!(bare(&rows.concat()), bare(&text));
                for row in &rows {
                    // A wide letter in one column has nowhere to go.
                    prop_assert!(width_of(row) <= width.max(2), "{:?}", row);
                }
                if mode == Break::Anywhere {
                    prop_assert_eq!(rows.concat(), text.replace('\t', TAB));
                }
            }
        }
    }
}
