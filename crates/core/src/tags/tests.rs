use super::*;

fn pair(id: &str, open: &str, close: &str) -> TagPair {
    TagPair { id: id.into(), open: vec![open.into()], close: vec![close.into()], suffixed: false, tail: None }
}

fn think() -> TagRules {
    TagRules {
        pairs: vec![pair("think", "<think>", "</think>")],
        start: TagStart::Explicit,
        reach: TagReach::Leading,
        close_at: Vec::new(),
        stray_close: StrayClose::Keep,
    }
}

/// `[` and `]` mark the start and end of thinking, `^` and `v` a refile.
fn split(rules: &TagRules, chunks: &[&str]) -> String {
    let mut out = String::new();
    let mut take = |piece: TagPiece<'_>| match piece {
        TagPiece::Open { .. } => out.push('['),
        TagPiece::Thinking(text) | TagPiece::Text(text) => out.push_str(text),
        TagPiece::Close => out.push(']'),
        TagPiece::Refile(ProseKind::Thinking) => out.push('^'),
        TagPiece::Refile(ProseKind::Text) => out.push('v'),
    };
    let mut parser = TagParser::new(rules.clone());
    for chunk in chunks {
        parser.push(chunk, &mut take);
    }
    parser.finish(&mut take);
    out
}

/// The whole text, then split at every position, then character by character.
#[track_caller]
fn check(rules: &TagRules, name: &str, text: &str, expected: &str) {
    assert_eq!(split(rules, &[text]), expected, "{name}");
    for (at, _) in text.char_indices() {
        let (head, tail) = text.split_at(at);
        assert_eq!(split(rules, &[head, tail]), expected, "{name}, cut at {at}");
    }
    let characters: Vec<String> = text.chars().map(String::from).collect();
    let characters: Vec<&str> = characters.iter().map(String::as_str).collect();
    assert_eq!(split(rules, &characters), expected, "{name}, letter by letter");
}

#[test]
fn d7_a_leading_tag_splits_text_from_thinking() {
    #[rustfmt::skip]
    let cases = [
        ("no tag",                  "plain",                           "plain"),
        ("one block",               "<think>why</think>so",            "[why]so"),
        ("nothing is trimmed",      "<think>\nwhy\n</think>\n\nso",    "[\nwhy\n]\n\nso"),
        ("white space before",      " \n<think>why</think>so",         " \n[why]so"),
        ("never closed",            "<think>why",                      "[why]"),
        ("ends on half a tag",      "<think>why</thi",                 "[why</thi]"),
        ("looks like a tag",        "<thin line",                      "<thin line"),
        ("half a tag is all",       "<thi",                            "<thi"),
        ("lone close is literal",   "so</think>it",                    "so</think>it"),
        ("leading close too",       "</think>it",                      "</think>it"),
        ("inner open is a thought", "<think>a<think>b</think>c</think>", "[a<think>b]c</think>"),
        ("first close closes",      "<think>a</think>b</think>c",      "[a]b</think>c"),
        ("only the first counts",   "<think>a</think>b<think>c</think>", "[a]b<think>c</think>"),
        ("later is literal",        "so <think>a</think>",             "so <think>a</think>"),
        ("empty thought",           "<think></think>so",               "[]so"),
        ("letters in between",      "<think>ä</think>ö",               "[ä]ö"),
        ("almost closed",           "<think>a</thinkx>b</think>c",     "[a</thinkx>b]c"),
        ("angle brackets",          "<think>a<<b</think>c",            "[a<<b]c"),
        ("nothing",                 "",                                ""),
    ];
    for (name, text, expected) in cases {
        check(&think(), name, text, expected);
    }
}

#[test]
fn d7_seed_000_tags_anywhere_and_again() {
    let rules = TagRules { reach: TagReach::Anywhere, ..think() };
    #[rustfmt::skip]
    let cases = [
        ("twice",              "<think>a</think>b<think>c</think>d", "[a]b[c]d"),
        ("in the middle",      "so <think>a</think>b",               "so [a]b"),
        ("lone close",         "so</think>b",                        "so</think>b"),
        ("half a tag at last", "so <thin",                           "so <thin"),
    ];
    for (name, text, expected) in cases {
        check(&rules, name, text, expected);
    }
}

#[test]
fn d8_tags_in_code_are_literal() {
    let rules = TagRules { reach: TagReach::Anywhere, ..think() };
    #[rustfmt::skip]
    let cases = [
        ("inline",            "use `<think>` here",                  "use `<think>` here"),
        ("inline, then real", "`<think>` <think>a</think>",          "`<think>` [a]"),
        ("double backticks",  "`` `<think>` ``<think>a</think>",     "`` `<think>` ``[a]"),
        ("fence",             "x\n```xml\n<think>a</think>\n```\n<think>b</think>", "x\n```xml\n<think>a</think>\n```\n[b]"),
        ("tilde fence",       "~~~\n<think>\n~~~\n<think>b</think>", "~~~\n<think>\n~~~\n[b]"),
        ("longer fence",      "````\n```\n<think>\n````\n<think>b",  "````\n```\n<think>\n````\n[b]"),
        ("an apostrophe-like backtick ends with its line", "a ` b\n<think>c</think>", "a ` b\n[c]"),
    ];
    for (name, text, expected) in cases {
        check(&rules, name, text, expected);
    }
}

#[test]
fn d8_every_family_is_data() {
    #[rustfmt::skip]
    let cases = [
        ("[THINK]", "[/THINK]"), ("◁think▷", "◁/think▷"), ("<seed:think>", "</seed:think>"), ("<mm:think>", "</mm:think>"),
        ("<|open|>think<|sep|>", "<|close|>think<|sep|>"), ("<|channel|>analysis<|message|>", "<|end|>"),
        ("<|channel>thought", "<channel|>"), (" to=self<|message|>", "<|eom|>"),
    ];
    for (open, close) in cases {
        let rules = TagRules { pairs: vec![pair("x", open, close)], ..think() };
        check(&rules, open, &format!("{open}why{close}so"), "[why]so");
    }
}

#[test]
fn tags_with_a_word_in_them_close_with_the_same_word() {
    let mut hunyuan = pair("hunyuan", "<think>", "</think>");
    hunyuan.suffixed = true;
    let rules = TagRules { pairs: vec![hunyuan], ..think() };
    check(&rules, "a word", "<think:a1>why</think>still</think:a1>so", "[why</think>still]so");
    check(&rules, "no word", "<think>why</think>so", "[why]so");
    check(&rules, "not a word", "<think why>so", "<think why>so");
}

#[test]
fn tag_variants_and_a_marker_after_the_answer() {
    let granite = TagPair {
        id: "granite".into(),
        open: vec!["Here is my thought process:".into(), "Here's my thought process:".into()],
        close: vec!["Here is my response:".into(), "Here's my response:".into()],
        suffixed: false,
        tail: None,
    };
    let rules = TagRules { pairs: vec![granite], ..think() };
    check(&rules, "granite", "Here's my thought process:a\nHere is my response:b", "[a\n]b");
    check(&rules, "not granite", "Here is my answer", "Here is my answer");
    let answer = TagPair { tail: Some("\n</answer>".into()), ..pair("a13b", "<think>\n", "\n</think>\n<answer>\n") };
    let rules = TagRules { pairs: vec![answer, pair("think", "<think>", "</think>")], ..think() };
    check(&rules, "the longer family wins", "<think>\nwhy\n</think>\n<answer>\nso\n</answer>", "[why]so");
    check(&rules, "the shorter one is still there", "<think>why</think>so", "[why]so");
}

#[test]
fn d9_preopened_text_is_thinking_unless_the_tag_never_closes() {
    let rules = TagRules { start: TagStart::Prefilled, ..think() };
    #[rustfmt::skip]
    let cases = [
        ("closed",             "why</think>so",               "why]so"),
        ("tag comes anyway",   "<think>why</think>so",        "[why]so"),
        ("tag, never closed",  "<think>why",                  "[why]"),
        ("never closed",       "the answer",                  "the answerv"),
        ("half a close",       "the answer</thi",             "the answer</thiv"),
    ];
    for (name, text, expected) in cases {
        check(&rules, name, text, expected);
    }
}

#[test]
fn d9_a_lone_close_refiles_what_came_before_where_the_dialect_says_auto() {
    let rules = TagRules { start: TagStart::Auto, ..think() };
    #[rustfmt::skip]
    let cases = [
        ("refiled",        "why</think>so",                 "why^]so"),
        ("explicit",       "<think>why</think>so",          "[why]so"),
        ("plain",          "so",                            "so"),
        ("in code",        "`</think>` so",                 "`</think>` so"),
        ("only once",      "a</think>b</think>c",           "a^]b</think>c"),
    ];
    for (name, text, expected) in cases {
        check(&rules, name, text, expected);
    }
}

#[test]
fn a_tool_marker_ends_thinking_where_the_dialect_says_so() {
    let rules = TagRules { close_at: vec!["<tool_call>".into()], ..think() };
    check(&rules, "marker", "<think>why<tool_call>{}</tool_call>", "[why]<tool_call>{}</tool_call>");
    check(&rules, "close", "<think>why</think><tool_call>", "[why]<tool_call>");
    check(&think(), "off by default", "<think>why<tool_call>{}", "[why<tool_call>{}]");
}

#[test]
fn a_stray_close_is_swallowed_where_the_dialect_says_so() {
    let rules = TagRules { stray_close: StrayClose::Swallow, ..think() };
    check(&rules, "right behind", "<think>why</think></think>so", "[why]so");
    check(&rules, "behind white space", "<think>why</think>\n</think>\nso", "[why]\n\nso");
    check(&rules, "later", "<think>why</think>so</think>", "[why]so</think>");
}

#[test]
fn tags_are_literal_if_thinking_has_its_own_field() {
    let mut out = String::new();
    let mut take = |piece: TagPiece<'_>| match piece {
        TagPiece::Thinking(text) | TagPiece::Text(text) => out.push_str(text),
        TagPiece::Open { .. } => out.push('['),
        TagPiece::Close | TagPiece::Refile(_) => out.push(']'),
    };
    let mut parser = TagParser::new(think());
    parser.push("<thi", &mut take);
    parser.disable(&mut take);
    parser.push("nk>a", &mut take);
    parser.finish(&mut take);
    assert_eq!(out, "<think>a");
}

#[test]
fn d15_markers_are_seen_over_any_boundary() {
    let markers = ["<tool_call>".to_owned(), "<|tool_calls_section_begin|>".to_owned()];
    let text = "a <tool <tool_call> b";
    for at in 0..text.len() {
        let mut watch = MarkerWatch::new(&markers);
        let (head, tail) = text.split_at(at);
        let seen = watch.push(head).is_some() || watch.push(tail).is_some();
        assert!(seen, "cut at {at}");
    }
    assert_eq!(MarkerWatch::new(&markers).push("a < b"), None);
}
