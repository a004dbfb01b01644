//! The rules of the seeds that no other file covers, one test each.

use aside_core::block::{Block, Origin};
use aside_core::conversation::Conversation;
use aside_core::message::Message;
use aside_core::protocol::Protocol;
use aside_core::settings::{Layer, Settings};
use aside_core::wire::{Encoded, Request, encode};
use serde_json::Value;

use crate::support::{decode, dialects, generic_rules, text, thinking_texts};

/// A chat reply, streamed in deltas.
fn chat(deltas: &[&str]) -> (Vec<String>, String, Vec<Block>) {
    let mut stream = String::new();
    for delta in deltas {
        stream += &format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
    }
    stream += "data: [DONE]\n\n";
    read(stream.as_bytes())
}

fn whole(message: &str) -> (Vec<String>, String, Vec<Block>) {
    read(format!("{{\"choices\":[{{\"index\":0,\"message\":{message},\"finish_reason\":\"stop\"}}]}}").as_bytes())
}

fn read(bytes: &[u8]) -> (Vec<String>, String, Vec<Block>) {
    let (reply, outcome) = decode(Protocol::OpenaiChat, &generic_rules(Protocol::OpenaiChat), bytes, usize::MAX);
    outcome.unwrap();
    (thinking_texts(&reply).into_iter().map(str::to_owned).collect(), text(&reply), reply.blocks)
}

fn source(blocks: &[Block]) -> &str {
    match &blocks[0] {
        Block::Thinking(thinking) => &thinking.source,
        other => panic!("{other:?} is not thinking"),
    }
}

const TALK: &str = r#"{"role":"user","blocks":[{"type":"text","text":"q1"}]}
{"role":"assistant","origin":{"dialect":"vllm"},"blocks":[{"type":"thinking","thought":"A long thought about the first question.","sourceField":"reasoning"},{"type":"text","text":"R1"}]}
{"role":"user","blocks":[{"type":"text","text":"q2"}]}
{"role":"assistant","origin":{"dialect":"vllm"},"blocks":[{"type":"thinking","thought":"Another thought.","sourceField":"reasoning"},{"type":"text","text":"R2"}]}
{"role":"user","blocks":[{"type":"text","text":"q3"}]}"#;

fn send(set: &[(&str, &str)]) -> Encoded {
    let conversation = Conversation::parse(TALK).unwrap();
    let branch = conversation.history.branch();
    let messages: Vec<&Message> = branch.iter().map(|(_, message)| *message).collect();
    let mut settings = Settings::new();
    for (key, value) in set {
        settings.set(Layer::Session, key, value).unwrap();
    }
    encode(
        &Request::new(dialects(), dialects().get("vllm").unwrap(), "some-model", &Origin::default(), &settings)
            .with_messages(&messages),
    )
}

const INCLUDE: (&str, &str) = ("reasoning.includeInContext", "true");

#[test]
fn req_think_001_1_thinking_names_the_field_it_came_in() {
    assert_eq!(source(&whole(r#"{"reasoning":"why","content":"so"}"#).2), "reasoning");
}

#[test]
fn req_think_001_2_thinking_may_carry_a_signature() {
    let body = br#"{"type":"message","content":[{"type":"thinking","thinking":"why","signature":"S"}],"stop_reason":"end_turn"}"#;
    let (reply, _) = decode(Protocol::Anthropic, &generic_rules(Protocol::Anthropic), body, usize::MAX);
    let Block::Thinking(thinking) = &reply.blocks[0] else { panic!("a thought") };
    assert_eq!(thinking.seals().unwrap().signature.as_ref().unwrap().payload, "S");
}

#[test]
fn req_think_001_3_thinking_is_a_block_among_the_others() {
    let (_, _, blocks) = whole(r#"{"reasoning_content":"why","content":"so"}"#);
    assert!(matches!(blocks.as_slice(), [Block::Thinking(_), Block::Text(_)]));
}

#[test]
fn req_think_003_1_streamed_reasoning_content_is_read() {
    let (thoughts, text, _) =
        chat(&[r#"{"reasoning_content":"wh"}"#, r#"{"reasoning_content":"y"}"#, r#"{"content":"so"}"#]);
    assert_eq!((thoughts.as_slice(), text.as_str()), (["why".to_owned()].as_slice(), "so"));
}

#[test]
fn req_think_003_2_reasoning_content_of_a_whole_body_is_read() {
    assert_eq!(whole(r#"{"reasoning_content":"why","content":"so"}"#).0, ["why"]);
}

#[test]
fn req_think_003_3_its_source_is_reasoning_content() {
    assert_eq!(source(&whole(r#"{"reasoning_content":"why"}"#).2), "reasoning_content");
}

#[test]
fn req_think_003_4_ec_001_a_reply_without_it_is_an_ordinary_reply() {
    let (thoughts, text, blocks) = chat(&[r#"{"content":"so"}"#]);
    assert_eq!((thoughts.len(), text.as_str(), blocks.len()), (0, "so", 1));
}

#[test]
fn ec_002_an_empty_string_is_no_thinking() {
    assert_eq!(chat(&[r#"{"reasoning_content":""}"#, r#"{"content":"so"}"#]).0.len(), 0);
    assert_eq!(whole(r#"{"reasoning_content":"","content":"so"}"#).0.len(), 0);
}

#[test]
fn ec_003_thinking_then_content_gives_both_in_order() {
    let (_, _, blocks) = chat(&[
        r#"{"reasoning_content":"a"}"#,
        r#"{"content":"A"}"#,
        r#"{"reasoning_content":"b"}"#,
        r#"{"content":"B"}"#,
    ]);
    assert!(matches!(blocks.as_slice(), [Block::Thinking(_), Block::Text(_), Block::Thinking(_), Block::Text(_)]));
}

#[test]
fn req_think_004_1_the_include_setting_is_read() {
    assert!(send(&[INCLUDE]).body.contains("Another thought."));
    assert!(!send(&[("reasoning.includeInContext", "false")]).body.contains("Another thought."));
}

#[test]
fn req_think_004_2_req_think_004_5_the_strip_setting_is_read_and_comes_first() {
    let body = send(&[INCLUDE, ("reasoning.stripFromContext", "allButLast")]).body;
    assert!(!body.contains("A long thought") && body.contains("Another thought."));
}

#[test]
fn req_think_005_1_br_004_only_what_would_be_sent_is_counted() {
    let all = send(&[INCLUDE]).tokens;
    let stripped = send(&[INCLUDE, ("reasoning.stripFromContext", "all")]).tokens;
    let withheld = send(&[("reasoning.includeInContext", "false")]).tokens;
    assert!(all > stripped, "{all} and {stripped}");
    assert_eq!(stripped, withheld, "what is not sent is not counted");
}

#[test]
fn req_think_005_3_the_count_follows_the_settings_at_once() {
    let counts: Vec<u64> = ["none", "allButLast", "all"]
        .map(|strip| send(&[INCLUDE, ("reasoning.stripFromContext", strip)]).tokens)
        .to_vec();
    assert!(counts.is_sorted_by(|a, b| a > b), "{counts:?}");
}

#[test]
fn br_003_how_thinking_is_shown_changes_nothing_that_is_sent() {
    let sent = send(&[INCLUDE]);
    for set in [("reasoning.display", "off"), ("reasoning.includeInResponse", "false"), ("show_thinking", "false")] {
        assert_eq!(send(&[INCLUDE, set]), sent, "{set:?}");
    }
}

#[test]
fn br_007_native_and_field_mean_the_field_here() {
    assert_eq!(send(&[INCLUDE, ("reasoning.format", "native")]), send(&[INCLUDE, ("reasoning.format", "field")]));
}

#[test]
fn err_003_thinking_may_have_any_size() {
    let thought = "All of it counts. ".repeat(500_000);
    let (thoughts, _, _) =
        whole(&format!(r#"{{"reasoning_content":{},"content":"so"}}"#, Value::from(thought.as_str())));
    assert!(thoughts[0] == thought, "{} of {} bytes", thoughts[0].len(), thought.len());
}
