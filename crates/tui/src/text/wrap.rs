//! Wraps styled text to a width. Widths are measured in grapheme clusters, so that an emoji of five
//! code points takes two columns.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::row::{Row, RowBackground, RowStart, Span};

/// What a tab is replaced by.
pub const TAB: &str = "    ";

/// Where a row may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// Between words; the spaces at the break are dropped.
    Words,
    /// Anywhere; every space is kept.
    Anywhere,
}

/// The spans before the first row, and before the others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Margin {
    pub first: Vec<Span>,
    pub rest: Vec<Span>,
}

pub fn width_of(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    super::grapheme::graphemes(text).map(|(_, grapheme)| grapheme_width(grapheme)).sum()
}

/// At most two columns, whatever the sum of its code points, because that is how terminals draw it.
pub fn grapheme_width(grapheme: &str) -> usize {
    if let [b' '..=b'~'] = grapheme.as_bytes() {
        return 1;
    }
    UnicodeWidthStr::width(grapheme).min(2)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GraphemeKind {
    Space,
    /// Two columns wide; rows may break before and after it.
    Wide,
    Word,
}

/// Whether a row may begin or end at a sign of punctuation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attachment {
    Free,
    /// An opening bracket, which belongs to what follows.
    ToNext,
    /// A closing bracket or the end of a sentence, which belongs to what stands before.
    ToPrevious,
}

impl Attachment {
    fn of(letter: char) -> Attachment {
        match letter {
            '(' | '[' | '（' | '「' | '『' | '【' | '《' => Attachment::ToNext,
            ')' | ']' | '.' | ',' | '!' | '?' | '）' | '」' | '』' | '】' | '》' | '，' | '。' | '、' | '！' | '？'
            | '；' | '：' => Attachment::ToPrevious,
            _ => Attachment::Free,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Grapheme {
    span: usize,
    from: usize,
    to: usize,
    width: usize,
    kind: GraphemeKind,
    attachment: Attachment,
}

/// Wraps one line of text into rows. The line must not contain line ends. An empty line gives one
/// row.
pub fn wrap(spans: &[Span], width: usize, mode: Break, margin: &Margin, background: RowBackground, out: &mut Vec<Row>) {
    let width = width.max(1);
    let margin_width = |spans: &[Span]| spans.iter().map(|span| width_of(&span.text)).sum::<usize>();
    let (first, rest) = (margin_width(&margin.first), margin_width(&margin.rest));
    if first.max(rest) > width / 2 {
        // Too narrow to indent. The first margin may hold a list number, so it becomes part of the
        // text.
        let mut all = margin.first.clone();
        all.extend_from_slice(spans);
        return wrap(&all, width, mode, &Margin::default(), background, out);
    }
    let spans = without_tabs(spans);
    let graphemes = graphemes(&spans);
    let mut at = 0;
    let mut is_first = true;
    let mut start = RowStart::NewLine;
    loop {
        let (lead, room) = if is_first { (&margin.first, width - first) } else { (&margin.rest, width - rest) };
        let (end, next) = row_end(&graphemes, at, room, mode);
        let mut row = Row { start, ..Row::new(lead.clone()).with_background(background).with_margin(lead.len()) };
        copy(&spans, graphemes.get(at..end).unwrap_or(&[]), &mut row.spans);
        out.push(row);
        start = if next > end { RowStart::AfterSpaces } else { RowStart::InsideWord };
        at = next;
        is_first = false;
        if at >= graphemes.len() {
            return;
        }
    }
}

fn without_tabs(spans: &[Span]) -> Vec<Span> {
    let expand = |span: &Span| Span { text: span.text.replace('\t', TAB), ..span.clone() };
    spans.iter().map(expand).collect()
}

fn graphemes(spans: &[Span]) -> Vec<Grapheme> {
    let mut out = Vec::with_capacity(spans.iter().map(|span| span.text.len()).sum());
    for (index, span) in spans.iter().enumerate() {
        if span.text.is_ascii() {
            let kind = |byte: u8| if byte == b' ' { GraphemeKind::Space } else { GraphemeKind::Word };
            let bytes = span.text.bytes().enumerate();
            out.extend(bytes.map(|(at, byte)| Grapheme {
                span: index,
                from: at,
                to: at + 1,
                width: 1,
                kind: kind(byte),
                attachment: Attachment::of(char::from(byte)),
            }));
            continue;
        }
        for (from, text) in super::grapheme::graphemes(&span.text) {
            let width = grapheme_width(text);
            let kind = match (text, width) {
                (" ", _) => GraphemeKind::Space,
                (_, 2) => GraphemeKind::Wide,
                _ => GraphemeKind::Word,
            };
            let attachment = text.chars().next().map_or(Attachment::Free, Attachment::of);
            out.push(Grapheme { span: index, from, to: from + text.len(), width, kind, attachment });
        }
    }
    out
}

/// Where the row that begins at `at` ends, and where the next one begins.
fn row_end(graphemes: &[Grapheme], at: usize, room: usize, mode: Break) -> (usize, usize) {
    let mut used = 0;
    let mut fitting: Option<(usize, usize)> = None;
    let mut before: Option<&Grapheme> = None;
    let mut index = at;
    while let Some(grapheme) = graphemes.get(index) {
        if mode == Break::Words && before.is_some_and(|before| may_break(before, grapheme)) {
            fitting = Some((index, index));
        }
        if used + grapheme.width > room && index > at {
            if mode == Break::Words && grapheme.kind == GraphemeKind::Space {
                // Spaces beyond the edge are dropped.
                let next =
                    index + graphemes.iter().skip(index).take_while(|one| one.kind == GraphemeKind::Space).count();
                return (without_spaces(graphemes, at, index), next);
            }
            let (end, next) = fitting.unwrap_or((index, index));
            let end = if mode == Break::Words { without_spaces(graphemes, at, end) } else { end };
            return (end, next);
        }
        used += grapheme.width;
        before = Some(grapheme);
        index += 1;
    }
    (index, index)
}

/// Whether a row may end between these two: after spaces, and next to wide letters if no punctuation belongs there.
fn may_break(before: &Grapheme, after: &Grapheme) -> bool {
    match (before.kind, after.kind) {
        (_, GraphemeKind::Space) | (GraphemeKind::Word, GraphemeKind::Word) => false,
        (GraphemeKind::Space, GraphemeKind::Wide | GraphemeKind::Word) => true,
        (GraphemeKind::Wide, GraphemeKind::Wide | GraphemeKind::Word) | (GraphemeKind::Word, GraphemeKind::Wide) => {
            before.attachment != Attachment::ToNext && after.attachment != Attachment::ToPrevious
        }
    }
}

fn without_spaces(graphemes: &[Grapheme], from: usize, to: usize) -> usize {
    let row = graphemes.get(from..to).unwrap_or(&[]);
    let spaces = row.iter().rev().take_while(|grapheme| grapheme.kind == GraphemeKind::Space).count();
    // A row of only spaces keeps them: it is an indent.
    if spaces == row.len() { to } else { to - spaces }
}

/// Joins adjacent graphemes of one span.
fn copy(spans: &[Span], graphemes: &[Grapheme], out: &mut Vec<Span>) {
    let mut rest = graphemes;
    while let Some(first) = rest.first() {
        let run = rest.iter().take_while(|grapheme| grapheme.span == first.span).count();
        let (these, others) = rest.split_at(run);
        let to = these.last().map_or(first.to, |last| last.to);
        if let Some(span) = spans.get(first.span) {
            let text = span.text.get(first.from..to).unwrap_or("").to_owned();
            out.push(Span { text, ..span.clone() });
        }
        rest = others;
    }
}

/// The first of these texts that fits, or as much as fits of the last one.
pub fn first_that_fits(texts: &[String], width: usize) -> String {
    let fitting = texts.iter().find(|text| width_of(text) <= width).or(texts.last());
    fitting.map(|text| ellipsize(text, width)).unwrap_or_default()
}

/// Shortens a text to a width with an ellipsis, at a word end if there is one in the second half.
pub fn ellipsize(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    if width == 0 {
        return String::new();
    }
    let (mut used, mut end, mut word_end) = (0, 0, None);
    for (at, grapheme) in text.grapheme_indices(true) {
        if grapheme == " " && used > 0 {
            word_end = Some((at, used));
        }
        used += grapheme_width(grapheme);
        if used > width - 1 {
            break;
        }
        end = at + grapheme.len();
    }
    let end = word_end.filter(|(_, used)| *used * 2 >= width).map_or(end, |(at, _)| at);
    format!("{}…", text.get(..end).unwrap_or("").trim_end())
}

/// Shortens a path to a width: folders in the middle go first, and the file name last.
pub fn ellipsize_path(path: &str, width: usize) -> String {
    let name_at = path.trim_end_matches('/').rfind('/');
    let Some((folders, name)) = name_at.and_then(|at| path.split_at_checked(at)) else { return ellipsize(path, width) };
    if width_of(path) <= width {
        return path.to_owned();
    }
    // With the slash before it, and with an ellipsis for the folders that go.
    let room = width.saturating_sub(width_of(name) + 1);
    if width_of(name) + 1 > width {
        return ellipsize(name.trim_start_matches('/'), width);
    }
    let ends = folders.match_indices('/').map(|(at, slash)| at + slash.len());
    let kept = ends.filter_map(|end| folders.get(..end)).take_while(|kept| width_of(kept) <= room).last();
    format!("{}…{name}", kept.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::row::TextRole;
    use super::*;

    fn rows(text: &str, width: usize, mode: Break) -> Vec<String> {
        let mut out = Vec::new();
        wrap(&[Span::new(TextRole::Plain, text)], width, mode, &Margin::default(), RowBackground::None, &mut out);
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
            ("sign after cjk",       "你好世好，世界",   8, &["你好世", "好，世界"]),
            ("bracket before cjk",   "no model (模拟 🎭).", 10, &["no model", "(模拟 🎭)."]),
            ("signs after an emoji", "ab 模拟 🎭).",  9, &["ab 模拟", "🎭)."]),
            ("wide brackets",        "你「好」世界",     4, &["你", "「好", "」世", "界"]),
            ("bracket and a space",  "ab ) 世",        4, &["ab )", "世"]),
            ("only signs",           "，，，",          4, &["，，", "，"]),
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
    fn a_margin_of_half_the_width_becomes_text() {
        let margin =
            Margin { first: vec![Span::new(TextRole::Muted, "12. ")], rest: vec![Span::new(TextRole::Muted, "    ")] };
        let at = |width| {
            let mut out = Vec::new();
            wrap(&[Span::new(TextRole::Plain, "ab cd")], width, Break::Words, &margin, RowBackground::None, &mut out);
            out.iter().map(Row::text).collect::<Vec<_>>()
        };
        assert_eq!(at(8), ["12. ab", "    cd"]);
        assert_eq!(at(3), ["12.", "ab", "cd"]);
    }

    #[test]
    fn an_ellipsized_text_ends_at_a_word() {
        #[rustfmt::skip]
        let cases = [
            ("fits",             "one two",            10, "one two"),
            ("at a word",        "one two three four", 12, "one two…"),
            ("no word near",     "abcdefghijkl",        5, "abcd…"),
            ("one column",       "abc",                 1, "…"),
            ("wide",             "漢字漢字",              5, "漢字…"),
        ];
        for (name, text, width, expected) in cases {
            let got = ellipsize(text, width);
            assert_eq!(got, expected, "{name}");
            assert!(width_of(&got) <= width, "{name}");
        }
    }

    #[test]
    fn t17_a_shortened_path_keeps_its_file_name() {
        #[rustfmt::skip]
        let cases = [
            ("fits",                   "src/tool.rs",                        11, "src/tool.rs"),
            ("one folder goes",        "crates/tui/src/tool.rs",             20, "crates/tui/…/tool.rs"),
            ("more folders go",        "crates/tui/src/tool.rs",             18, "crates/…/tool.rs"),
            ("all folders go",         "crates/tui/src/tool.rs",             10, "…/tool.rs"),
            ("an absolute path",       "/home/me/a/long/way/tool.rs",        18, "/home/me/…/tool.rs"),
            ("only the name fits",     "crates/tui/src/tool.rs",              7, "tool.rs"),
            ("not even the name",      "crates/tui/src/tool.rs",              5, "tool…"),
            ("a name without folders", "tool_with_a_long_name.rs",           10, "tool_with…"),
            ("a folder",               "crates/tui/src/",                    13, "crates/…/src/"),
            ("wide letters",           "漢字/漢字漢字/b.rs",                     12, "漢字/…/b.rs"),
        ];
        for (name, path, width, expected) in cases {
            let got = ellipsize_path(path, width);
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
                    // A wide character cannot fit into one column.
                    prop_assert!(width_of(row) <= width.max(2), "{:?}", row);
                }
                if mode == Break::Anywhere {
                    prop_assert_eq!(rows.concat(), text.replace('\t', TAB));
                }
            }
        }
    }
}
