//! D7 to D9: thinking in tags inside the content.

use aside_core::dialect::{DialectSource, Dialects, Rules};
use aside_core::protocol::Protocol;
use aside_core::tags::{StrayClose, TagReach, TagStart};

use super::{
    ReplyReader, RowResult, chat, chat_whole, cohere_whole, converse_whole, drawn, every, gemini_whole, messages_whole,
    ollama, ollama_whole, response_whole, same, sse,
};

/// A chat and an Ollama stream with the content in these pieces.
fn content(protocol: Protocol, pieces: &[&str]) -> Vec<u8> {
    let deltas: Vec<String> =
        pieces.iter().map(|piece| serde_json::json!({"role": "assistant", "content": piece}).to_string()).collect();
    let deltas: Vec<&str> = deltas.iter().map(String::as_str).collect();
    if protocol == Protocol::Ollama { ollama(&deltas) } else { chat(&deltas) }
}

fn content_whole(protocol: Protocol, text: &str) -> Vec<u8> {
    let message = serde_json::json!({"role": "assistant", "content": text}).to_string();
    if protocol == Protocol::Ollama { ollama_whole(&message) } else { chat_whole(&message) }
}

/// Whole, in one delta, split in two at every position, and letter by letter.
fn check_text(reader: &ReplyReader, name: &str, text: &str, expected: &str) -> RowResult {
    let cut = |pieces: &[&str]| {
        let got = drawn(&reader.reply(&content(reader.protocol, pieces)));
        same(&format!("{name} ({}, {pieces:?})", reader.protocol), got, expected.to_owned())
    };
    for (at, _) in text.char_indices() {
        cut(&[&text[..at], &text[at..]])?;
    }
    let letters: Vec<String> = text.chars().map(String::from).collect();
    cut(&letters.iter().map(String::as_str).collect::<Vec<_>>())?;
    reader.check_both(name, &content(reader.protocol, &[text]), &content_whole(reader.protocol, text), expected)
}

fn on_both(change: impl Fn(&mut Rules)) -> [ReplyReader; 2] {
    [Protocol::OpenaiChat, Protocol::Ollama].map(|protocol| ReplyReader::generic(protocol).with(&change))
}

#[test]
fn d7_a_leading_tag_in_a_generic_dialect() {
    #[rustfmt::skip]
    let cases = [
        ("opens and closes",                    "<think>a</think>A",                    "think <think> 'a' | text 'A'"),
        ("nothing is trimmed",                  "<think>\n a \n</think>\n\n A ",        "think <think> '⏎ a ⏎' | text '⏎⏎ A '"),
        ("white space before it stays text",    " \n<think>a</think>A",                 "text ' ⏎' | think <think> 'a' | text 'A'"),
        ("the first close tag closes",          "<think>a</think>A</think>B",           "think <think> 'a' | text 'A</think>B'"),
        ("an inner open tag is a thought, no depth", "<think>a<think>b</think>A</think>", "think <think> 'a<think>b' | text 'A</think>'"),
        ("never closed: the rest is thinking",  "<think>a\nb",                          "think <think> 'a⏎b'"),
        ("half a close tag at the end",         "<think>a</thi",                        "think <think> 'a</thi'"),
        ("half an open tag at the end",         "<thi",                                 "text '<thi'"),
        ("refuted",                             "<thinly sliced",                       "text '<thinly sliced'"),
        ("refuted inside",                      "<think>a</thinking>b</think>A",        "think <think> 'a</thinking>b' | text 'A'"),
        ("a close tag without an opener",       "A</think>B",                           "text 'A</think>B'"),
        ("a close tag first",                   "</think>B",                            "text '</think>B'"),
        ("not leading: literal",                "A <think>a</think>B",                  "text 'A <think>a</think>B'"),
        ("a second tag: literal",               "<think>a</think>A<think>b</think>B",   "think <think> 'a' | text 'A<think>b</think>B'"),
        ("a second tag at once: literal",       "<think>a</think><think>b</think>B",    "think <think> 'a' | text '<think>b</think>B'"),
        ("a stray close tag is not swallowed",  "<think>a</think></think>A",            "think <think> 'a' | text '</think>A'"),
        ("a tool marker does not close",        "<think>a<tool_call>b</think>A",        "think <think> 'a<tool_call>b' | text 'A'"),
        ("other names are literal",             "<thinking>a</thinking>A",              "text '<thinking>a</thinking>A'"),
        ("other letters are literal",           "<Think>a</Think>A",                    "text '<Think>a</Think>A'"),
        ("letters of more than one byte",       "<think>ä→</think>ö",                   "think <think> 'ä→' | text 'ö'"),
        ("a thought and nothing else",          "<think>a</think>",                     "think <think> 'a'"),
    ];
    every(cases, |(name, text, expected)| {
        on_both(|_| ()).iter().try_for_each(|reader| check_text(reader, name, text, expected))
    });
}

#[test]
fn d7_tags_are_literal_on_the_other_protocols() {
    use Protocol::{Anthropic, Bedrock, Cohere, Gemini, OpenaiResponses};
    const TEXT: &str = "<think>a</think>A";
    #[rustfmt::skip]
    let cases = [
        (Anthropic,       messages_whole(&format!(r#"[{{"type":"text","text":"{TEXT}"}}]"#))),
        (OpenaiResponses, response_whole(&format!(r#"[{{"type":"message","content":[{{"type":"output_text","text":"{TEXT}"}}]}}]"#))),
        (Gemini,          gemini_whole(&format!(r#"[{{"text":"{TEXT}"}}]"#))),
        (Bedrock,         converse_whole(&format!(r#"[{{"text":"{TEXT}"}}]"#))),
        (Cohere,          cohere_whole(&format!(r#"{{"content":[{{"type":"text","text":"{TEXT}"}}]}}"#))),
    ];
    every(cases, |(protocol, bytes)| {
        ReplyReader::generic(protocol).check("literal", &bytes, &format!("text '{TEXT}'"))
    });
}

#[test]
fn d7_switches_of_a_dialect() {
    let anywhere = on_both(|rules| rules.read.tags.reach = TagReach::Anywhere);
    let swallow = on_both(|rules| rules.read.tags.stray_close = StrayClose::Swallow);
    let marker = on_both(|rules| rules.read.tags.close_at = vec!["<tool_call>".to_owned()]);
    #[rustfmt::skip]
    let cases = [
        ("anywhere",               &anywhere, "A <think>a</think>B",                "text 'A ' | think <think> 'a' | text 'B'"),
        ("repeated",               &anywhere, "<think>a</think>A<think>b</think>B", "think <think> 'a' | text 'A' | think <think> 'b' | text 'B'"),
        ("a lone close tag stays", &anywhere, "A</think>B",                         "text 'A</think>B'"),
        ("the last never closes",  &anywhere, "A<think>b",                          "text 'A' | think <think> 'b'"),
        ("a stray close tag goes", &swallow,  "<think>a</think></think>A",          "think <think> 'a' | text 'A'"),
        ("only right behind",      &swallow,  "<think>a</think>A</think>B",         "think <think> 'a' | text 'A</think>B'"),
        ("a marker closes",        &marker,   "<think>a<tool_call>b",               "think <think> 'a' | text '<tool_call>b'"),
        ("half a marker",          &marker,   "<think>a<tool_c</think>b",           "think <think> 'a<tool_c' | text 'b'"),
    ];
    every(cases, |(name, readers, text, expected)| {
        readers.iter().try_for_each(|reader| check_text(reader, name, text, expected))
    });
}

#[test]
fn d7_a_held_back_tag_is_released_when_something_else_comes() {
    const CALL: &str = r#"{"tool_calls":[{"index":0,"id":"c1","function":{"name":"get","arguments":"{}"}}]}"#;
    #[rustfmt::skip]
    let cases: &[(&str, &[&str], &str)] = &[
        ("a call refutes an open tag",   &[r#"{"content":"<thi"}"#, CALL],                       "text '<thi' | call get(c1) {}"),
        ("a call refutes a close tag",   &[r#"{"content":"<think>a</thi"}"#, CALL],              "think <think> 'a</thi' | call get(c1) {}"),
        ("a field refutes an open tag",  &[r#"{"content":"<thi"}"#, r#"{"reasoning_content":"a"}"#], "text '<thi' | think reasoning_content 'a'"),
    ];
    every(cases, |(name, deltas, expected)| ReplyReader::chat().check(name, &chat(deltas), expected));
}

#[test]
fn d7_an_unclosed_tag_is_closed_properly() {
    for protocol in [Protocol::OpenaiChat, Protocol::Ollama] {
        let reader = ReplyReader::generic(protocol);
        for bytes in [content(protocol, &["<think>a"]), content_whole(protocol, "<think>a")] {
            let events = reader.events(&bytes);
            let closed = events.iter().filter(|event| event.starts_with("Closed")).count();
            let ended = events.iter().position(|event| event.starts_with("Ended")).unwrap();
            assert_eq!((closed, ended), (1, events.len() - 1), "{protocol}: {events:?}");
        }
    }
}

#[test]
fn d8_names_come_from_dialect_data() {
    #[rustfmt::skip]
    let cases = [
        ("think",         "<think>",       "</think>"),
        ("thinking",      "<thinking>",    "</thinking>"),
        ("thought",       "<thought>",     "</thought>"),
        ("reasoning",     "<reasoning>",   "</reasoning>"),
        ("mm-think",      "<mm:think>",    "</mm:think>"),
        ("seed-think",    "<seed:think>",  "</seed:think>"),
        ("magistral",     "[THINK]",       "[/THINK]"),
        ("kimi-triangle", "◁think▷",       "◁/think▷"),
        ("kimi-k3",       "<|open|>think<|sep|>", "<|close|>think<|sep|>"),
        ("cohere",        "<|START_THINKING|>",   "<|END_THINKING|>"),
        ("harmony",       "<|channel|>analysis<|message|>", "<|end|>"),
        ("gemma",         "<|channel>thought",    "<channel|>"),
        ("apertus",       "<|inner_prefix|>",     "<|inner_suffix|>"),
        ("granite",       "Here's my thought process:", "Here's my response:"),
        ("muse",          " to=self<|message|>",  "<|eom|>"),
    ];
    every(cases, |(id, open, close)| {
        let file = format!("id = \"acme\"\nprotocol = \"openai-chat\"\n[read]\ntags = [\"{id}\"]\n");
        let dialects = Dialects::with_user_files(&[DialectSource { path: "dialects/acme.toml", text: &file }]).unwrap();
        let rules = dialects.get("acme").unwrap().rules(None).clone();
        let reader = ReplyReader { protocol: Protocol::OpenaiChat, rules };
        check_text(&reader, id, &format!("{open}a<b{close}A"), &format!("think {open} 'a<b' | text 'A'"))
    });
}

#[test]
fn d8_dialects_that_name_their_own() {
    #[rustfmt::skip]
    let cases = [
        ("gemini-openai", "<thought>a</thought>A",   "think <thought> 'a' | text 'A'"),
        ("gemini-openai", "<think>a</think>A",       "text '<think>a</think>A'"),
        ("kimi",          "◁think▷a◁/think▷A",       "think ◁think▷ 'a' | text 'A'"),
        ("llamacpp",      "<seed:think>a</seed:think>A", "think <seed:think> 'a' | text 'A'"),
        ("llamacpp",      "[THINK]a[/THINK]A",       "think [THINK] 'a' | text 'A'"),
        ("minimax",       "<think>a</think>A<think>b</think>B", "think <think> 'a' | text 'A' | think <think> 'b' | text 'B'"),
        ("deepseek",      "<think>a</think>A",       "text '<think>a</think>A'"),
        ("qwen",          "<think>a<tool_call>b",    "think <think> 'a' | text '<tool_call>b'"),
    ];
    every(cases, |(dialect, text, expected)| check_text(&ReplyReader::dialect(dialect), dialect, text, expected));
}

#[test]
fn d8_tags_in_code_are_not_tags() {
    let anywhere = on_both(|rules| rules.read.tags.reach = TagReach::Anywhere);
    let auto = on_both(|rules| rules.read.tags.start = TagStart::Auto);
    #[rustfmt::skip]
    let cases = [
        ("inline code",          &anywhere, "Use `<think>a</think>` so.",                    "text 'Use `<think>a</think>` so.'"),
        ("a fence",              &anywhere, "So:\n```\n<think>a</think>\n```\nB",            "text 'So:⏎```⏎<think>a</think>⏎```⏎B'"),
        ("a fence with a word",  &anywhere, "```xml\n<think>\n```\nB",                       "text '```xml⏎<think>⏎```⏎B'"),
        ("after inline code",    &anywhere, "A `b` <think>a</think>B",                       "text 'A `b` ' | think <think> 'a' | text 'B'"),
        ("after a fence",        &anywhere, "```\nb\n```\n<think>a</think>B",                "text '```⏎b⏎```⏎' | think <think> 'a' | text 'B'"),
        ("a close tag in code",  &auto,     "Write `</think>` to end.",                      "text 'Write `</think>` to end.'"),
        ("a close tag in a fence", &auto,   "So:\n```\n</think>\n```\n",                     "text 'So:⏎```⏎</think>⏎```⏎'"),
    ];
    every(cases, |(name, readers, text, expected)| {
        readers.iter().try_for_each(|reader| check_text(reader, name, text, expected))
    });
}

#[test]
fn d9_a_preopened_dialect_starts_in_thinking() {
    let readers = on_both(|rules| rules.read.tags.start = TagStart::Prefilled);
    #[rustfmt::skip]
    let cases = [
        ("closes",                    "a</think>A",            "think <think> 'a' | text 'A'"),
        ("nothing trimmed",           "\na\n</think>\n\nA",    "think <think> '⏎a⏎' | text '⏎⏎A'"),
        ("the model opens it again",  "<think>a</think>A",     "think <think> 'a' | text 'A'"),
        ("closes at once",            "</think>A",             "text 'A'"),
        ("a thought and nothing else", "a</think>",            "think <think> 'a'"),
    ];
    every(cases, |(name, text, expected)| {
        readers.iter().try_for_each(|reader| check_text(reader, name, text, expected))
    });
}

#[test]
fn d9_without_a_close_tag_the_text_is_the_answer() {
    let readers = on_both(|rules| rules.read.tags.start = TagStart::Prefilled);
    #[rustfmt::skip]
    let cases = [
        ("one line",             "Just A.",       "text 'Just A.'"),
        ("half a close tag",     "Just A</thi",   "text 'Just A</thi'"),
        ("white space is kept",  "\n A \n",       "text '⏎ A ⏎'"),
    ];
    every(cases, |(name, text, expected)| {
        readers.iter().try_for_each(|reader| check_text(reader, name, text, expected))
    });
}

#[test]
fn d9_refiling_is_an_event_that_a_display_can_follow() {
    for reader in on_both(|rules| rules.read.tags.start = TagStart::Prefilled) {
        let bytes = content(reader.protocol, &["Just", " A."]);
        let events = reader.events(&bytes);
        let place = |start: &str| events.iter().position(|event| event.starts_with(start));
        let (opened, refiled, closed) = (place("Opened"), place("Refiled"), place("Closed"));
        assert!(
            opened < refiled && refiled < closed && opened.is_some(),
            "{}: opened as a thought, refiled to text, then closed: {events:?}",
            reader.protocol
        );
        assert!(events[refiled.unwrap()].contains("Text"), "{events:?}");
        let never = reader.events(&content(reader.protocol, &["a</think>A"]));
        assert!(!never.iter().any(|event| event.starts_with("Refiled")), "a closed thought stays one: {never:?}");
    }
}

#[test]
fn d9_a_call_or_a_missing_end_changes_nothing_about_it() {
    let reader = ReplyReader::chat().with(|rules| rules.read.tags.start = TagStart::Prefilled);
    const CALL: &str = r#"{"tool_calls":[{"index":0,"id":"c1","function":{"name":"get","arguments":"{}"}}]}"#;
    #[rustfmt::skip]
    let cases = [
        ("a call behind the text",  chat(&[r#"{"content":"I look."}"#, CALL]),           "text 'I look.' | call get(c1) {}"),
        ("a closed thought, a call", chat(&[r#"{"content":"a</think>"}"#, CALL]),        "think <think> 'a' | call get(c1) {}"),
        ("a stream that just stops", sse([r#"{"choices":[{"index":0,"delta":{"content":"Just A."}}]}"#]), "text 'Just A.'"),
        ("a field has the thought", chat(&[r#"{"reasoning_content":"a"}"#, r#"{"content":"A"}"#]), "think reasoning_content 'a' | text 'A'"),
    ];
    every(cases, |(name, bytes, expected)| reader.check(name, &bytes, expected));
}

#[test]
fn d9_without_dialect_data_a_lone_close_tag_refiles_to_thinking() {
    let readers = on_both(|rules| rules.read.tags.start = TagStart::Auto);
    #[rustfmt::skip]
    let cases = [
        ("a close tag without its opener", "a</think>A",        "think <think> 'a' | text 'A'"),
        ("its opener is there",            "<think>a</think>A", "think <think> 'a' | text 'A'"),
        ("no tag at all",                  "Just A.",           "text 'Just A.'"),
    ];
    every(cases, |(name, text, expected)| {
        readers.iter().try_for_each(|reader| {
            let source = |drawn: String| drawn.replace("think content ", "think <think> ");
            let bytes = content(reader.protocol, &[text]);
            same(&format!("{name} ({})", reader.protocol), source(drawn(&reader.reply(&bytes))), expected.to_owned())
        })
    });
    let events = readers[0].events(&content(Protocol::OpenaiChat, &["a</think>A"]));
    assert!(events.iter().any(|event| event.starts_with("Refiled") && event.contains("Thinking")), "{events:?}");
}
