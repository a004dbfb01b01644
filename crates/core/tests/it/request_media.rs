//! Images, documents and members of messages: each protocol reads what it writes, and what it does not
//! write is left out with a reason.

use aside_core::block::{Arguments, Block, CallId, Media, MediaKind, MediaSource, Origin, Text, ToolCall, ToolResult};
use aside_core::conversation::ToolSpec;
use aside_core::dialect::Dialect;
use aside_core::message::{Message, Role};
use aside_core::protocol::Protocol;
use aside_core::settings::{Layer, Settings};
use aside_core::wire::{ClientRequest, Encoded, Request, encode, read_request};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::dialects;

fn text(text: &str) -> Block {
    Block::Text(Text { text: text.to_owned(), ..Text::default() })
}

/// Media as users attach them and tools return them.
fn media() -> impl Strategy<Value = Media> {
    let image = select(vec!["image/png", "image/jpeg", "image/webp"]);
    let document = select(vec!["application/pdf", "text/plain"]);
    let kind = prop_oneof![
        image.prop_map(|media_type| (MediaKind::Image, media_type)),
        document.prop_map(|media_type| (MediaKind::Document, media_type)),
    ];
    let source = select(vec![
        MediaSource::Data("aGVsbG8=".to_owned()),
        MediaSource::Url("https://example.com/a".to_owned()),
        MediaSource::Url("s3://bucket/a".to_owned()),
        MediaSource::FileId("file-1".to_owned()),
    ]);
    let name = option::of(select(vec!["notes", "a b"]));
    (kind, source, name).prop_map(|((kind, media_type), source, name)| Media {
        kind,
        media_type: media_type.to_owned(),
        source,
        name: name.map(str::to_owned),
    })
}

fn send(dialect: &Dialect, messages: &[Message]) -> (Encoded, ClientRequest) {
    let (messages, target): (Vec<&Message>, Origin) = (messages.iter().collect(), Origin::default());
    let mut settings = Settings::new();
    // What a dialect demands of thinking is not tested here.
    settings.set(Layer::Session, "reasoning.enabled", "false").unwrap();
    let tools = [ToolSpec::new("get", "Gets it.", r#"{"type":"object"}"#)];
    let request = Request::new(dialects(), dialect, "m", &target, &settings).with_messages(&messages);
    let encoded = encode(&request.with_tools(&tools));
    let read = read_request(dialect.protocol, dialect.rules(Some("m")), &encoded.body);
    let read = read.unwrap_or_else(|error| panic!("{}: {error}\n{}", dialect.id, encoded.body));
    (encoded, read)
}

/// The media without what was left out of it, as this protocol reads it.
fn remaining(protocol: Protocol, media: &Media, path: &str, encoded: &Encoded) -> Option<Media> {
    let lost = |path: &str| encoded.left_out.iter().any(|loss| loss.path == path);
    if lost(path) {
        return None;
    }
    let mut media = media.clone();
    if lost(&format!("{path}.name")) {
        media.name = None;
    }
    match (protocol, &media.source) {
        // Its list of images has no types.
        (Protocol::Ollama, _) => "image/*".clone_into(&mut media.media_type),
        (Protocol::Gemini | Protocol::Bedrock, _) | (_, MediaSource::Data(_)) => (),
        // Whoever fetches it sees the type.
        (_, MediaSource::Url(_) | MediaSource::FileId(_)) => media.media_type.clear(),
    }
    // Where a document must have a name, one is added.
    if media.kind == MediaKind::Document {
        let needs_name = match protocol {
            Protocol::OpenaiChat | Protocol::OpenaiResponses => media.data().is_some(),
            Protocol::Bedrock => true,
            Protocol::Anthropic | Protocol::Gemini | Protocol::Ollama | Protocol::Cohere => false,
        };
        if needs_name {
            media.name.get_or_insert_with(|| "document".to_owned());
        }
    }
    Some(media)
}

fn blocks_of(request: &ClientRequest, role: Role) -> Vec<Block> {
    let messages = request.messages.iter().filter(|message| message.role == role);
    messages.flat_map(|message| message.blocks.clone()).collect()
}

fn check(dialect: &Dialect, attached: &[Media], output: &str, returned: &[Media]) {
    let protocol = dialect.protocol;
    let question = [text("look")].into_iter().chain(attached.iter().cloned().map(Block::Media)).collect();
    let (id, name) = ("call_1".to_owned(), "get".to_owned());
    let call = ToolCall::new(CallId::Given(id.clone()), name.clone(), Arguments::default());
    let result = ToolResult { id, name, content: output.to_owned(), media: returned.to_vec(), is_error: false };
    let messages = [
        Message::new(Role::User, question),
        Message::new(Role::Assistant, vec![Block::ToolCall(call)]),
        Message::new(Role::Tool, vec![Block::ToolResult(result)]),
    ];
    let (encoded, read) = send(dialect, &messages);
    let case = format!("{}: {:?}\n{}", dialect.id, encoded.left_out, encoded.body);

    let sent = attached
        .iter()
        .enumerate()
        .filter_map(|(at, media)| remaining(protocol, media, &format!("messages[0].blocks[{}]", at + 1), &encoded));
    let expected: Vec<Block> = [text("look")].into_iter().chain(sent.map(Block::Media)).collect();
    assert_eq!(blocks_of(&read, Role::User), expected, "{case}");

    let results = blocks_of(&read, Role::Tool);
    let [Block::ToolResult(result)] = results.as_slice() else { panic!("{results:?}\n{case}") };
    let path = |at: usize| format!("messages[2].blocks[0].media[{at}]");
    let sent: Vec<Option<Media>> =
        returned.iter().enumerate().map(|(at, media)| remaining(protocol, media, &path(at), &encoded)).collect();
    // What is left out is described in the text.
    let described = returned.iter().zip(&sent).filter(|(_, sent)| sent.is_none()).map(|(media, _)| media.describe());
    let words = Some(output.to_owned()).filter(|output| !output.is_empty()).into_iter().chain(described);
    assert_eq!(result.content, words.collect::<Vec<_>>().join("\n"), "{case}");
    assert_eq!(result.media, sent.into_iter().flatten().collect::<Vec<_>>(), "{case}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn e17_media_read_back_as_they_were_without_what_was_left_out(
        attached in prop::collection::vec(media(), 0..3),
        output in select(vec!["", "done", "two\nlines"]),
        returned in prop::collection::vec(media(), 0..3),
    ) {
        for dialect in dialects().iter() {
            check(dialect, &attached, output, &returned);
        }
    }
}

#[test]
fn e17_members_of_a_clients_message_are_kept_and_named_when_it_is_sent_on() {
    #[rustfmt::skip]
    let cases: &[(&str, &str, &[(&str, &str)])] = &[
        ("generic", r#"{"messages":[{"role":"user","name":"ann","content":[{"type":"text","text":"q","x":1},
            {"type":"image_url","image_url":{"url":"https://a/b","detail":"high"}}]}]}"#,
            &[("name", "\"ann\""), ("content[0].x", "1"), ("content[1].image_url.detail", "\"high\"")]),
        ("generic", r#"{"messages":[{"role":"tool","tool_call_id":"c","name":"get","content":[{"type":"text","text":"r","x":[1]}]}]}"#,
            &[("content[0].x", "[1]")]),
        ("openai", r#"{"input":[{"type":"message","id":"m1","role":"user","content":[{"type":"input_text","text":"q","x":1}]}]}"#,
            &[("id", "\"m1\""), ("content[0].x", "1")]),
        ("anthropic", r#"{"messages":[{"role":"user","content":[{"type":"document","context":"c","source":{"type":"url","url":"https://a/b"}},
            {"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"r","citations":[1]}],"x":2}]}]}"#,
            &[("content[0].context", "\"c\""), ("content[1].x", "2"), ("content[1].content[0].citations", "[1]")]),
        ("gemini", r#"{"contents":[{"role":"user","parts":[{"text":"q"},{"inlineData":{"mimeType":"image/png","data":"aA=="},"mediaResolution":{"level":"LOW"}}]}]}"#,
            &[("parts[1].mediaResolution", r#"{"level":"LOW"}"#)]),
        ("bedrock", r#"{"messages":[{"role":"user","content":[{"document":{"format":"pdf","name":"d","context":"c","source":{"bytes":"aA=="}}}]}]}"#,
            &[("content[0].document.context", "\"c\"")]),
        ("ollama", r#"{"messages":[{"role":"user","content":"q","x":1}]}"#, &[("x", "1")]),
        ("cohere", r#"{"messages":[{"role":"user","content":[{"type":"text","text":"q","x":1}]}]}"#, &[("content[0].x", "1")]),
    ];
    for (id, body, expected) in cases {
        let dialect = dialects().get(id).unwrap();
        let client = read_request(dialect.protocol, dialect.rules(None), body).unwrap();
        let last = client.messages.last().unwrap();
        let mut kept: Vec<(&str, &str)> = last.extra.iter().collect();
        let mut expected = expected.to_vec();
        kept.sort_unstable();
        expected.sort_unstable();
        assert_eq!(kept, expected, "{id}: {body}");
        let (encoded, _) = send(dialect, &client.messages);
        for (member, _) in expected {
            let path = format!("messages[{}].{member}", client.messages.len() - 1);
            let loss = encoded.left_out.iter().find(|loss| loss.path == path);
            assert!(loss.is_some_and(|loss| loss.to_string().ends_with("it has no neutral form")), "{id}: {path}");
        }
    }
}

#[test]
fn e17_a_cache_mark_in_a_chat_part_is_a_hint() {
    let body = r#"{"messages":[{"role":"system","content":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]},
        {"role":"user","content":[{"type":"text","text":"q","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}"#;
    let (chat, anthropic) = (dialects().get("generic").unwrap(), dialects().get("anthropic").unwrap());
    let client = read_request(Protocol::OpenaiChat, chat.rules(None), body).unwrap();
    let (target, settings) = (Origin::default(), Settings::new());
    let messages: Vec<&Message> = client.messages.iter().collect();
    let sent = |dialect| {
        let request = Request::new(dialects(), dialect, "m", &target, &settings).with_messages(&messages);
        encode(&request.with_parameters(&client.parameters))
    };
    assert_eq!(sent(anthropic).body.matches(r#""cache_control":{"type":"ephemeral""#).count(), 2);
    let losses: Vec<String> = sent(chat).left_out.iter().map(|loss| loss.path.clone()).collect();
    assert_eq!(losses, ["cache_hints[0]", "cache_hints[1]"]);
    assert!(client.messages.iter().all(|message| message.extra.is_empty()), "{:?}", client.messages);
}
