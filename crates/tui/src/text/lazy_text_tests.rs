use proptest::prelude::*;

use super::*;

fn text_of(shown: &SectionRows<'_>) -> Vec<String> {
    shown.iter().map(|row| row.text()).collect()
}

/// The rows of all sections in sequence.
fn in_sections(long: &mut LazyText, width: usize) -> Vec<String> {
    (0..long.sections()).flat_map(|section| text_of(&long.section(section, width, BaseStyle::TEXT))).collect()
}

/// Blocks with borders between them, and code longer than a section.
fn blocks() -> String {
    let prose: String = (0..600).map(|at| format!("paragraph {at} with *some* words\n\n")).collect();
    let list: String = (0..300).map(|at| format!("{at}. item with `code`\n\n   and more\n\n")).collect();
    let code: String = (0..900).map(|at| format!("    let a{at} = {at};\n\n")).collect();
    format!("{prose}```rust\n{code}```\nbehind it\n\n{list}{prose}")
}

#[test]
fn t8_sections_show_the_same_rows_as_one_text() {
    let text = blocks();
    for width in [7, 40, 200] {
        let mut long = LazyText::new(&text);
        assert!(long.sections() > 6, "{}", long.sections());
        let mut whole = MarkdownView::new(&text);
        let whole: Vec<String> = whole.rows(width, BaseStyle::TEXT).iter().map(Row::text).collect();
        assert_eq!(in_sections(&mut long, width), whole, "{width}");
        let all: Vec<String> = long.body(width, BaseStyle::TEXT).rows.iter().map(Row::text).collect();
        assert_eq!(all, whole, "{width}");
    }
}

#[test]
fn t8_text_without_block_borders_is_split_without_loss() {
    #[rustfmt::skip]
    let cases = [
        ("lines",          "",            "some words on a line\n"),
        ("one line",       "",            "some words on a line "),
        ("one word",       "",            "nospaces漢"),
        ("code",           "```rust\n",   "let a = 1;\n"),
        ("a line of code", "```\n",       "let a = 1; "),
        ("code of an item", "- x\n  ~~~\n", "  let a = 1;\n"),
    ];
    let bare = |text: &str| text.chars().filter(|one| one.is_alphanumeric()).collect::<String>();
    for (name, start, piece) in cases {
        let text = format!("{start}{}", piece.repeat(5_000));
        let mut long = LazyText::new(&text);
        assert!(long.sections() >= text.len() / HARD_LIMIT, "{name}: {}", long.sections());
        assert_eq!(long.source(), text, "{name}");
        assert!(long.equals(&text) && !long.equals(&format!("{text}x")) && !long.equals("x"), "{name}");
        assert_eq!(bare(&in_sections(&mut long, 40).concat()), bare(&text), "{name}");
    }
}

#[test]
fn finished_sections_keep_their_text_in_few_buffers() {
    let (mut long, line) = (LazyText::default(), "some words on a line of a long text\n");
    (0..40_000).for_each(|_| long.push(line));
    let ends_where = |section: &Section| section.doc.source().as_bytes().as_ptr_range().end;
    let starts_where = |section: &Section| section.doc.source().as_bytes().as_ptr_range().start;
    let is_new_buffer = |pair: &&[Section]| ends_where(&pair[0]) != starts_where(&pair[1]);
    let n_buffers = 1 + long.done.windows(2).filter(is_new_buffer).count();
    assert!(long.done.len() > 80 && n_buffers < 30, "{n_buffers} buffers of {} sections", long.done.len());
    assert_eq!(long.source(), line.repeat(40_000));
}

#[test]
fn t8_whether_a_text_is_blank_follows_from_its_pieces() {
    #[rustfmt::skip]
    let cases: [(&str, &[&str], bool); 6] = [
        ("nothing",            &[],                   true),
        ("lines",              &["\n", "\n\n", "  "], true),
        ("spaces of Unicode",  &["\u{2003}\n", "\t"], true),
        ("text at the start",  &["a", "\n", "\n"],    false),
        ("text at the end",    &["\n", "\n", "a"],    false),
        ("only control codes", &["\u{1b}[1m", "\n"],  true),
    ];
    for (name, pieces, expected) in cases {
        let mut long = LazyText::default();
        pieces.iter().for_each(|piece| long.push(piece));
        assert_eq!(long.is_blank(), expected, "{name}");
        let mut whole = LazyText::new(&pieces.concat());
        assert_eq!(whole.is_blank(), expected, "{name}: complete");
        whole.sections();
        assert_eq!(whole.is_blank(), expected, "{name}: split");
        whole.push("a");
        assert!(!whole.is_blank(), "{name}: more text");
    }
    // If this read the text each time, it would not end within an hour.
    let long = LazyText::new(&"\n".repeat(4_000_000));
    assert!((0..1_000_000).all(|_| std::hint::black_box(&long).is_blank()));
}

#[test]
fn t8_the_tail_lays_out_only_the_end() {
    let mut long = LazyText::new(&blocks());
    let all = in_sections(&mut long, 40);
    long.forget_rows();
    let laid = |long: &LazyText| long.all_sections().filter(|section| section.doc.has_rows()).count();
    for most in [500, 1, 8] {
        let tail: Vec<String> = long.tail(most, 40, BaseStyle::TEXT).iter().map(Row::text).collect();
        assert_eq!(tail, all.get(all.len() - most..).unwrap_or(&[]), "{most}");
    }
    assert!(laid(&long) <= 2, "{}", laid(&long));
    assert_eq!(LazyText::new("one\n\ntwo").tail(8, 40, BaseStyle::TEXT).len(), 3);
}

#[test]
fn t8_code_keeps_its_language_across_sections() {
    let text = format!("```rust\n{}```\n", "let a = 1;\n".repeat(4_000));
    let mut long = LazyText::new(&text);
    let sections = long.sections();
    assert!(sections > 2, "{sections}");
    // On a narrow screen the language takes several rows.
    for width in [2, 40] {
        let said: Vec<String> = in_sections(&mut long, width).into_iter().filter(|row| row.contains('r')).collect();
        assert_eq!(said.len(), 1, "{width}: {said:?}");
    }
    let mut id = HighlightId::default();
    let jobs: Vec<HighlightJob> = std::iter::from_fn(|| long.next_job(&mut id)).collect();
    assert_eq!(jobs.len(), sections);
    assert!(jobs.iter().all(|job| job.language == "rust"));
    let highlighter = crate::highlighter::Highlighter::new();
    for job in jobs {
        assert!(long.apply_highlight(&mut highlighter.highlight(job)));
    }
    let is_highlighted = |row: &Row| row.spans.iter().any(|span| matches!(span.role, crate::text::TextRole::Token(..)));
    for section in 0..sections {
        let shown = long.section(section, 40, BaseStyle::TEXT);
        assert!(shown.iter().any(|row| is_highlighted(&row)), "{section}");
    }
    let firsts: Vec<usize> = {
        long.body(40, BaseStyle::TEXT);
        long.all.as_ref().unwrap().starts.clone()
    };
    let all = long.body(40, BaseStyle::TEXT);
    for first in firsts {
        assert!((first..first + 3).filter_map(|index| all.row(index)).any(|row| is_highlighted(&row)), "{first}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// A view at a row of a section stays there while text arrives.
    #[test]
    fn t7_sections_do_not_depend_on_chunking(cuts in prop::collection::vec(0usize..200_000, 0..200)) {
        let endless = "words and 漢字 without an end ".repeat(1_000);
        let text = format!("{}{endless}\n{}\n{}", blocks(), "nospaces漢".repeat(3_000), "line\n".repeat(5_000));
        let mut cuts: Vec<usize> = cuts.into_iter().map(|at| char_floor(&text, at)).collect();
        cuts.sort_unstable();
        cuts.push(text.len());
        let (mut long, mut from) = (LazyText::default(), 0);
        for at in cuts {
            long.push(text.get(from..at).unwrap());
            from = at;
        }
        let mut whole = LazyText::new(&text);
        prop_assert!(whole.equals(&text));
        prop_assert_eq!(whole.sections(), long.sections());
        let sections = |long: &LazyText| long.all_sections().map(|one| one.doc.source().len()).collect::<Vec<_>>();
        prop_assert_eq!(sections(&long), sections(&whole));
        prop_assert!(long.equals(&text));
    }
}
